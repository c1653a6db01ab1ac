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
    """Return the Airflow exception for an error: final, except for a database schema of another tipcflow version.

    A schema mismatch ends when an upgrade has reached database and workers, so Airflow retries the task.
    """
    from tipcflow.store.migrate import WrongSchemaError

    message = f"{error.status.value}: {error}"
    return AirflowException(message) if isinstance(error, WrongSchemaError) else AirflowFailException(message)
