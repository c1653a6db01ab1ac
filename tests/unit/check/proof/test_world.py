"""ran.world_size: an idle node is distinguished from a rank that the runner may have overlooked."""

from collections.abc import Callable
from types import ModuleType

import pytest

from tipcflow.check import CheckContext, judge, verdict
from tipcflow.domain import CheckResult, Facts, MetricKey, Observed, PastRun, ProcessReport, Status

FAILED, PASS, OPEN = Status.FAILED, Status.PASS, Status.INSUFFICIENT_DATA
NOT_SEEN = "no log or process of rank 1 of 2 was found"


def with_idle_node(build: ModuleType, seconds: float, *, peer: float = 10.0, **changes: object) -> Facts:
    """Only rank 0 logs, no process reports itself, and no process of rank 1 was seen on node beta, whose job took
    this long."""
    beta = {"ended_at": 100.0 + seconds, "peak_rss_bytes": {"": 9, "total": 9}, "observed": Observed(), **changes}
    alpha = {"ended_at": 100.0 + peer}
    of_node = {"alpha": alpha, "beta": beta}
    return build.facts(
        ranks={},
        measurements=tuple(m for m in build.measurements() if m.rank != 1),
        records=tuple(
            r.model_copy(update=of_node[r.node]) if r.step == build.TRAIN else r for r in build.records()
        ),
    )


def of_run(facts: Facts, *history: PastRun) -> tuple[Status, CheckResult]:
    results = judge(facts, CheckContext(history=history))
    return verdict(facts, results)[0], next(each for each in results if each.check == "ran.world_size")


@pytest.mark.parametrize(
    ("seconds", "why"),
    [
        (0.3, "the job on beta ended after 0.3 s, that on alpha ran 10 s"),
        (9.0, "no process on beta had this rank within 9 s"),
    ],
)
def test_a_node_that_does_nothing(build: ModuleType, seconds: float, why: str) -> None:
    run, result = of_run(with_idle_node(build, seconds))
    assert (run, result.status, result.reason) == (FAILED, FAILED, f"{NOT_SEEN}; {why}")


@pytest.mark.parametrize(
    ("facts_of", "why"),
    [
        (lambda build: with_idle_node(build, 1.5, peer=2.5), "all of the job fell between two samples"),
        (lambda build: with_idle_node(build, 9.0, observed=None), "an older runner observes nothing"),
        (lambda build: with_idle_node(build, 9.0, peak_rss_bytes={}), "no process was sampled"),
        (lambda build: with_idle_node(build, 0.3, observed=Observed(servers=True)), "parameter servers"),
        (
            lambda build: with_idle_node(build, 9.0, processes=(ProcessReport(framework="paddle", steps=3),)),
            "the probe reported a process",
        ),
    ],
)
def test_a_rank_that_may_have_been_overlooked(
    build: ModuleType, facts_of: Callable[[ModuleType], Facts], why: str
) -> None:
    run, result = of_run(facts_of(build))
    assert (run, result.status) == (PASS, OPEN), why


def test_a_missing_rank_of_all_earlier_runs_is_unconfirmed(build: ModuleType) -> None:
    """The runner may have overlooked it: nothing proves that it trained, or that it did not."""
    facts = with_idle_node(build, 1.5, peer=2.5)
    known = {MetricKey(build.TRAIN, "", "peak_rss.rank1"): 3e8}
    history = [PastRun(run=f"r{number}", medians=known) for number in range(5)]
    run, result = of_run(facts, *history)
    assert (run, result.status) == (Status.UNCONFIRMED, Status.UNCONFIRMED)
    assert result.reason == f"{NOT_SEEN}; rank 1 was seen in each of the last 5 accepted runs"
    assert of_run(facts, *history[1:])[1].status is OPEN
