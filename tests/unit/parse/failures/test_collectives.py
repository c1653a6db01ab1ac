"""What ranks of NCCL print when a peer hangs or leaves.

The logs are synthetic: no GPU is at hand. Their formats are those of real logs: PyTorch 2.x on A100, V100 and H800
(pytorch/pytorch#118369, NVIDIA/nccl#795, #1514, #1610, #2076) and Paddle's `CommTaskManager`.
"""

import pytest

from tipcflow.domain import EndReason, ExitRecord, FailureClass, RankEnd
from tipcflow.execute.failure.classify import class_of
from tipcflow.execute.failure.diagnosis import LogDiagnosis, diagnose_logs
from tipcflow.execute.failure.missing import mark_missing_rank
from tipcflow.parse.failures.collectives import Collective, timed_out_collective
from tipcflow.parse.failures.failure import find_failure


def torch_waits(rank: int, number: int, group: str = "PG ID 0 PG GUID 0(default_pg)") -> str:
    at = f"[rank{rank}]:[E626 06:24:44.90388191{rank} ProcessGroupNCCL.cpp"
    work = f"WorkNCCL(SeqNum={number}, OpType=ALLREDUCE, NumelIn=9801523, NumelOut=9801523, Timeout(ms)=600000)"
    caught = f"[Rank {rank}] Watchdog caught collective operation timeout: {work} ran for 600020 milliseconds"
    state = f"last enqueued NCCL work: {number + 3}, last completed NCCL work: {number - 1}."
    return (
        f"{at}:616] {caught} before timing out.\n"
        f"{at}:1785] [{group} Rank {rank}] Exception (either an error or timeout) detected by watchdog at work: "
        f"{number}, {state}\n"
        f"{at}:630] [Rank {rank}] To avoid data inconsistency, we are taking the entire process down.\n"
    )


# PyTorch 1.13 prints no group.
UNNAMED = "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={number}, OpType=ALLREDUCE)\n"


def paddle_waits(rank: int, number: int, what: str = "start but not finish", group: str = "0_default") -> str:
    return (
        f"W1123 12:00:0{rank}.123456  4242 comm_task_manager.cc:146] Find timeout {what} task:group_key:{group},"
        f"group_ranks:[0, 1, 2, 3],global_rank:{rank},local_rank:{rank},comm_count:{number},op:allreduce,"
        "started:1,completed:0,numel:1024,nranks:4\n"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (torch_waits(1, 810) + torch_waits(1, 808), Collective(808, "0")),
        (torch_waits(10, 15734, "PG 1"), Collective(15734, "1")),
        (torch_waits(0, 9, "PG 1") + torch_waits(0, 8, "PG 5"), Collective(8, several=True)),
        (paddle_waits(3, 7), Collective(7, "0_default")),
        (paddle_waits(3, 8) + paddle_waits(3, 9, "init but not start"), Collective(8, "0_default")),
        ("[Epoch 1, iter: 3] loss: 2.08571\n", None),
        ("", None),
    ],
)
def test_the_first_collective_that_timed_out_is_named(text: str, expected: Collective | None) -> None:
    assert timed_out_collective(text) == expected


CLOSED = """[rank1]: Traceback (most recent call last):
[rank1]:   File "train.py", line 51, in <module>
[rank1]:     main()
[rank1]: torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/ProcessGroupNCCL.cpp:1275, {short}
[rank1]: {name}: {meaning}
[rank1]: Last error:
[rank1]: {last}
"""
INTERNAL = {"short": "internal error", "name": "ncclInternalError", "meaning": "Internal check failed."}
REMOTE = {
    "short": "remote process exited or there was a network error, NCCL version 2.21.5",
    "name": "ncclRemoteError",
    "meaning": "A call failed possibly due to a network error or a remote process exiting prematurely.",
}


@pytest.mark.parametrize(
    ("words", "last", "is_collateral"),
    [
        (INTERNAL, "Net : Connection closed by remote peer user<43236>", True),
        (REMOTE, "socketProgressOpt: Call to recv from 172.16.0.9<33759> failed : Connection reset by peer", True),
        (INTERNAL, "Bootstrap : no socket interface found", False),
    ],
)
def test_rank_whose_peer_disconnected_is_collateral(words: dict[str, str], last: str, is_collateral: bool) -> None:
    failure = find_failure(CLOSED.format(**words, last=last))
    assert failure is not None
    assert (failure.failure_class, failure.is_collateral) == (FailureClass.COMMUNICATION, is_collateral)


def test_killed_rank_is_the_cause_despite_nccl_errors_of_peers() -> None:
    closed = CLOSED.format(**INTERNAL, last="Net : Connection closed by remote peer b<43236>")
    ends = (RankEnd(rank=1, signal=11), RankEnd(rank=0, exit_code=1))
    diagnosis = diagnose_logs("", {0: closed, 1: "iter 3\n"}, 0, ends)
    assert (diagnosis.silent, diagnosis.left) == (1, ends[0])
    record = ExitRecord(run="r", step="s", node="a", reason=EndReason.EXITED, exit_code=1)
    assert class_of(record, diagnosis) is FailureClass.CODE_ERROR


def hanging(nodes: dict[str, dict[int, str]]) -> list[tuple[str, int]]:
    """Node and rank that hang according to the logs of all ranks."""
    diagnoses = {node: diagnose_logs("", logs, min(logs)) for node, logs in nodes.items()}
    marked: dict[str, LogDiagnosis] = mark_missing_rank(diagnoses)
    return [(node, diagnosis.silent) for node, diagnosis in marked.items() if diagnosis.silent >= 0]


@pytest.mark.parametrize("waits", [torch_waits, paddle_waits])
def test_of_ranks_that_all_timed_out_the_one_behind_hangs(waits: object) -> None:
    assert callable(waits)
    nodes = {"a": {0: waits(0, 96), 1: waits(1, 96)}, "b": {2: waits(2, 64), 3: waits(3, 96)}}
    assert hanging(nodes) == [("b", 2)]


def test_without_one_rank_behind_no_rank_is_named() -> None:
    same = {
        "a": {0: torch_waits(0, 96), 1: torch_waits(1, 96)},
        "b": {2: torch_waits(2, 96), 3: torch_waits(3, 96)},
    }
    two = {**same, "b": {2: torch_waits(2, 64), 3: torch_waits(3, 64)}}
    groups = {**same, "b": {2: torch_waits(2, 64, "PG 5"), 3: torch_waits(3, 96)}}
    assert [hanging(nodes) for nodes in (same, two, groups)] == [[], [], []]


def test_operations_of_several_groups_are_not_compared() -> None:
    """The two ranks share group 0 only, in which both wait for operation 808."""
    nodes = {
        "a": {0: torch_waits(0, 40, "PG 1") + torch_waits(0, 808, "PG 0")},
        "b": {1: torch_waits(1, 41, "PG 2") + torch_waits(1, 808, "PG 0")},
    }
    assert hanging(nodes) == []
    unnamed = {"a": {0: UNNAMED.format(number=40)}, "b": {1: UNNAMED.format(number=41)}}
    assert hanging(unnamed) == [("a", 0)]
