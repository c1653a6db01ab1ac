"""A full GPU: the model's fault, or that of other processes on it."""

from pathlib import Path
from typing import Any

import pytest
from tests.unit.execute.failure.test_root_cause import STOPPED, member

from tipcflow.domain import Command, ExitRecord, FailureClass, GpuProcess, Leg, Status
from tipcflow.execute.failure.diagnosis import LogDiagnosis, diagnose_logs
from tipcflow.execute.failure.outcome import Outcome, leg_outcome, step_outcome

LOGS = Path(__file__).parents[3] / "golden" / "gpu"
TORCH, CONTAINER, PADDLE = (
    (LOGS / f"synthetic_{name}.log").read_text() for name in ("neighbor_torch", "neighbor_container", "paddle")
)
ALONE = (LOGS / "out_of_memory.log").read_text()
WITHOUT_NUMBERS = "RuntimeError: CUDA error: out of memory\n"
GIB = 1 << 30
TAKEN, OOM = FailureClass.GPU_TAKEN, FailureClass.OOM_GPU


def process(pid: int, gib: float, *, own: bool = False, gpu: int = 0, rank: int = -1) -> GpuProcess:
    return GpuProcess(
        gpu=gpu, pid=pid, size_bytes=int(gib * GIB), is_own=own, rank=rank,
        command="" if own else "python3, user alice", total_bytes=int(79.18 * GIB),
    )  # fmt: skip


OTHER, OWN = process(4242, 70), process(5151, 8, own=True)


def outcome_of(log: str, *processes: GpuProcess, rank: int = -1, **record: Any) -> Outcome:
    part = member("b", gpu_processes=processes, **record)
    diagnosis = diagnose_logs(log, {}) if rank < 0 else diagnose_logs("", {rank: log})
    return step_outcome([part], {"b": diagnosis}, cancelled=False)


def class_of(*arguments: Any, **record: Any) -> FailureClass:
    outcome = outcome_of(*arguments, **record)
    assert outcome.failure is not None
    assert outcome.status is outcome.failure.remedy.status
    return outcome.failure.failure_class


@pytest.mark.parametrize(
    ("log", "processes", "named"),
    [
        (TORCH, (), "GPU 0, 78.2 GiB in use: process 4242 70.0 GiB"),
        (TORCH, (OTHER, OWN), "GPU 0, 78.2 GiB in use: process 4242 (python3, user alice) 70.0 GiB"),
        (CONTAINER, (), "GPU 0, 78.2 GiB in use: process 4242 70.0 GiB"),
        (PADDLE, (OTHER, OWN), "GPU 0, 78.2 GiB in use: process 4242 (python3, user alice) 70.0 GiB"),
        (
            WITHOUT_NUMBERS,
            (process(7, 9), process(4242, 70)),
            "GPU 0, 79.2 GiB in use: process 4242 (python3, user alice) 70.0 GiB, process 7 (",
        ),
    ],
)
def test_other_processes_are_the_cause(log: str, processes: tuple[GpuProcess, ...], named: str) -> None:
    outcome = outcome_of(log, *processes)
    assert outcome.failure is not None
    assert (outcome.status, outcome.failure.failure_class) == (Status.INFRA_FAILURE, TAKEN)
    assert outcome.failure.node == "b"
    assert outcome.reason.startswith(f"other processes held the GPU's memory on node b ({named}"), outcome.reason
    assert "(exit code 1): " in outcome.reason


@pytest.mark.parametrize(
    ("log", "processes"),
    [
        (ALONE, ()),
        (PADDLE, ()),
        (WITHOUT_NUMBERS, ()),
        # No other process was there.
        (PADDLE, (process(5151, 78, own=True),)),
        # The process that the message lists is of the run: another job on the same GPU, a server, a data loader.
        (TORCH, (process(4242, 70, own=True),)),
        # A small neighbor: the model holds most of the memory.
        (PADDLE, (process(4242, 30), process(5151, 48, own=True))),
        (WITHOUT_NUMBERS, (process(4242, 30),)),
        # It did not fit without the neighbor either.
        (PADDLE.replace("4.000000GB", "75.000000GB"), (OTHER, OWN)),
        # The neighbor came after the failure: there was no room for it before.
        (PADDLE.replace("78.180000GB", "20.000000GB"), (OTHER, OWN)),
        # A fragmented pool: there was enough.
        (TORCH.replace("of which 1.00 GiB", "of which 5.00 GiB"), (OTHER, OWN)),
        # A limit of the framework.
        (TORCH.replace("Of the allocated", "8.12 GiB allowed; Of the allocated"), (OTHER, OWN)),
        # The neighbor is on another GPU.
        (PADDLE, (process(4242, 70, gpu=1), OWN)),
    ],
)
def test_without_evidence_the_model_is_the_cause(log: str, processes: tuple[GpuProcess, ...]) -> None:
    assert class_of(log, *processes) is OOM


def test_unlisted_process_may_be_another_rank() -> None:
    assert class_of(TORCH, world_size=1) is TAKEN
    assert class_of(TORCH, world_size=2) is OOM
    assert class_of(TORCH, OTHER, OWN, world_size=2) is TAKEN


def test_gpu_is_that_of_the_failed_rank() -> None:
    ranks = (process(11, 8, own=True, rank=0), process(12, 8, own=True, rank=1, gpu=1))
    for gpu, expected in ((0, OOM), (1, TAKEN)):
        there = (process(4242, 70, gpu=gpu), *ranks)
        assert class_of(PADDLE, *there, rank=1, world_size=2) is expected
    # A rank that found no memory at all was never listed.
    there = (process(4242, 79, gpu=1), ranks[0])
    outcome = outcome_of(WITHOUT_NUMBERS, *there, rank=1, world_size=2)
    assert "on node b, rank 1 (GPU 1, 79.2 GiB in use: process 4242 " in outcome.reason
    # It may be on either.
    there = (process(4242, 79, gpu=1), process(4343, 79, gpu=2), ranks[0])
    assert class_of(WITHOUT_NUMBERS, *there, rank=1, world_size=2) is OOM


def test_leg_names_the_other_process() -> None:
    part = member("b")
    fields = {"run": "r", "step": "v/infer", "node": "b", "leg": "gpu", "reason": "exited", "exit_code": 1}
    part.legs["gpu"] = ExitRecord.model_validate({**fields, "gpu_processes": (OTHER, OWN)})
    leg = Leg(id="gpu", command=Command(text="true"), device="gpu")
    outcome = leg_outcome(leg, part, diagnose_logs(PADDLE, {}), cancelled=False)
    assert outcome.status is Status.INFRA_FAILURE
    assert "process 4242 (python3, user alice) 70.0 GiB" in outcome.reason


def test_member_with_the_cause_was_stopped_for_its_peer() -> None:
    """Its log has the cause, but the launcher was still running."""
    members = [
        member("a", exit_code=250, ended_at=1),
        member("b", ended_at=2, gpu_processes=(OTHER, OWN), **STOPPED),
    ]
    outcome = step_outcome(members, {"b": diagnose_logs(PADDLE, {})}, cancelled=False)
    assert outcome.failure is not None
    assert (outcome.status, outcome.failure.failure_class) == (Status.INFRA_FAILURE, TAKEN)
    assert "process 4242 (python3, user alice) 70.0 GiB" in outcome.reason


def test_parameter_server_fails_because_of_a_full_gpu() -> None:
    end = {"observed": {"servers": True}, "servers": [{"rank": 0, "at": 1.0, "exit_code": 1}]}
    part = member("b", gpu_processes=(OTHER, OWN), **end)
    outcome = step_outcome([part], {"b": LogDiagnosis(servers={0: PADDLE})}, cancelled=False)
    assert outcome.failure is not None
    assert (outcome.status, outcome.failure.failure_class) == (Status.INFRA_FAILURE, TAKEN)
    assert outcome.reason.startswith("parameter server 0 on node b exited with code 1 (GPU 0, 78.2 GiB in use: ")
