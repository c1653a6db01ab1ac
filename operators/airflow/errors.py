"""Errors that a person reads, as Airflow takes them: final, for trying again would say the same."""

import contextlib
from collections.abc import Iterator

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tipcflow.domain import TipcflowError


@contextlib.contextmanager
def failing_plainly() -> Iterator[None]:
    """What is raised as TipcflowError fails the task at once, with its status word in front."""
    try:
        yield
    except TipcflowError as error:
        raise airflow_error(error) from error


def airflow_error(error: TipcflowError) -> AirflowException:
    """The error as Airflow takes it: final, but for a database with the schema of another version of tipcflow.

    That passes when an upgrade has reached database and workers, so Airflow tries the task again.
    """
    from tipcflow.store.migrate import WrongSchemaError

    said = f"{error.status.value}: {error}"
    return AirflowException(said) if isinstance(error, WrongSchemaError) else AirflowFailException(said)
