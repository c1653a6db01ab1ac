"""Errors of ours, as Airflow takes them."""

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tipcflow.domain import ConfigError, InfraError
from tipcflow.store.engine import UnreachableError
from tipcflow.store.migrate import WrongSchemaError
from tipcflow_operators.airflow.errors import airflow_error, tipcflow_errors_fail_task


def test_errors_of_a_task_are_final() -> None:
    for error in (ConfigError("no such mode"), InfraError("node b is away")):
        assert type(airflow_error(error)) is AirflowFailException
    with pytest.raises(AirflowFailException, match="infra_failure: node b is away"), tipcflow_errors_fail_task():
        raise InfraError("node b is away")


def test_a_task_that_meets_the_database_of_another_version_is_tried_again() -> None:
    error = airflow_error(WrongSchemaError("the database is newer than this tipcflow", found="schema 9999"))
    assert isinstance(error, AirflowException)
    assert not isinstance(error, AirflowFailException)
    assert "newer" in str(error)


def test_a_task_whose_database_server_is_away_is_tried_again() -> None:
    error = airflow_error(UnreachableError("cannot use the database: it does not accept connections"))
    assert not isinstance(error, AirflowFailException)
