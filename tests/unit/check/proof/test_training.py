"""ran.training: the declared kind of device and precision, as reported by processes or observed from outside."""

from types import ModuleType
from typing import Any

import pytest

from tipcflow.check import CheckContext
from tipcflow.check.proof.training import ran_training
from tipcflow.domain import CheckResult, Facts, NodeFacts, RankReport, Status, Variant

FAILED, PASS, OPEN = Status.FAILED, Status.PASS, Status.INSUFFICIENT_DATA


def judged(build: ModuleType, facts: Facts, device: str = "cpu") -> CheckResult:
    run = build.run(environment=f"{device}/8x-h200/2-nodes/2-ranks")
    (result,) = ran_training(facts, CheckContext(run=run))
    return result


def report(build: ModuleType, *words: dict[str, Any], precision: str = "", **changes: Any) -> Facts:
    ranks = tuple(
        RankReport(node=node, rank=rank, world_size=2, **output)
        for rank, (node, output) in enumerate(zip(build.NODES, words, strict=False))
    )
    (variant,) = build.plan().variants
    plan = build.plan(variants=(variant.model_copy(update={"precision": precision}),))
    return build.facts(plan=plan, ranks={build.TRAIN: ranks}, **changes)


CPU, GPU = {"device": "cpu"}, {"device": "gpu:0"}


@pytest.mark.parametrize(
    ("words", "device", "precision", "status", "why"),
    [
        ((CPU, CPU), "cpu", "", PASS, "trained with device cpu"),
        ((GPU, {"device": "cuda:1"}), "gpu", "", PASS, "trained with device gpu"),
        ((GPU, CPU), "gpu", "", FAILED, "rank 1 on beta trained with device cpu; declared: gpu"),
        (({**CPU, "precision": "amp"},) * 2, "cpu", "amp", PASS, "trained with device cpu and precision amp"),
        (
            ({**CPU, "precision": "amp"}, {**CPU, "precision": "fp32"}),
            "cpu",
            "amp",
            FAILED,
            "rank 1 on beta trained with precision fp32; declared: amp",
        ),
        ((CPU, CPU), "cpu", "amp", OPEN, "precision (declared: amp) not reported"),
    ],
)
def test_reports_of_processes_decide_the_training_check(
    build: ModuleType, words: tuple[Any, ...], device: str, precision: str, status: Status, why: str
) -> None:
    result = judged(build, report(build, *words, precision=precision), device)
    assert (result.status, result.reason) == (status, why)


EACH = "rank 0 on alpha trained with device {0}, rank 1 on beta trained with device {0}"


def with_gpus(build: ModuleType) -> tuple[NodeFacts, ...]:
    return tuple(NodeFacts(node=node, gpus=({"name": "H200"},)) for node in build.NODES)


def test_silent_processes_are_seen_from_outside(build: ModuleType) -> None:
    """GPU memory in use is proof of a GPU; idle GPUs are no proof of a CPU."""
    busy = tuple(one.model_copy(update={"peak_gpu_bytes": {"0": 5 << 30}}) for one in build.records())
    on_gpu = {"node_facts": with_gpus(build), "ranks": {}}
    assert judged(build, build.facts(records=busy, **on_gpu), "gpu").status is PASS
    result = judged(build, build.facts(records=busy, **on_gpu), "cpu")
    assert (result.status, result.reason) == (FAILED, f"{EACH.format('gpu')}; declared: cpu")
    result = judged(build, build.facts(**on_gpu), "gpu")
    assert (result.status, result.reason) == (OPEN, "device (declared: gpu) not reported")
    result = judged(build, build.facts(ranks={}), "gpu")
    assert (result.status, result.reason) == (FAILED, f"{EACH.format('cpu')}; declared: gpu")
    assert judged(build, build.facts(ranks={}), "cpu").status is PASS


def test_every_process_counts(build: ModuleType) -> None:
    """The observation of one node or rank does not count for the others."""
    half = tuple(
        one.model_copy(update={"peak_gpu_bytes": {"0": 5 << 30} if one.node == "alpha" else {}})
        for one in build.records()
    )
    result = judged(build, build.facts(records=half, node_facts=with_gpus(build), ranks={}), "gpu")
    assert (result.status, result.reason) == (
        OPEN,
        "device of rank 1 on beta (declared: gpu) not reported",
    )
    result = judged(build, report(build, GPU, {}, node_facts=with_gpus(build)), "gpu")
    assert (result.status, result.reason) == (
        OPEN,
        "device of rank 1 on beta (declared: gpu) not reported",
    )
    assert judged(build, report(build, GPU, {}), "gpu").status is FAILED, "beta has no GPU"
    result = judged(build, report(build, {**CPU, "precision": "amp"}, CPU, precision="amp"))
    assert (result.status, result.reason) == (
        OPEN,
        "precision of rank 1 on beta (declared: amp) not reported",
    )


@pytest.mark.parametrize(("seen", "status"), [({"0", "1"}, PASS), ({"0"}, OPEN), ({""}, OPEN)])
def test_ranks_of_one_node_are_distinguished(build: ModuleType, seen: set[str], status: Status) -> None:
    steps = tuple(
        step.model_copy(update={"nodes": ("alpha",)}) if step.id == build.TRAIN else step
        for step in build.plan().steps
    )
    busy = tuple(
        one.model_copy(update={"peak_gpu_bytes": dict.fromkeys(seen, 5 << 30)}) for one in build.records()
    )
    facts = build.facts(plan=build.plan(steps=steps), records=busy, node_facts=with_gpus(build), ranks={})
    assert judged(build, facts, "gpu").status is status


def test_a_group_may_request_the_cpu_of_a_gpu_cluster(build: ModuleType) -> None:
    plan = build.plan(variants=(Variant(id="v", trainer="norm_train", devices=("-1",)),))
    facts = report(build, CPU, CPU).model_copy(update={"plan": plan})
    assert judged(build, facts, "gpu").status is PASS


def test_training_that_failed_is_not_evaluated(build: ModuleType) -> None:
    facts = build.facts(step_status={build.TRAIN: FAILED})
    assert ran_training(facts, CheckContext(run=build.run())) == []
    (result,) = ran_training(build.facts(), CheckContext())
    assert result.status is OPEN
