"""Which log contains the reason: these are what Paddle 3.3.1 wrote when one of two ranks on a node failed."""

import re
from pathlib import Path

import pytest
from tests.unit.execute.failure.test_root_cause import HANGS, STOPPED, member

from tipcflow.domain import EndReason, ExitRecord, FailureClass, RankEnd, Status
from tipcflow.execute.failure.classify import class_of
from tipcflow.execute.failure.diagnosis import LogDiagnosis, diagnose_logs
from tipcflow.execute.failure.missing import mark_missing_rank
from tipcflow.execute.failure.outcome import Outcome, step_outcome
from tipcflow.parse.failures.rules import RULES

LOGS = Path(__file__).parents[3] / "golden" / "parse" / "failures"


def read(what: str, *, named: str = "", ends: tuple[RankEnd, ...] = ()) -> LogDiagnosis:
    """`named`: the rank's log that the launcher names instead: the first that it sees ending."""
    folder = LOGS / what
    output = (folder / "output.log").read_text()
    if named:
        lines = output.splitlines(keepends=True)
        found = next(line for line in lines if line.startswith("Container rank"))
        output = output.replace(found, f"Container rank 0 status failed cmd ['x'] code 1 log {named}\n")
    workers = {rank: (folder / f"workerlog.{rank}").read_text() for rank in (0, 1)}
    return diagnose_logs(output, {2 + rank: text for rank, text in workers.items()}, 2, ends)


def two_nodes(what: str, ends: dict[str, tuple[RankEnd, ...]] | None = None, *, named: str = "") -> Outcome:
    """The outcome of a recorded failure on two nodes.

    Args:
        ends: node -> which of its ranks ended by themselves, as its runner saw it.
        named: the log that the launcher of node b names instead.
    """
    members, report = [], {}
    for first, node in ((0, "a"), (2, "b")):
        folder = LOGS / "two_nodes" / what / node
        output = (folder / "output.log").read_text()
        if named and node == "b":
            output = re.sub(r"code -?\d+ log log/workerlog.\d", f"code 1 log log/{named}", output)
        workers = {first + local: (folder / f"workerlog.{local}").read_text() for local in (0, 1)}
        made = member(node, exit_code=1, ended_at=10.0 + first, ranks=(ends or {}).get(node, ()))
        assert made.record is not None
        members.append(made)
        report[node] = diagnose_logs(output, workers, first, made.record.ranks)
    return step_outcome(members, report, cancelled=False)


FIRST = {"a": (RankEnd(rank=0, exit_code=1), RankEnd(rank=1, signal=15))}


@pytest.mark.parametrize("named", ["", "workerlog.0"])
@pytest.mark.parametrize(
    ("what", "third", "kind", "status", "words"),
    [
        ("silent1", RankEnd(rank=3, exit_code=1), FailureClass.CODE_ERROR, Status.FAILED, "(exit code 1)"),
        ("silent1", RankEnd(rank=3, exit_code=0), FailureClass.CODE_ERROR, Status.FAILED, "(exit code 0)"),
        ("silent1", RankEnd(rank=3), FailureClass.CODE_ERROR, Status.FAILED, "exited without a message"),
        ("kill", RankEnd(rank=3, signal=9), FailureClass.KILLED, Status.INFRA_FAILURE, "ended by signal 9"),
        ("kill", RankEnd(rank=3, signal=11), FailureClass.CODE_ERROR, Status.FAILED, "(signal 11)"),
    ],
)
def test_silently_exiting_rank_is_the_root_cause_by_exit_code(
    what: str, third: RankEnd, kind: FailureClass, status: Status, words: str, named: str
) -> None:
    """Whatever the launcher and the peers print: gloo's word for a closed connection is TIMEOUT, too."""
    if third == RankEnd(rank=3) and named:
        words = "exited without a message"
    outcome = two_nodes(what, {**FIRST, "b": (third, RankEnd(rank=2, exit_code=1))}, named=named)
    assert outcome.failure
    assert (outcome.failure.root_cause, outcome.failure.failure_class, outcome.status) == (
        "node b, rank 3",
        kind,
        status,
    )
    assert words in outcome.reason


@pytest.mark.parametrize(
    "ends", [None, {**FIRST, "b": (RankEnd(rank=2, exit_code=1), RankEnd(rank=3, signal=15))}]
)
def test_rank_awaited_by_its_peers_is_the_hanging_rank(ends: dict[str, tuple[RankEnd, ...]] | None) -> None:
    outcome = two_nodes("hang", ends)
    assert outcome.failure
    assert (outcome.failure.root_cause, outcome.failure.failure_class) == ("node b, rank 3", FailureClass.HANG)
    assert outcome.status is Status.FAILED
    assert outcome.reason.startswith("no progress on node b, rank 3: peers timed out waiting for this rank")


def test_without_the_runners_report_the_launchers_code_shows_how_a_rank_ended() -> None:
    left, killed = two_nodes("silent1"), two_nodes("kill")
    assert left.failure
    assert killed.failure
    assert (left.failure.root_cause, left.failure.failure_class) == ("node b, rank 3", FailureClass.CODE_ERROR)
    assert (killed.failure.root_cause, killed.failure.failure_class) == ("node b, rank 3", FailureClass.KILLED)


def test_a_rank_of_nccl_that_its_peers_wait_for_hangs() -> None:
    waits = next(rule.sample for rule in RULES if rule.name == "peer is behind") + "\n"
    ends = (RankEnd(rank=0, signal=6), RankEnd(rank=1, signal=15))
    report = mark_missing_rank({"a": diagnose_logs("", {0: waits, 1: "iter 3\n"}, 0, ends)})["a"]
    assert (report.silent, kind_of(report)) == (1, FailureClass.HANG)


@pytest.mark.parametrize("local", [1, 2])
def test_missing_rank_is_searched_in_a_hanging_node(local: int) -> None:
    """The launcher of node a ends rank 1 before it reports anything; node b is stopped by its peer."""
    late = next(rule.sample for rule in RULES if rule.name == "peer is late")
    waits = f'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\n{late}\n'
    ends = (RankEnd(rank=0, exit_code=1), RankEnd(rank=1, signal=15))[:local]
    report = {
        "a": diagnose_logs("", dict(list({0: waits, 1: "iter 3\n"}.items())[:local]), 0, ends),
        "b": diagnose_logs("", dict.fromkeys(range(local, 2 * local), "iter 3\n"), local),
    }
    members = [member("a", ended_at=1.0, ranks=ends), member("b", ended_at=9.0, **STOPPED)]
    outcome = step_outcome(members, report, cancelled=False)
    assert outcome.failure is not None
    assert outcome.failure.failure_class is FailureClass.HANG
    assert outcome.failure.root_cause == ("node b, rank 1" if local == 1 else "node b")


def test_a_node_that_exited_without_a_message_does_not_hang() -> None:
    waits = next(rule.sample for rule in RULES if rule.name == "peer is behind") + "\n"
    report = {"a": diagnose_logs("", {0: waits}, 0), "b": diagnose_logs("", {1: "iter 3\n"}, 1)}
    outcome = step_outcome([member("a", ended_at=2.0), member("b", ended_at=1.0)], report, cancelled=False)
    assert outcome.failure is not None
    assert (outcome.failure.node, outcome.failure.failure_class) == ("b", FailureClass.CODE_ERROR)


def kind_of(report: LogDiagnosis, code: int = 1) -> FailureClass | None:
    record = ExitRecord(run="r", step="s", node="b", reason=EndReason.EXITED, exit_code=code)
    return class_of(record, report)


@pytest.mark.parametrize("named", ["", "log/workerlog.0"])
@pytest.mark.parametrize(
    ("what", "kind", "end"),
    [
        ("raise", FailureClass.CODE_ERROR, {"exit_code": 1}),
        ("kill", FailureClass.KILLED, {"signal": 9}),
        ("segv", FailureClass.CODE_ERROR, {"signal": 11}),
    ],
)
def test_failing_rank_is_the_root_cause_whichever_rank_the_launcher_names(
    what: str, kind: FailureClass, end: dict[str, int], named: str
) -> None:
    report = read(what, named=named, ends=(RankEnd(rank=3, **end), RankEnd(rank=2, exit_code=1)))
    assert (report.silent if report.silent >= 0 else report.rank) == 3
    assert not report.is_collateral
    assert kind_of(report) is kind


def test_node_with_only_lost_peer_reports_is_a_collateral_failure() -> None:
    collateral = (LOGS / "kill" / "workerlog.0").read_text()
    report = diagnose_logs("LAUNCH INFO 2026-11-21 16:04:36,220 Pod failed\n", {0: collateral, 1: collateral})
    assert report.is_collateral
    for code in (1, 250, 241):
        assert kind_of(report, code) is FailureClass.COMMUNICATION


def test_without_workers_the_output_decides() -> None:
    report = diagnose_logs("loading\nOSError: [Errno 28] No space left on device\n", {})
    assert (report.rank, kind_of(report)) == (-1, FailureClass.DISK)
    assert diagnose_logs("", {}) == LogDiagnosis()


@pytest.mark.parametrize("ends", [(), (RankEnd(rank=2, exit_code=0), RankEnd(rank=3, exit_code=1))])
def test_a_launcher_that_names_no_worker_does_not_hide_the_message(ends: tuple[RankEnd, ...]) -> None:
    """Both workers end between two polls of the launcher, which then prints nothing."""
    progress = "[Epoch 1, iter: 2] lr: 0.01, loss: 1.2\n"
    workers = {2: progress * 5, 3: progress + "training went wrong: the data is broken\n"}
    report = diagnose_logs("", workers, 2, ends)
    assert (report.rank, report.text) == (3, workers[3])
    member_b = member("b", exit_code=1, ended_at=1.0)
    outcome = step_outcome([member_b], {"b": report}, cancelled=False)
    assert outcome.reason.startswith("exit code 1 on node b, rank 3: training went wrong: the data is broken")


def test_without_any_message_no_rank_is_named() -> None:
    report = diagnose_logs("", {2: "[Epoch 1, iter: 2] loss: 1.2\n", 3: ""}, 2)
    assert (report.rank, report.text) == (-1, "")


def test_stacks_of_evidence_in_a_log_are_not_a_message() -> None:
    progress = "[Epoch 1, iter: 2] lr: 0.01, loss: 1.2\n"
    # Stacks as faulthandler of CPython 3.11 writes them on the runner's signal.
    stacks = 'Current thread 0x00007f409860bb80 (most recent call first):\n  File "/suite/t.py", line 61 in step\n'
    report = diagnose_logs("", {2: progress + stacks, 3: progress + stacks}, 2)
    assert report.rank == -1
    outcome = step_outcome([member("b", ended_at=1.0, **HANGS)], {"b": report}, cancelled=False)
    assert outcome.failure is not None
    assert outcome.failure.root_cause == "node b"
    report = diagnose_logs("", {2: progress + stacks, 3: progress + "giving up\n" + stacks}, 2)
    assert report.rank == 3
