"""Errors that a person reads, as Airflow takes them: final, for trying again would say the same."""

import contextlib
from collections.abc import Iterator

from airflow.sdk.exceptions import AirflowFailException

from tipcflow.domain import TipcflowError


@contextlib.contextmanager
def failing_plainly() -> Iterator[None]:
    """What is raised as TipcflowError fails the task at once, with its status word in front."""
    try:
        yield
    except TipcflowError as error:
        raise AirflowFailException(f"{error.status.value}: {error}") from error
