"""A run that is judged again is judged as of its first judgement; a step executed again is a new measurement."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.stories import a_record, open_store
from tests.support.two_nodes import INFER, LEG, NODES, TRAIN, Number, stored

from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.domain import Measurement, Status
from tipcflow.domain.run.judged import JudgedDocument
from tipcflow.execute.decide.baselines import BaselineKind, draft_baselines
from tipcflow.execute.verdict import judge as judgement
from tipcflow.execute.verdict.judged_times import JudgedTimes, judged_times
from tipcflow.execute.verdict.rejudge import rejudge
from tipcflow.store import Store

pytestmark = pytest.mark.slow

RULES = Policy(name="mine", confirm_minutes=0)
REFERENCES = References(suite="sample")
RED = (Status.REGRESSION, Status.UNCONFIRMED)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(judgement, "GATE_S", 0.0)
    with open_store(tmp_path / "t.db") as opened:
        yield opened


def judged(store: Store, run: str) -> Status:
    """Judge a run and give it its verdict, as task `verdict` does."""
    result = judgement.judge_run(store, run, rules=RULES, references=REFERENCES)
    store.runs.finish(run, result.status, result.reason, store.runs.get(run).created_at + 50)
    return result.status


def measured(store: Store, week: int, factor: float = 1.0) -> str:
    def slower(number: Number) -> float:
        return factor if number[4] == "batch_cost" else 1.0

    return stored(store, week, slower, NODES)


def slower_and_accepted(store: Store) -> str:
    """The first of some slower runs; a later one was accepted."""
    for week in range(6):
        assert judged(store, measured(store, week)) is Status.PASS
    red = measured(store, 6, factor=4.0)
    assert judged(store, red) in RED
    for week in range(7, 13):
        run = measured(store, week, factor=4.0)
        status = judged(store, run)
        if week == 7:
            assert status in RED
            about = {"who": "mia", "why": "new machine", "metrics": ("batch_cost",)}
            store.baselines.accept(draft_baselines(store, store.runs.get(run), BaselineKind.ACCEPT, **about))
        else:
            assert status is Status.PASS
    return red


def executed_again(store: Store, run: str, step: str, factor: float) -> None:
    """Repeat a step after all that was stored."""
    nodes, before = NODES if step == TRAIN else NODES[:1], store.history.facts(run).measurements
    number = store.attempts.open(run, step, nodes, store.now())
    records = [a_record(run, step=step, node=node, attempt=number) for node in nodes]
    store.attempts.close(run, step, number, Status.PASS, "", records, store.now())
    if step == INFER:
        record = a_record(run, step=step, leg=LEG, attempt=number)
        store.steps.set_leg(run, step, LEG, number, Status.PASS, "", record)
    for old in before:
        if old.step == step:
            known = old.model_dump() | {"attempt": number, "value": old.value * factor}
            store.measurements.add([Measurement(**known)])


def test_a_red_run_stays_red_when_judged_after_an_accepted_change(store: Store) -> None:
    red = slower_and_accepted(store)
    before = judgement.judge_run(store, red, rules=RULES, references=REFERENCES)
    assert before.status in RED
    assert "of 6 runs" in before.reason
    assert rejudge(store, store.runs.get(red), rules=RULES, references=REFERENCES).status in RED


def test_run_without_a_verdict_keeps_the_time_of_its_judgement(store: Store) -> None:
    """Its task `verdict` was ended before it gave the run a status."""
    run = measured(store, 0)
    judgement.judge_run(store, run, rules=RULES, references=REFERENCES)
    first = store.documents.get(run, JudgedDocument)
    judgement.judge_run(store, run, rules=RULES, references=REFERENCES)
    assert first is not None
    assert store.documents.get(run, JudgedDocument) == first
    assert judged_times(store, store.runs.get(run)) == JudgedTimes(first.at)


def test_run_of_an_earlier_version_was_judged_at_its_end(store: Store) -> None:
    red = slower_and_accepted(store)
    store.documents.remove(red, JudgedDocument)
    assert judged_times(store, store.runs.get(red)) == JudgedTimes(store.runs.get(red).ended_at)
    assert judged(store, red) in RED


def test_repeated_step_is_judged_as_of_now_and_others_as_before(store: Store) -> None:
    red = slower_and_accepted(store)
    executed_again(store, red, INFER, 1.0)
    at = store.runs.get(red).ended_at
    assert judged_times(store, store.runs.get(red)) == JudgedTimes(at, {INFER: None})
    judgement.judge_run(store, red, rules=RULES, references=REFERENCES)
    results = {(result.step, result.metric): result for result in store.checks.results(red)}
    assert results[TRAIN, "batch_cost"].status in RED
    assert "of 11 runs" in results[INFER, "inference_time"].reason
    later = judged_times(store, store.runs.get(red))
    assert later.run == at
    assert later.steps == {INFER: pytest.approx(store.now(), abs=60)}, "judged again, it keeps this time"


def test_run_whose_steps_were_all_repeated_is_judged_as_of_now(store: Store) -> None:
    red = slower_and_accepted(store)
    for step in ("v/train", "v/export", "v/infer_cpu"):
        executed_again(store, red, step, 1.0)
    assert judged_times(store, store.runs.get(red)) == JudgedTimes(), "not the preparation, which measures nothing"
    assert judged(store, red) is Status.PASS
