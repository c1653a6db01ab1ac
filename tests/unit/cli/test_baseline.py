"""`tipcflow baseline`: decisions change what later runs are compared with, and stay visible."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import T0, TRAIN, a_run, record_run
from tests.support.two_nodes import NODES, Number, stored

from tipcflow.check.baseline.baseline import against_baseline
from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.domain import CheckResult, Measurement, MetricKey, PastRun, Phase, Status
from tipcflow.execute.verdict import confirm
from tipcflow.execute.verdict import judge as judgement
from tipcflow.execute.verdict.check_context import build_check_context
from tipcflow.store import Store

pytestmark = pytest.mark.slow

CONFIGS = Path(__file__).parents[3] / "configs"
COSTS = [0.10, 0.10, 0.10, 0.20, 0.21]
KEY = MetricKey(TRAIN, "", "batch_cost")


@pytest.fixture
def weeks(database: Any) -> list[str]:
    """Five weeks; from the fourth on a batch takes twice as long, and that run is a regression."""
    names = []
    with Store.open() as store:
        for week, cost in enumerate(COSTS):
            run = record_run(store, a_run(f"run-{week}", created_at=T0 + week, environment="cpu"), status=None)
            known = {"run": run.id, "step": TRAIN, "node": "node-a", "metric": "batch_cost", "unit": "s"}
            store.measurements.add([Measurement(**known, phase=Phase.TRAIN, value=cost)])
            store.runs.finish(run.id, Status.REGRESSION if week == 3 else Status.PASS, "", T0 + week + 0.5)
            names.append(run.id)
    return names


def history(store: Store, **fields: Any) -> tuple[dict[str, PastRun], Any]:
    """What a run of the week after is compared with, and the pins."""
    store_run = a_run("run-9", created_at=T0 + 9, environment="cpu", **fields)
    context = build_check_context(store, store_run, rules=Policy(name="p"), references=References(suite="sample"))
    return {one.run: one for one in context.history}, context.pins


@pytest.fixture
def next_week(weeks: list[str]) -> Any:
    with Store.open() as store:
        store.runs.create(a_run("run-9", created_at=T0 + 9, environment="cpu"))
    return history


def numbers(found: dict[str, PastRun]) -> dict[str, float]:
    return {name: one.medians[KEY] for name, one in found.items() if KEY in one.medians}


def test_accepted_runs_create_a_baseline(next_week: Any) -> None:
    with Store.open() as store:
        found, pins = next_week(store)
    assert numbers(found) == {"run-0": 0.1, "run-1": 0.1, "run-2": 0.1, "run-4": 0.21}
    assert not pins


def test_an_accepted_change_begins_a_history(next_week: Any, tipcflow: Callable[..., Any]) -> None:
    result = tipcflow(
        "baseline", "accept", "run-3", "--because", "a larger net", "--who", "mia", "--metric", "batch_cost"
    )
    assert (result.code, result.out) == (
        0,
        f"accepted: 1 metric values of {a_run().chain} in {a_run().mode}, run run-3\n",
    ), result.err
    with Store.open() as store:
        found, _ = next_week(store)
        assert numbers(found) == {"run-3": 0.2, "run-4": 0.21}
        others = {name for name, one in found.items() if any("loss" in key.metric for key in one.medians)}
        assert others == {"run-0", "run-1", "run-2", "run-4"}, "other numbers keep their history"
        assert found["run-3"].losses == {}, "and the run counts for that number alone"
    result = tipcflow("baseline", "show", "run-4", "--metric", "batch_cost")
    assert "since run-3" in result.out
    assert "a larger net" in result.out
    assert tipcflow("baseline", "reset", "run-3", "--because", "by mistake", "--who", "leo").code == 0
    with Store.open() as store:
        assert "run-0" in numbers(next_week(store)[0])
    report = json.loads(tipcflow("baseline", "show", "run-4", "--json").out)
    whys = [(one["who"], one["why"]) for one in report["decisions"] if one["metric"] == "batch_cost"]
    assert whys == [("mia", "a larger net"), ("leo", "by mistake")], "both stay visible"


def test_a_pin_stays_next_to_the_history(next_week: Any, tipcflow: Callable[..., Any]) -> None:
    assert tipcflow("baseline", "pin", "run-0", "--because", "release 2.6", "--step", TRAIN).code == 0
    with Store.open() as store:
        found, pins = next_week(store)
    assert (pins[KEY].value, pins[KEY].run, pins[KEY].why) == (0.1, "run-0", "release 2.6")
    assert len(numbers(found)) == 4
    assert "pinned from run-0" in tipcflow("baseline", "show", "run-4").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run-0", "--because", " "], "a decision needs a reason"),
        (["run-0", "--because", "x", "--metric", "nonsense"], "run run-0 has no comparable value of nonsense"),
        (["run-9", "--because", "x"], "run run-9 has no comparable value"),
        (["run-77", "--because", "x"], "run-77"),
    ],
)
def test_invalid_baseline_decisions_are_refused(
    next_week: Any, tipcflow: Callable[..., Any], words: list[str], message: str
) -> None:
    result = tipcflow("baseline", "accept", *words)
    assert (result.code, message in result.err) == (2, True), result.err
    with Store.open() as store:
        assert store.baselines.decisions(a_run().chain, a_run().mode, "cpu") == []


def slower(one: Number) -> float:
    """The model's work takes three times as long; reading data and starting processes takes as long as ever."""
    return 3.0 if one[4] in ("batch_cost", "ips") else 1.0


def judged(store: Store, week: int, how: Callable[[Number], float]) -> tuple[Status, dict[str, CheckResult]]:
    """A run of that week, judged and finished with the given values; the policy has no confirm runs."""
    run, rules = stored(store, week, how, NODES), Policy(name="mine", confirm_minutes=0)
    judgement.judge_run(store, run, rules=rules, references=References(suite="sample"))
    assert confirm.request_confirmation(store, store.runs.get(run), rules, f"{run}-again") is None
    result = judgement.judge_run(store, run, rules=rules, references=References(suite="sample"))
    store.runs.finish(run, result.status, result.reason, T0 + week * 100 + 50)
    return result.status, {one.check: one for one in store.checks.results(run)}


def a_little_slower(one: Number) -> float:
    """Beyond the limit and within twice the limit."""
    return 1.4 if one[4] in ("batch_cost", "ips") else 1.0


def test_unconfirmed_run_joins_the_history_only_when_accepted(
    database: Any, tipcflow: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judgement, "GATE_S", 0.0)
    with Store.open() as store:
        for week in range(6):
            judged(store, week, lambda _: 1.0)
        for week in (6, 7):
            status, answers = judged(store, week, a_little_slower)
            speed = answers["speed.batch_cost"]
            assert (status, speed.status, speed.values["n"]) == (Status.UNCONFIRMED, Status.UNCONFIRMED, 6)
            assert confirm.NONE in speed.reason
    assert tipcflow("baseline", "accept", "run-07", "--because", "larger images", "--who", "mia").code == 0
    with Store.open() as store:
        status, answers = judged(store, 8, a_little_slower)
        assert (status, answers["speed.batch_cost"].values["n"]) == (Status.PASS, 1)


def test_accepted_change_is_the_baseline_of_later_runs(
    database: Any, tipcflow: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the command line to the verdict of the next runs, in one database."""
    monkeypatch.setattr(judgement, "GATE_S", 0.0)
    with Store.open() as store:
        for week in range(6):
            assert judged(store, week, lambda _: 1.0)[0] is Status.PASS
        status, answers = judged(store, 6, slower)
        assert (status, answers["speed.batch_cost"].values["confirm"]) == (Status.REGRESSION, True)
        status, answers = judged(store, 7, slower)
        assert (status, answers["speed.batch_cost"].status) == (Status.REGRESSION, Status.REGRESSION)
    result = tipcflow("baseline", "accept", "run-07", "--because", "larger images", "--who", "mia")
    assert (result.code, result.out.startswith("accepted: ")) == (0, True), result.err
    with Store.open() as store:
        status, answers = judged(store, 8, slower)
        assert (status, answers["speed.batch_cost"].status) == (Status.PASS, Status.INSUFFICIENT_DATA)
        assert answers["speed.batch_cost"].reason.endswith("1 of 5 earlier runs for a comparison"), answers[
            "speed.batch_cost"
        ].reason
        for week in range(9, 13):
            judged(store, week, slower)
        status, answers = judged(store, 13, slower)
        assert (status, answers["speed.batch_cost"].status) == (Status.PASS, Status.PASS)
    shown = json.loads(tipcflow("baseline", "show", "run-13", "--metric", "batch_cost", "--json").out)
    (row,) = shown["baselines"]
    assert (row["kind"], row["runs"], round(row["value"], 2)) == ("since run-07", 6, 0.15)
    (decision,) = shown["decisions"]
    assert (decision["who"], decision["why"], decision["run"]) == ("mia", "larger images", "run-07")
    assert decision["accepted_at"] > T0 / 2
    assert tipcflow("baseline", "reset", "run-13", "--because", "it was a mistake", "--who", "leo").code == 0
    table = tipcflow("baseline", "show", "run-13", "--metric", "batch_cost").out
    assert "automatic" in table
    assert [word in table for word in ("larger images", "mia", "it was a mistake", "leo")] == [True] * 4


def test_a_drift_too_slow_for_its_history_is_found_against_a_pin(
    database: Any, tipcflow: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judgement, "GATE_S", 0.0)

    def drifting(week: int) -> Callable[[Number], float]:
        return lambda one: 1.04**week if one[4] == "batch_cost" else 1.0

    with Store.open() as store:
        judged(store, 0, drifting(0))
    assert tipcflow("baseline", "pin", "run-00", "--because", "release", "--metric", "batch_cost").code == 0
    with Store.open() as store:
        report = [judged(store, week, drifting(week))[1] for week in range(1, 9)]
    found = [one["baseline.pinned"].status for one in report]
    assert found[0] is Status.INSUFFICIENT_DATA
    assert found[-1] is Status.REGRESSION
    assert Status.REGRESSION not in {one["speed.batch_cost"].status for one in report}, "its history drifts along"


@pytest.mark.parametrize(("policy", "runs"), [("weekly", 10), ("pr", 10)])
def test_baseline_prints_the_runs_that_the_check_uses(
    database: Any, tipcflow: Callable[..., Any], policy: str, runs: int
) -> None:
    """40 accepted runs, from the 31st on twice as fast: the check's number and its count of runs."""
    rules = judgement.load_policy(policy, CONFIGS)
    with Store.open() as store:
        for week in range(41):
            cost = 0.2 if week < 30 else 0.1
            run = record_run(store, a_run(f"run-{week:02}", created_at=T0 + week, environment="cpu"), status=None)
            known = {"run": run.id, "step": TRAIN, "node": "node-a", "metric": "batch_cost", "unit": "s"}
            noise = 1 + 0.002 * (week * 7 % 5 - 2)
            store.measurements.add([Measurement(**known, phase=Phase.TRAIN, value=cost * noise)])
            store.runs.finish(run.id, Status.PASS, "", T0 + week + 0.5)
        context = build_check_context(store, run, rules=rules, references=References(suite="sample"))
        answers = against_baseline(store.history.facts(run.id), context)
    (check,) = [one for one in answers if one.check == "speed.batch_cost"]
    report = json.loads(
        tipcflow("baseline", "show", run.id, "--policy", policy, "--metric", "batch_cost", "--json").out
    )
    (row,) = report["baselines"]
    assert (row["value"], row["runs"]) == (check.values["baseline"], check.values["n"])
    assert (row["value"], row["runs"]) == (pytest.approx(0.1, rel=0.01), runs)
    assert report["policy"] == policy
