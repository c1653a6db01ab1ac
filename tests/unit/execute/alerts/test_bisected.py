"""The result of a bisection reaches the alerts about its metric, with the user who requested it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.stories import a_run, open_store, record_run

from tipcflow.domain import CheckResult, Status
from tipcflow.domain.alert.entry import TIPCFLOW, EventKind
from tipcflow.domain.run.bisection import BisectionDocument
from tipcflow.execute.alerts.bisected import attach_bisection
from tipcflow.execute.alerts.track import track_alerts
from tipcflow.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A database with a run whose batch_cost has alert 1."""
    with open_store(tmp_path / "tipcflow.db") as opened:
        run = record_run(opened, a_run("bad", environment="cpu"), status=Status.REGRESSION)
        slower = CheckResult(
            check="speed.batch_cost", status=Status.REGRESSION, reason="slower", step="v/train",
            metric="batch_cost", values={"ratio": 1.2},
        )  # fmt: skip
        opened.checks.replace(run.id, [slower])
        assert [alert.number for alert in track_alerts(opened, run, [slower])] == [1]
        yield opened


def result(sentence: str, *, metric: str = "batch_cost", **fields: object) -> BisectionDocument:
    return BisectionDocument.model_validate({"metric": metric, "sentence": sentence, **fields})


def bisected(store: Store) -> list[tuple[str, str]]:
    events = store.tracked_alerts.events(1)
    return [(event.who, event.text) for event in events if event.kind is EventKind.BISECTED]


def test_event_names_the_user_of_the_search(store: Store) -> None:
    assert attach_bisection(store, "bad", result("97 %: a")) == [1]
    assert attach_bisection(store, "bad", result("98 %: b"), who="ci") == [1]
    assert bisected(store) == [(TIPCFLOW, "97 %: a"), ("ci", "98 %: b")]


@pytest.mark.parametrize("fields", [
        {"metric": "loss"}, {"metric": "failure"}, {"step": "eval"}, {"leg": "cpu"}, {"chain": "toy/b/x"},
        {"mode": "whole_infer"},
    ],
)  # fmt: skip
def test_result_about_another_problem_reaches_no_alert(store: Store, fields: dict[str, str]) -> None:
    assert attach_bisection(store, "bad", result("97 %: a", **fields)) == []  # type: ignore[arg-type]
    assert bisected(store) == []


def test_undecided_result_does_not_replace_a_found_commit(store: Store) -> None:
    found = result("97 %: a", is_certain=True, dag_run="auto__bad")
    attach_bisection(store, "bad", found)
    attach_bisection(store, "bad", result("undecided: b", dag_run="manual__1"), who="ci")
    assert store.documents.get("bad", BisectionDocument) == found
    assert bisected(store)[-1] == ("ci", "undecided: b")
    again = result("undecided: c", dag_run="auto__bad")
    attach_bisection(store, "bad", again)
    assert store.documents.get("bad", BisectionDocument) == again, "the same search, cleared"
