"""Metrics of the node runner that earlier runs had: a lost one is an `infra_failure`, not a pass."""

import math
from types import ModuleType
from typing import Any

import pytest

from tipcflow.check import CheckContext, judge, verdict
from tipcflow.check.evidence import evidence_section, found_in, ran_evidence
from tipcflow.config.suite import Prints
from tipcflow.domain import CheckResult, Facts, Measurement, PastRun, Phase, Status, numbers_of

INFRA, YOUNG, PASS = Status.INFRA_FAILURE, Status.INSUFFICIENT_DATA, Status.PASS
USUAL = "each of the last 5 accepted runs has it"
GIB = 1 << 30


def of_runner(build: ModuleType, metric: str, *, rank: int = -1, value: float = GIB, **where: Any) -> Measurement:
    known = {"node": "alpha", "step": build.TRAIN, "phase": Phase.RESOURCE, "epoch": -1, "iteration": -1}
    (sample,) = build.series((value,), metric, rank=rank, **(known | where))
    return sample


def runner_metrics(build: ModuleType) -> list[Measurement]:
    on_beta = {"node": "beta", "rank": 1}
    return [
        *(of_runner(build, "peak_rss", rank=rank, node=node) for rank, node in enumerate(build.NODES)),
        *(of_runner(build, "peak_rss", node=node) for node in build.NODES),
        of_runner(build, "peak_gpu", rank=0),
        of_runner(build, "peak_gpu", **on_beta),
        *(of_runner(build, "wall_time", node=node, value=10.0) for node in build.NODES),
        *(of_runner(build, "probe.cpu", node=node, value=0.1) for node in build.NODES),
        of_runner(build, "peak_rss", step=build.INFER, leg=build.ON),
        of_runner(build, "wall_time", step=build.INFER, leg=build.ON, value=10.0),
    ]


def history(build: ModuleType, measured: list[Measurement] | None = None) -> tuple[PastRun, ...]:
    own = [*build.measurements(), *(runner_metrics(build) if measured is None else measured)]
    found = tuple(sorted(found_in(build.facts(measurements=tuple(own)), Prints())))
    return tuple(PastRun(run=f"r{number}", found=found) for number in range(5))


def facts(build: ModuleType, measured: list[Measurement], **changes: Any) -> Facts:
    return build.facts(measurements=(*build.measurements(), *measured), **changes)


def lasting(build: ModuleType, seconds: float) -> dict[str, Any]:
    ended = tuple(one.model_copy(update={"ended_at": one.started_at + seconds}) for one in build.records())
    return {"records": ended}


def without(build: ModuleType, *names: str, rank: int | None = None, leg: str | None = None) -> list[Measurement]:
    return [
        one
        for one in runner_metrics(build)
        if one.metric not in names or rank not in (None, one.rank) or leg not in (None, one.leg)
    ]


def judged(build: ModuleType, measured: list[Measurement], **changes: Any) -> list[CheckResult]:
    return ran_evidence(facts(build, measured, **changes), CheckContext(history=history(build)))


def test_run_with_all_metrics_of_the_runner_passes(build: ModuleType) -> None:
    assert [one.status for one in judged(build, runner_metrics(build))] == [PASS]


@pytest.mark.parametrize(
    ("lost", "rank", "leg", "reason"),
    [
        (
            "peak_gpu",
            None,
            None,
            f"peak_gpu of rank 0 on node alpha was not measured; {USUAL}, "
            f"peak_gpu of rank 1 on node beta was not measured; {USUAL}",
        ),
        ("peak_gpu", 1, None, f"peak_gpu of rank 1 on node beta was not measured; {USUAL}"),
        ("peak_rss", 1, None, f"peak_rss of rank 1 on node beta was not measured; {USUAL}"),
        ("wall_time", None, "", f"wall_time on nodes alpha, beta was not measured; {USUAL}"),
        ("probe.cpu", None, None, f"probe.cpu on nodes alpha, beta was not measured; {USUAL}"),
    ],
    ids=["gpu", "gpu of a rank", "memory of a rank", "duration", "probe"],
)
def test_lost_metric_names_step_node_and_metric(
    build: ModuleType, lost: str, rank: int | None, leg: str | None, reason: str
) -> None:
    (result,) = judged(build, without(build, lost, rank=rank, leg=leg))
    assert (result.status, result.step, result.reason) == (INFRA, build.TRAIN, reason)


def test_lost_memory_of_a_leg_is_an_infra_failure_of_the_run(build: ModuleType) -> None:
    context = CheckContext(history=history(build))
    lost = facts(build, without(build, "peak_rss", leg=build.ON))
    (result,) = ran_evidence(lost, context)
    assert (result.status, result.step) == (INFRA, build.INFER)
    assert result.reason == f"leg {build.ON}: peak_rss on node alpha was not measured; {USUAL}"
    assert verdict(lost, judge(lost, context))[0] is INFRA
    states = {(one["step"], one.get("metric")): one["state"] for one in evidence_section(lost, context)}
    assert states[build.INFER, "peak_rss.all"] == "lost"


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_memory_that_is_not_finite_is_lost(build: ModuleType, value: float) -> None:
    measured = [
        one.model_copy(update={"value": value}) if one.metric == "peak_gpu" else one
        for one in runner_metrics(build)
    ]
    assert [one.status for one in judged(build, measured)] == [INFRA]


def test_memory_of_a_short_job_may_be_missing(build: ModuleType) -> None:
    """A job may end before its first sample; the reason names the metric."""
    results = judged(build, without(build, "peak_gpu", rank=1), **lasting(build, 1.2))
    assert [(one.status, one.step) for one in results] == [(YOUNG, build.TRAIN), (PASS, "")]
    assert results[0].reason == (
        "peak_gpu of rank 1 on node beta was not measured: the job ran 1.2 s; a sample is certain after 10 s"
    )
    lost = facts(build, without(build, "peak_gpu", rank=1), **lasting(build, 1.2))
    context = CheckContext(history=history(build))
    assert [one["state"] for one in evidence_section(lost, context) if one.get("metric") == "peak_gpu.rank1"] == [
        "not sampled"
    ]
    five = judged(build, without(build, "peak_rss"), **lasting(build, 5.0))
    assert {one.status for one in five} == {INFRA, YOUNG}, "the sum is sampled earlier than ranks"


def test_memory_without_ranks_replaces_that_of_ranks(build: ModuleType) -> None:
    """A launcher was removed: no process has a rank, and the memory of all processes is compared."""
    no_ranks = [one for one in runner_metrics(build) if not one.metric.startswith("peak") or one.rank < 0]
    alone = [*no_ranks, of_runner(build, "peak_gpu")]
    assert [one.status for one in judged(build, alone)] == [PASS]
    context = CheckContext(history=history(build, alone))
    assert [one.status for one in ran_evidence(facts(build, without(build)), context)] == [PASS]
    assert [one.status for one in judged(build, no_ranks)] == [INFRA]


def test_history_before_the_metrics_were_evidence_counts(build: ModuleType) -> None:
    medians = numbers_of(facts(build, runner_metrics(build)).measurements)
    known = {"found": history(build, [])[0].found, "medians": medians}
    context = CheckContext(history=tuple(PastRun(run=f"r{number}", **known) for number in range(5)))
    (result,) = ran_evidence(facts(build, without(build, "peak_gpu")), context)
    assert result.status is INFRA


def test_suite_file_may_declare_a_metric_missing(build: ModuleType) -> None:
    context = CheckContext(history=history(build), prints=Prints(may_be_missing=("peak_gpu*",)))
    assert [one.status for one in ran_evidence(facts(build, without(build, "peak_gpu")), context)] == [PASS]
