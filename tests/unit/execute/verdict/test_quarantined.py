"""A quarantined failure of a stored run: the run passes, reports it, and no later run is compared with it."""

from typing import Any

import pytest
from tests.support.stories import T0, open_store
from tests.support.two_nodes import NODES, Number, stored

from tipcflow.config.policy import Policy, QuarantineRule
from tipcflow.config.references import References
from tipcflow.domain import PartKey, Run, Status
from tipcflow.domain.run_documents import QuarantinedDocument
from tipcflow.execute.quarantine.add import Request, quarantine_failure
from tipcflow.execute.verdict import confirm
from tipcflow.execute.verdict.check_context import build_check_context
from tipcflow.execute.verdict.conclusion import exit_code_of
from tipcflow.execute.verdict.judge import judge_run
from tipcflow.execute.verdict.rejudge import rejudge
from tipcflow.store import Store

pytestmark = pytest.mark.slow

RULES = Policy(name="mine")
REFERENCES = References(suite="sample")
WEEKS = 6
REQUEST = Request(check="speed.inference_time", owner="kernels", who="mia", why="noisy node")


@pytest.fixture
def store(tmp_path: Any) -> Any:
    with open_store(tmp_path / "tipcflow.db") as opened:
        for week in range(WEEKS):
            run = stored(opened, week, lambda _: 1.0, NODES)
            opened.runs.finish(run, Status.PASS, "", T0 + week * 100 + 50)
        yield opened


def judged(store: Store, week: int, metrics: dict[str, float], **fields: Any) -> Run:
    """A run whose metrics are larger by these factors, with its verdict."""

    def slower(number: Number) -> float:
        return metrics.get(number[4], 1.0)

    run = stored(store, week, slower, NODES, **fields)
    result = judge_run(store, run, rules=RULES, references=REFERENCES)
    store.runs.finish(run, result.status, result.reason, store.now())
    return store.runs.get(run)


@pytest.fixture
def quarantined(store: Store) -> Store:
    red = judged(store, WEEKS, {"inference_time": 2.0})
    assert red.status is Status.UNCONFIRMED
    quarantine_failure(store, red, REQUEST, QuarantineRule())
    return store


def test_the_same_failure_passes_and_joins_no_history(quarantined: Store) -> None:
    run = judged(quarantined, WEEKS + 1, {"inference_time": 2.1})
    assert run.status is Status.PASS
    assert run.reason.startswith(
        "quarantined: speed.inference_time (v/infer_cpu cpu): quarantine 1 of kernels, until "
    )
    assert exit_code_of(quarantined, run) == 0
    assert quarantined.documents.get(run.id, QuarantinedDocument) == QuarantinedDocument(numbers=(1,))
    again = judge_run(quarantined, run.id, rules=RULES, references=REFERENCES)
    assert again.parts[0].startswith("quarantined: ")
    assert again.reason == "; ".join(again.parts)
    nightly = judged(quarantined, WEEKS + 2, {})
    assert (nightly.status, "quarantine" in nightly.reason) == (Status.PASS, False)
    context = build_check_context(quarantined, nightly, rules=RULES, references=REFERENCES)
    assert [past.run for past in context.history] == [f"run-{week:02}" for week in range(WEEKS)]


def test_failure_outside_the_quarantine_blocks(quarantined: Store) -> None:
    run = judged(quarantined, WEEKS + 1, {"inference_time": 2.0, "peak_rss": 2.0})
    assert run.status is Status.UNCONFIRMED
    assert run.reason.startswith("memory.peak_rss")
    assert "quarantined: speed.inference_time" in run.reason


def test_a_much_larger_failure_blocks(quarantined: Store) -> None:
    assert judged(quarantined, WEEKS + 1, {"inference_time": 8.0}).status is Status.UNCONFIRMED


@pytest.mark.parametrize("trigger", ["bisect", "ab"])
def test_a_search_for_the_cause_sees_the_failure(quarantined: Store, trigger: str) -> None:
    run = judged(quarantined, WEEKS + 1, {"inference_time": 2.0}, trigger=trigger)
    assert run.status is Status.UNCONFIRMED


def test_failure_blocks_again_after_the_quarantine(quarantined: Store) -> None:
    assert quarantined.quarantines.release(1, at=quarantined.now(), who="tom", why="too early")
    assert judged(quarantined, WEEKS + 1, {"inference_time": 2.0}).status is Status.UNCONFIRMED


def test_judging_again_uses_the_quarantines_of_that_time(quarantined: Store) -> None:
    red = quarantined.runs.get(f"run-{WEEKS:02}")
    assert rejudge(quarantined, red, rules=RULES, references=REFERENCES).status is Status.REGRESSION
    run = judged(quarantined, WEEKS + 1, {"inference_time": 2.0})
    quarantined.quarantines.release(1, at=quarantined.now() + 1, who="tom", why="fixed")
    assert rejudge(quarantined, run, rules=RULES, references=REFERENCES).status is Status.PASS


def test_quarantined_failure_is_confirmed_like_any_other(quarantined: Store) -> None:
    run = judged(quarantined, WEEKS + 1, {"inference_time": 2.0})
    results = quarantined.checks.results(run.id)
    assert confirm.suspected(results) == (PartKey("v/infer_cpu/cpu"),)
