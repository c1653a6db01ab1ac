"""Converts tipcflow errors to Airflow exceptions that fail the task without retries."""

import contextlib
from collections.abc import Iterator

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tipcflow.domain import TipcflowError


@contextlib.contextmanager
def tipcflow_errors_fail_task() -> Iterator[None]:
    """Fail the task without retries on a TipcflowError; the message starts with the status word."""
    try:
        yield
    except TipcflowError as error:
        raise airflow_error(error) from error


def airflow_error(error: TipcflowError) -> AirflowException:
    """Return the Airflow exception for an error: final, except for a schema mismatch or an unreachable database.

    Both are temporary, until an upgrade has reached database and workers or the server is back: Airflow retries.
    """
    from tipcflow.store.engine import UnreachableError
    from tipcflow.store.migrate import WrongSchemaError

    message = f"{error.status.value}: {error}"
    passes = isinstance(error, WrongSchemaError | UnreachableError)
    return AirflowException(message) if passes else AirflowFailException(message)
