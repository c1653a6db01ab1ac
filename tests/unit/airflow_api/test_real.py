"""The client against a real Airflow, whose responses are the model for the scripted ones of the other tests."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from devcluster.airflow.stack import airflow_stack
from tipcflow.airflow_api import Airflow, RunState
from tipcflow.domain import ConfigError, InfraError, run_id_of

pytestmark = pytest.mark.process
DAG = "toy.model.file"
FILE = """
from airflow.sdk import DAG, Param
from airflow.providers.standard.operators.empty import EmptyOperator

with DAG("toy.model.file", schedule=None, dag_display_name="toy/model/file", tags=["toy"],
         params={"mode": Param("lite", type="string", enum=["lite", "whole"])}):
    EmptyOperator(task_id="one") >> EmptyOperator.partial(task_id="two").expand(doc=["a", "b"])
"""


class Place(NamedTuple):
    url: str
    user: str
    password: str
    passwords: dict[str, str]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """An Airflow that lists a DAG and never runs it: there is no scheduler."""
    folder = tmp_path_factory.mktemp("airflow")
    (folder / "dags").mkdir()
    (folder / "dags/toy.py").write_text(FILE)
    configs = Path(__file__).parents[3] / "configs"
    users = {"AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin,ci:user,guest:viewer"}
    parts = ("api-server", "dag-processor")
    with airflow_stack(folder, dags=folder / "dags", configs=configs, env=users, components=parts) as stack:
        with Airflow(stack.url, user=stack.user, password=stack.password) as airflow:
            wait_for_dag(airflow)
        passwords = json.loads(stack.passwords_file.read_text())
        yield Place(stack.url, stack.user, stack.password, passwords)


def wait_for_dag(airflow: Airflow) -> None:

    until = time.monotonic() + 120
    while not airflow.dags():
        assert time.monotonic() < until, "the dag-processor has not read the DAG"
        time.sleep(0.2)


@pytest.fixture
def airflow(place: Place) -> Iterator[Airflow]:
    with Airflow(place.url, user=place.user, password=place.password) as client:
        yield client


def test_a_dag_is_listed_found_and_unpaused(airflow: Airflow) -> None:
    (listed,) = airflow.dags()
    assert (listed.dag_id, listed.name, listed.tag_names, listed.is_paused) == (
        DAG,
        "toy/model/file",
        ("toy",),
        True,
    )
    assert airflow.unpause(DAG).is_paused is False
    assert airflow.dag(DAG).is_paused is False


def test_a_run_is_made_once_and_can_be_noted_and_ended(airflow: Airflow) -> None:
    made = airflow.trigger(DAG, {"mode": "whole"}, "ci__once")
    assert (made.state, made.conf) == (RunState.QUEUED, {"mode": "whole"})
    assert made.run == run_id_of(DAG, "ci__once", made.run_after)
    again = airflow.trigger(DAG, {"mode": "whole"}, "ci__once")
    assert (again.run, again.run_after) == (made.run, made.run_after)
    with pytest.raises(ConfigError, match="has a run ci__once with other params"):
        airflow.trigger(DAG, {"mode": "lite"}, "ci__once")
    assert airflow.set_note(DAG, "ci__once", "x" * 1500).note == "x" * 1000
    ended = airflow.set_state(DAG, "ci__once", "failed")
    assert ended.state is RunState.FAILED
    assert airflow.dag_run(DAG, "ci__once").state.ended


def test_tasks_of_a_run_are_listed(airflow: Airflow) -> None:
    airflow.trigger(DAG, {}, "ci__tasks")
    assert {task.task_id for task in airflow.task_instances(DAG, "ci__tasks")} == {"one", "two"}


def test_errors_are_reported(airflow: Airflow) -> None:
    with pytest.raises(ConfigError, match=r"Invalid input for param mode: 'x' is not one of \['lite', 'whole'\]$"):
        airflow.trigger(DAG, {"mode": "x"}, "ci__bad")
    with pytest.raises(ConfigError, match="run_id provided 'a b' does not match"):
        airflow.trigger(DAG, {}, "a b")
    with pytest.raises(ConfigError, match=rf"no DAG toy\.model\.fil\n  hint: near: {DAG}"):
        airflow.trigger("toy.model.fil", {}, "ci__x")
    with pytest.raises(ConfigError, match=rf"DAG {DAG} has no run ci__none"):
        airflow.dag_run(DAG, "ci__none")
    with pytest.raises(ConfigError, match=rf"DAG {DAG} has no run ci__none"):
        airflow.task_instances(DAG, "ci__none")


def test_pages_report_a_missing_metrics_database(airflow: Airflow) -> None:
    with pytest.raises(InfraError, match=r"is unavailable: HTTP 503: .*database") as caught:
        airflow.certification("20261121t093005-x-0000", deadline_s=5)
    assert "tipcflow db upgrade" in caught.value.hint


def test_a_lost_token_is_renewed(airflow: Airflow) -> None:
    airflow._http._token = "eyJhbGciOiJIUzUxMiJ9.e30.c2lnbmVkLWJ5LW5vYm9keQ"
    assert airflow.dag(DAG).dag_id == DAG


def test_invalid_credentials_are_refused(place: Place) -> None:
    with pytest.raises(ConfigError, match=f"refuses the login of '{place.user}'"):
        Airflow(place.url, user=place.user, password="not-it").dags()
    with pytest.raises(ConfigError, match="refuses the token"):
        Airflow(place.url, token="not-it").dags()


def test_a_ci_host_needs_no_more_than_the_role_of_a_user(place: Place) -> None:
    with Airflow(place.url, user="ci", password=place.passwords["ci"]) as airflow:
        airflow.unpause(DAG)
        assert airflow.trigger(DAG, {}, "ci__by_ci").state is RunState.QUEUED
        assert airflow.set_state(DAG, "ci__by_ci", "failed").state is RunState.FAILED
    with (
        Airflow(place.url, user="guest", password=place.passwords["guest"]) as airflow,
        pytest.raises(ConfigError, match="denies this login access to DAG"),
    ):
        airflow.trigger(DAG, {}, "ci__by_guest")


def test_health_needs_no_login_and_names_stopped_components(place: Place) -> None:
    health = Airflow(place.url, token="not-it").health()
    assert set(health.missing()) == {"scheduler", "triggerer"}
