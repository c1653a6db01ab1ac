"""Decisions of users: what each one stores, what is checked before, and one clear error for each wrong input."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import T0, TRAIN, a_run, open_store, record_run

from tipcflow.config.access.roles import DECISION_DAGS
from tipcflow.domain import CheckResult, ConfigError, Measurement, Phase, Status
from tipcflow.domain.alert.entry import AlertState
from tipcflow.execute.alerts.track import track_alerts
from tipcflow.execute.decide.decisions import KINDS, read_decision
from tipcflow.store import Store

CONFIGS = Path(__file__).parents[4] / "configs"
RED = CheckResult(
    check="speed.batch_cost", status=Status.REGRESSION, reason="slow", step=TRAIN, metric="batch_cost",
    values={"ratio": 1.25, "value": 0.2, "code": "worse"},
)  # fmt: skip
PIN = {"run": "run-1", "kind": "pin", "why": "new kernels"}
QUARANTINE = {"run": "run-1", "check_name": "speed.batch_cost", "owner": "kernels", "why": "known"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A red run with an alert."""
    with open_store(tmp_path / "tipcflow.db") as opened:
        run = record_run(opened, a_run("run-1", environment="cpu", created_at=T0), status=None)
        known = {"run": run.id, "step": TRAIN, "node": "node-a", "metric": "batch_cost", "unit": "s"}
        opened.measurements.add([Measurement(**known, phase=Phase.TRAIN, value=0.2)])
        opened.runs.finish(run.id, Status.REGRESSION, "", T0 + 60)
        opened.checks.replace(run.id, [RED])
        track_alerts(opened, opened.runs.get(run.id), [RED])
        yield opened


def decide(store: Store, dag_id: str, **given: Any) -> str:
    decision = read_decision(dag_id, given)
    decision.check(store, CONFIGS)
    return decision.apply(store, "mia", CONFIGS)


def test_every_decision_has_a_dag_and_an_action() -> None:
    assert KINDS.keys() == DECISION_DAGS.keys()


def test_alert_is_set_assigned_and_commented(store: Store) -> None:
    assert decide(store, "decide_alert", number=1, state="acknowledged", owner="kernels") == (
        "alert 1: acknowledged, owner kernels"
    )
    assert (
        decide(store, "decide_alert", number=1, owner=" tom ", why="his change")
        == "alert 1: acknowledged, owner tom"
    )
    assert decide(store, "decide_alert", number=1, why="fix is in review") == "alert 1: acknowledged, owner tom"
    events = [(event.who, event.kind.value, event.text) for event in store.tracked_alerts.events(1)]
    assert events[-4:] == [
        ("mia", "owner", "kernels"),
        ("mia", "owner", "tom"),
        ("mia", "comment", "his change"),
        ("mia", "comment", "fix is in review"),
    ]
    decide(store, "decide_alert", number=1, state="expected", why="intended")
    assert store.tracked_alerts.get(1).state is AlertState.EXPECTED


def test_baselines_are_accepted_pinned_and_reset(store: Store) -> None:
    line = "1 metric values of {0.chain} in {0.mode}, run run-1".format(store.runs.get("run-1"))
    for kind, word in (("accept", "accepted"), ("pin", "pinned"), ("reset", "reset")):
        given = PIN | {"kind": kind, "metrics": ["batch_cost"]}
        assert decide(store, "decide_baseline", **given) == f"{word}: {line}"
    run = store.runs.get("run-1")
    made = store.baselines.decisions(run.chain, run.mode, run.environment)
    assert {(each.who, each.why, each.metric) for each in made} == {("mia", "new kernels", "batch_cost")}


def test_failure_is_quarantined_and_released_once(store: Store) -> None:
    assert "speed.batch_cost" in decide(store, "decide_quarantine", **QUARANTINE)
    assert (store.quarantines.get(1).who, store.quarantines.get(1).owner) == ("mia", "kernels")
    assert decide(store, "decide_release", number=1, why="fixed").startswith("released: quarantine 1, ")
    with pytest.raises(ConfigError, match="NUMBER: the quarantine has ended; found '1: released"):
        decide(store, "decide_release", number=1, why="fixed")


@pytest.mark.parametrize(
    ("dag_id", "given", "message"),
    [
        ("decide_alert", {"number": 1}, "state: nothing is decided"),
        ("decide_alert", {"number": 1, "state": "fixed"}, "why: is empty; expected a reason for the state fixed"),
        ("decide_alert", {"number": 1, "state": "new"}, "STATE: alert 1 has this state; found 'new'"),
        ("decide_alert", {"number": 7, "owner": "tom"}, "NUMBER: no such alert; found '7'"),
        ("decide_alert", {"number": 0, "owner": "tom"}, "number: invalid value; found '0'"),
        ("decide_alert", {"number": 1, "state": "gone"}, "state: invalid value; found 'gone'"),
        ("decide_baseline", {"run": "run-1", "kind": "accept"}, "why: is required"),
        ("decide_baseline", {"run": "run-1", "kind": "accept", "why": " "}, "why: invalid value; found ' '"),
        ("decide_baseline", PIN | {"run": "latest"}, "no such run"),
        ("decide_baseline", PIN | {"metrics": ["none"]}, "no comparable value of none"),
        ("decide_quarantine", QUARANTINE | {"check_name": "loss"}, "CHECK: .*found 'loss'"),
        ("decide_quarantine", QUARANTINE | {"until": "soon"}, "--until: is not a date; found 'soon'"),
        ("decide_release", {"number": 3, "why": "x"}, "NUMBER: no such quarantine; found '3'"),
        ("decide_release", {"number": 3, "why": "x", "who": "admin"}, "who: unknown key"),
    ],
)  # fmt: skip
def test_wrong_decision_is_refused_and_not_stored(
    store: Store, dag_id: str, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        read_decision(dag_id, given).check(store, CONFIGS)
    with pytest.raises(ConfigError, match=message):
        read_decision(dag_id, given).apply(store, "mia", CONFIGS)
    assert store.quarantines.all() == []
    assert store.tracked_alerts.get(1).state is AlertState.NEW
