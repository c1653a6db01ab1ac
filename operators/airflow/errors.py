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
    """The error as Airflow takes it: final, except for another schema of the database or a server that is away.

    Both pass: when an upgrade has reached database and workers, or the server is back. Airflow retries the task.
    """
    from tipcflow.store.engine import UnreachableError
    from tipcflow.store.migrate import WrongSchemaError

    said = f"{error.status.value}: {error}"
    passes = isinstance(error, WrongSchemaError | UnreachableError)
    return AirflowException(said) if passes else AirflowFailException(said)
