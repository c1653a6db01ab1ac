"""Legs that the newest runs left out are compared with the runs that executed them."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import INFER, T0, a_run, losses, open_store, plan_without, record_run

from tipcflow.check.evidence import found_in
from tipcflow.check.summary import summary
from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.config.suite import Prints
from tipcflow.domain import CheckResult, Evidence, EvidenceKey, LegKey, MetricKey, Phase, Run, Status
from tipcflow.domain.run_documents import FoundDocument
from tipcflow.execute.verdict import judge as judgement
from tipcflow.execute.verdict.check_context import build_check_context, found_before, past_runs
from tipcflow.store import Store

ON, OFF = "cpu_onednn_on", "cpu_onednn_off"
TIMES = {leg: MetricKey(INFER, leg, "inference_time") for leg in (ON, OFF)}
# Searches 20 accepted runs for a leg.
RULES = Policy(name="p", history=4, min_history=3, confirm_minutes=0)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(judgement, "GATE_S", 0.0)
    with open_store(tmp_path / "t.db") as opened:
        yield opened


def _run(number: int) -> Run:
    return a_run(f"run-{number:02}", environment="cpu", created_at=T0 + number)


def _measure(store: Store, run: Run, leg: str, value: float = 6.0) -> None:
    known: dict[str, Any] = {"step": INFER, "leg": leg, "metric": "inference_time", "phase": Phase.INFER}
    store.measurements.add(losses(run.id, [value], rank=-1, unit="ms", **known))


def _accepted(store: Store, number: int, left_out: str = "") -> None:
    run = record_run(store, _run(number), left_out=left_out)
    for leg in (ON, OFF):
        if leg != left_out:
            _measure(store, run, leg)
    facts = store.history.facts(run.id)
    store.documents.put(run.id, FoundDocument(tuple(sorted(found_in(facts, Prints())))))


def _weeks(store: Store, complete: int, without: int, left_out: str = ON) -> Run:
    """Accepted runs with both legs, then some without one; return the next run."""
    for number in range(complete + without):
        _accepted(store, number, left_out if number >= complete else "")
    run = _run(99)
    store.runs.create(run, plan_without(""))
    return run


def _compared(store: Store, run: Run, key: MetricKey) -> list[str]:
    return [past.run for past in past_runs(store, run, {}, limit=RULES.history) if key in past.medians]


def _judged(store: Store, times: dict[str, float]) -> list[CheckResult]:
    run = record_run(store, _run(98), status=None)
    for leg, value in times.items():
        _measure(store, run, leg, value)
    judgement.judge_run(store, run.id, rules=RULES, references=References(suite="s"))
    return store.checks.results(run.id)


def test_dropped_leg_is_compared_with_older_runs(store: Store) -> None:
    run = _weeks(store, complete=6, without=9)
    assert _compared(store, run, TIMES[ON]) == ["run-02", "run-03", "run-04", "run-05"]
    assert _compared(store, run, TIMES[OFF]) == ["run-11", "run-12", "run-13", "run-14"]
    older = past_runs(store, run, {}, limit=RULES.history)[0]
    assert (set(older.medians), older.losses) == ({TIMES[ON]}, {}), "the runs count for this leg only"
    following = run.model_copy(update={"id": ""})
    assert "run-05" not in _compared(store, following, TIMES[OFF])


def test_leg_of_some_of_the_newest_runs_is_completed_by_older_ones(store: Store) -> None:
    for number in range(12):
        _accepted(store, number, ON if number % 3 else "")
    run = _run(99)
    store.runs.create(run, plan_without(""))
    assert _compared(store, run, TIMES[ON]) == ["run-00", "run-03", "run-06", "run-09"]


def test_run_that_drops_a_leg_needs_no_older_runs(store: Store) -> None:
    _weeks(store, complete=4, without=6)
    run = _run(98)
    store.runs.create(run, plan_without(ON))
    assert _compared(store, run, TIMES[ON]) == []


def test_slower_leg_is_found_behind_runs_without_the_leg(store: Store) -> None:
    for number in range(13):
        _accepted(store, number, ON if number >= 5 else "")
    results = {one.leg: one for one in _judged(store, {ON: 18.0, OFF: 6.0}) if one.check == "speed.inference_time"}
    assert results[ON].status is Status.UNCONFIRMED
    assert results[ON].reason.startswith("18 ms, 3.000 x the baseline 6 ms of 4 runs; ")
    assert results[OFF].status is Status.PASS


def test_lost_time_of_a_dropped_leg_is_missing_evidence(store: Store) -> None:
    for number in range(8):
        _accepted(store, number, ON if number >= 5 else "")
    results = _judged(store, {OFF: 6.0})
    history = found_before(store, store.runs.get("run-98"), RULES)
    assert [past.run for past in history if past.counts_for(LegKey(INFER, ON))] == ["run-02", "run-03", "run-04"]
    assert [past.run for past in history if past.counts_for(LegKey(INFER, OFF))] == ["run-05", "run-06", "run-07"]
    assert EvidenceKey(Evidence.METRIC, INFER, OFF, "inference_time") not in history[0].found
    reasons = [one.reason for one in results if (one.check, one.status) == ("ran.evidence", Status.FAILED)]
    why = "inference_time is missing or not a finite number; each of the last 3 accepted runs with this leg has it"
    assert any(f"leg {ON}: {why}" in reason for reason in reasons), reasons


def test_leg_beyond_the_searched_runs_is_named_in_the_reason(store: Store) -> None:
    run = _weeks(store, complete=3, without=20)
    context = build_check_context(store, run, rules=RULES, references=References(suite="s"))
    assert context.lapsed == {LegKey(INFER, ON): "run-02"}
    results = _judged(store, {ON: 18.0, OFF: 6.0})
    (speed,) = [one for one in results if (one.check, one.leg) == ("speed.inference_time", ON)]
    assert speed.reason == (
        "18 ms; 0 of 3 earlier runs for a comparison; "
        "most of the last 20 accepted runs left it out; last measured in run-02"
    )
    phrases = summary(store.history.facts("run-98"), results)
    assert "not evaluated (left out of most of the last 20 accepted runs): speed" in phrases


def test_new_leg_has_not_lapsed(store: Store) -> None:
    run = _weeks(store, complete=0, without=21)
    assert build_check_context(store, run, rules=RULES, references=References(suite="s")).lapsed == {}
