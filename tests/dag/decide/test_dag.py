"""The DAGs `decide_…` with a real database: who has decided, and that a decision is stored once."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException
from tests.support.stories import T0, a_run

from tipcflow.domain import CheckResult, Status
from tipcflow.execute.alerts.track import track_alerts
from tipcflow.store import Store
from tipcflow_operators.decide.dag import decide_dags

RED = CheckResult(
    check="speed.batch_cost", status=Status.REGRESSION, reason="slow", step="v/train", metric="batch_cost",
    values={"ratio": 1.25},
)  # fmt: skip


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The notes that tasks set; the database has alert 1."""
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path))
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(Path(__file__).parents[3] / "configs"))
    monkeypatch.setenv("TIPCFLOW_DATABASE_URL", "")
    found: list[str] = []
    monkeypatch.setattr("tipcflow_operators.decide.dag.set_note", lambda context, line, log: found.append(line))
    with Store.open() as store:
        run = a_run("run-1", status=Status.REGRESSION, environment="cpu", ended_at=T0 + 60)
        store.runs.create(run)
        track_alerts(store, run, [RED])
    return found


def store_decision(conf: dict[str, Any], *, user: str | None = "mia", tries: int = 1) -> str:
    dag = decide_dags()["decide_alert"]
    context: Any = {
        "params": dag.params.dump(),
        "dag_run": SimpleNamespace(conf=conf, triggering_user_name=user),
        "ti": SimpleNamespace(try_number=tries),
    }
    return str(dag.get_task("store").execute(context))


def test_author_is_the_user_of_the_dag_run(notes: list[str]) -> None:
    conf = {"number": 1, "state": "acknowledged", "owner": "kernels"}
    assert store_decision(conf) == "alert 1: acknowledged, owner kernels"
    assert notes == ["alert 1: acknowledged, owner kernels"]
    with Store.open() as store:
        assert [event.who for event in store.tracked_alerts.events(1)][-2:] == ["mia", "mia"]


@pytest.mark.parametrize(
    ("conf", "more", "message"),
    [
        ({"number": 1, "owner": "a"}, {"tries": 2}, "config_error: this decision ran before"),
        ({"number": 1, "owner": "a"}, {"user": None}, "config_error: no user has started this DAG run"),
        ({"number": 1}, {}, "config_error: state: nothing is decided"),
        ({"number": 9, "owner": "a"}, {}, "config_error: number: no such alert; found '9'"),
        ({"number": 1, "who": "admin"}, {}, "config_error: who: unknown key"),
    ],
)
def test_refused_decision_fails_without_a_retry(
    notes: list[str], conf: dict[str, Any], more: dict[str, Any], message: str
) -> None:
    with pytest.raises(AirflowFailException, match=message):
        store_decision(conf, **more)
    assert notes == []
