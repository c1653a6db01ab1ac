"""ran.training: the declared kind of device and precision, as reported by processes or observed from outside."""

from types import ModuleType
from typing import Any

import pytest

from tipcflow.check import CheckContext
from tipcflow.check.proof.training import ran_training
from tipcflow.domain import CheckResult, Facts, NodeFacts, ProcessReport, RankReport, Status, Variant

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


# What the framework probe reports of a training that never used CUDA, and of one on a GPU.
ON_CPU = {"framework": "torch", "device": "cpu", "placed": "cpu", "steps": 128}
ON_GPU = {"framework": "torch", "device": "gpu:0", "placed": "cuda:0", "steps": 128}
HALF = {**ON_GPU, "placed": "cpu"}  # CUDA is initialized, the model is not on the GPU
IN_HOST = "device of rank {0} on {1} (trained parameters in host memory)"


def probed(
    build: ModuleType, *reports: dict[str, Any], used: bool = False, printed: tuple[Any, ...] = ()
) -> Facts:
    """A report per node, of a launcher that sets no ranks in the environment, on nodes with GPUs."""
    found = dict(zip(build.NODES, reports, strict=True))
    records = tuple(
        record.model_copy(
            update={
                "probed": True,
                "processes": (ProcessReport(**found[record.node]),) if record.step == build.TRAIN else (),
                "peak_gpu_bytes": {"": 5 << 30} if used else {},
            }
        )
        for record in build.records()
    )
    return report(build, *printed, records=records, node_facts=with_gpus(build))


@pytest.mark.parametrize(
    ("reports", "used", "printed", "status", "why"),
    [
        ((ON_CPU, ON_CPU), False, (), FAILED, f"{EACH.format('cpu')}; declared: gpu"),
        ((ON_CPU, ON_CPU), False, (GPU, GPU), FAILED, f"{EACH.format('cpu')}; declared: gpu"),
        # Another library of the process uses the GPU.
        ((ON_CPU, ON_CPU), True, (), FAILED, f"{EACH.format('cpu')}; declared: gpu"),
        ((ON_GPU, ON_GPU), False, (), PASS, "trained with device gpu"),
        ((ON_GPU, ON_CPU), False, (), FAILED, "rank 1 on beta trained with device cpu; declared: gpu"),
        ((ON_GPU, HALF), True, (), OPEN, f"{IN_HOST.format(1, 'beta')} (declared: gpu) not reported"),
        # A process that evaluates or exports on the CPU after its training.
        (({**ON_GPU, "device": "cpu"}, ON_GPU), True, (), PASS, "trained with device gpu"),
        # No step of an optimizer: static programs, other libraries, older runners.
        (({**ON_CPU, "steps": 0},) * 2, True, (), PASS, "trained with device gpu"),
        (({**ON_GPU, "placed": ""},) * 2, False, (), OPEN, "device (declared: gpu) not reported"),
        (({**ON_CPU, "placed": "npu:0"},) * 2, False, (), OPEN, "device (declared: gpu) not reported"),
    ],
)
def test_framework_probe_shows_the_device_of_silent_processes(
    build: ModuleType,
    reports: tuple[dict[str, Any], ...],
    used: bool,
    printed: tuple[Any, ...],
    status: Status,
    why: str,
) -> None:
    """A training that falls back to the CPU of a GPU node is not green, whatever its suite prints."""
    result = judged(build, probed(build, *reports, used=used, printed=printed), "gpu")
    assert (result.status, result.reason) == (status, why)


def test_samples_of_gpu_memory_are_marked_as_seen_from_outside(build: ModuleType) -> None:
    by_probe = judged(build, probed(build, ON_GPU, ON_GPU, used=True), "gpu")
    by_memory = judged(build, probed(build, *({"steps": 0},) * 2, used=True), "gpu")
    assert (by_probe.status, by_memory.status) == (PASS, PASS)
    assert (by_probe.measured.is_seen_from_outside, by_memory.measured.is_seen_from_outside) == (False, True)


def test_a_process_of_a_rank_that_used_the_gpu_counts(build: ModuleType) -> None:
    """Its helpers may train something small on the CPU."""
    facts = probed(build, ON_GPU, ON_GPU)
    records = tuple(
        record.model_copy(update={"processes": (ProcessReport(**ON_CPU), *record.processes)})
        for record in facts.records
    )
    assert judged(build, facts.model_copy(update={"records": records}), "gpu").status is PASS
