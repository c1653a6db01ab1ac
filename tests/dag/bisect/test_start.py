"""The sweep that starts bisections, with a real database; only Airflow's responses are fake."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.bisections.deployment import Deployment

from tipcflow.domain import InfraError, Status
from tipcflow.execute.sweeps.maintenance import Upkeep
from tipcflow.store import Store
from tipcflow_operators.airflow import dag_runs
from tipcflow_operators.bisect.request import bisect_request
from tipcflow_operators.bisect.start import bisections


class Airflow:
    """DAG runs of `bisect`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.states: dict[str, str] = {}
        self.confs: dict[str, Any] = {}
        self.problem = ""
        monkeypatch.setattr(dag_runs, "state_of", lambda dag_id, run_id: self.states.get(run_id))
        monkeypatch.setattr(dag_runs, "count_active", lambda dag_id: len(self.active))
        monkeypatch.setattr(dag_runs, "start", self._start)

    @property
    def active(self) -> list[str]:
        return [run_id for run_id, state in self.states.items() if state == "running"]

    def _start(self, dag_id: str, run_id: str, *, run_after: datetime, conf: dict[str, Any], note: str) -> None:
        if self.problem:
            raise InfraError(self.problem)
        assert dag_id == "bisect"
        assert note
        self.states[run_id], self.confs[run_id] = "running", dict(conf)


@pytest.fixture
def deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    with Deployment(tmp_path) as made:
        monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path))
        monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(made.configs))
        yield made


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Airflow:
    return Airflow(monkeypatch)


def sweep(deployment: Deployment, lines: list[str] | None = None) -> str:
    said: list[str] = [] if lines is None else lines
    store: Store = deployment.store
    upkeep = Upkeep(store, deployment.home, deployment.configs, None, said.append, now=deployment.now)  # type: ignore[arg-type]
    return bisections(upkeep)


def test_nothing_starts_while_the_policy_says_never(deployment: Deployment, airflow: Airflow) -> None:
    deployment.regression("a")
    assert sweep(deployment) == "no bisection is due"
    assert airflow.states == {}


def test_regression_starts_one_bisection_with_valid_params(deployment: Deployment, airflow: Airflow) -> None:
    deployment.policy(start="regressions", max_runs=12)
    bad = deployment.regression("a")
    assert sweep(deployment) == "1 bisections started, 0 wait, 0 were active"
    (run_id,) = airflow.states
    assert run_id == f"auto__{bad}"
    dag_run = SimpleNamespace(dag_id="bisect", run_id=run_id, run_type="operator_triggered")
    request = bisect_request(airflow.confs[run_id], dag_run=dag_run)
    assert (request.run, request.max_runs, request.subject.name) == (bad, 12, "batch_cost")
    assert request.conf["params_file"] == "test_tipc/configs/a/train.txt"
    airflow.states[run_id] = "failed"
    assert sweep(deployment) == "0 bisections started, 0 wait, 0 were active"


def test_limit_of_active_bisections_is_kept(deployment: Deployment, airflow: Airflow) -> None:
    deployment.policy(start="all", at_once=2)
    airflow.states["manual__1"] = "running"
    for name in ("a", "b", "c"):
        deployment.regression(name)
    lines: list[str] = []
    assert sweep(deployment, lines) == "1 bisections started, 2 wait, 1 were active"
    assert any("the bisection waits, 2 are active" in line for line in lines)
    del airflow.states["manual__1"]
    assert sweep(deployment) == "1 bisections started, 1 wait, 1 were active"


def test_failure_of_airflow_is_reported_and_repeated(deployment: Deployment, airflow: Airflow) -> None:
    deployment.policy(start="all")
    deployment.failure("a", Status.FAILED)
    airflow.problem = "DAG bisect is paused"
    lines: list[str] = []
    assert sweep(deployment, lines) == "0 bisections started, 0 wait, 0 were active"
    assert lines[-1].endswith("the bisection was not started: DAG bisect is paused")
    airflow.problem = ""
    assert sweep(deployment) == "1 bisections started, 0 wait, 0 were active"
    assert next(iter(airflow.confs.values()))["metric"] == "failure"
