"""Exit records become the right status word and a reason that names the node."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tipcflow.domain import (
    EndReason,
    ExitRecord,
    Failure,
    FailureClass,
    InfraError,
    JobCommand,
    JobSpec,
    OutputFile,
    Status,
)
from tipcflow.execute.failure.classify import class_of
from tipcflow.execute.failure.diagnosis import LogDiagnosis, diagnose_logs
from tipcflow.execute.failure.outcome import (
    Outcome,
    before_the_first_step,
    failure_of,
    legs_outcome,
    reason_of,
    status_of,
    unready,
    unstarted_class,
    with_evidence,
    with_short_rank,
)
from tipcflow.execute.job.member import Member


def record(**values: object) -> ExitRecord:
    defaults: dict[str, object] = {"run": "r", "step": "v/train", "node": "b", "reason": EndReason.EXITED}
    return ExitRecord.model_validate({**defaults, **values})


@pytest.mark.parametrize(
    ("values", "tail", "status", "words"),
    [
        ({"exit_code": 0}, "", Status.PASS, ""),
        ({"exit_code": 0}, "the word failed stands here\nTraceback", Status.PASS, ""),
        ({"exit_code": 7}, "", Status.FAILED, "exit code 7 on node b"),
        ({"reason": "signaled", "signal": 9}, "", Status.INFRA_FAILURE, "on node b (ended by signal 9)"),
        ({"reason": "signaled", "signal": 11}, "", Status.FAILED, "signal 11 on node b"),
        ({"reason": "signaled", "signal": 9, "oom": True}, "", Status.FAILED, "node out of memory on node b"),
        (
            {"reason": "hang", "message": "no progress for 60 s"},
            "",
            Status.FAILED,
            "no progress for 60 s on node b",
        ),
        ({"reason": "deadline", "message": "ran longer than 5 s"}, "", Status.FAILED, "longer than 5 s on node b"),
        ({"reason": "refused", "message": "slot 0 is held by x"}, "", Status.INFRA_FAILURE, "slot 0 is held"),
        (
            {"reason": "refused", "message": "1 bytes free, 2 needed", "disk_full": True},
            "",
            Status.INFRA_FAILURE,
            "1 bytes free, 2 needed on node b",
        ),
        ({"exit_code": 1, "disk_full": True}, "", Status.INFRA_FAILURE, "disk is full"),
        ({"reason": "lease_expired"}, "", Status.INFRA_FAILURE, "lease expired on node b"),
        ({"reason": "stopped", "message": "cancelled", "stopped_by": "user"}, "", Status.CANCELLED, "cancelled"),
        ({"exit_code": 1}, "OSError: [Errno 28] No space left on device", Status.INFRA_FAILURE, "disk is full"),
        (
            {"exit_code": 1},
            "ModuleNotFoundError: No module named 'paddle'",
            Status.INFRA_FAILURE,
            "the node's software does not meet the model's requirements on node b",
        ),
    ],
)
def test_an_exit_record_decides_the_status(
    values: dict[str, object], tail: str, status: Status, words: str
) -> None:
    found, reason = status_of(record(**values), diagnose_logs(tail, {}))
    assert found is status
    assert words in reason


def test_exit_0_without_the_expected_file_is_failed() -> None:
    outputs = (OutputFile(path="out/inference.pdiparams", exists=False),)
    found, reason = status_of(record(exit_code=0, outputs=outputs))
    assert found is Status.FAILED
    assert reason == "exited with 0 but did not write out/inference.pdiparams on node b"


def test_exit_0_with_an_old_file_is_failed() -> None:
    outputs = (OutputFile(path="out/latest.pdparams", exists=True, fresh=False),)
    found, reason = status_of(record(exit_code=0, outputs=outputs))
    assert found is Status.FAILED
    assert "did not update the older out/latest.pdparams" in reason


def test_worst_leg_names_the_step() -> None:
    failure = Failure(failure_class=FailureClass.CODE_ERROR, node="a", leg="l2")
    ended = Outcome(Status.FAILED, "exit code 3 on node a", failure)
    legs = [Outcome(Status.PASS), ended, Outcome(Status.NOT_RUN, "no GPU")]
    assert legs_outcome(legs, Outcome(Status.PASS)) == Outcome(
        Status.FAILED, "1 of 2 legs failed: exit code 3 on node a", failure
    )


def test_a_step_of_which_no_leg_can_run_is_not_run() -> None:
    legs = [Outcome(Status.NOT_RUN, "no GPU")]
    assert legs_outcome(legs, Outcome(Status.PASS)) == Outcome(Status.NOT_RUN, "no GPU")


def test_lost_node_is_the_root_cause_of_failed_legs() -> None:
    legs = [Outcome(Status.PASS), Outcome(Status.BLOCKED, "not started")]
    step = Outcome(Status.INFRA_FAILURE, "node a was lost")
    assert legs_outcome(legs, step) == step


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InfraError("node b cannot be reached: timed out", node="b"), FailureClass.NODE_UNREADY),
        (InfraError("mkdir failed", node="b", output="mkdir: No space left on device"), FailureClass.DISK),
        (InfraError("mkdir failed", node="b", output="mkdir: Permission denied"), FailureClass.NODE_UNREADY),
        (InfraError("python failed", node="b", output="sh: python3: not found"), FailureClass.ENVIRONMENT),
        (InfraError("reworded", node="b", failure_class=FailureClass.ENVIRONMENT), FailureClass.ENVIRONMENT),
        (InfraError("No space left on device", node="b"), FailureClass.NODE_UNREADY),  # a message of tipcflow
        (InfraError("the slots are held by run x"), None),
    ],
)
def test_failure_before_the_first_step_has_a_class(error: InfraError, kind: FailureClass | None) -> None:
    failure = before_the_first_step(error)
    assert (failure and failure.failure_class) == kind
    assert failure is None or failure.root_cause == "node b"


def seen(node: str, rank: int, iteration: int, idle_s: float) -> dict[str, Any]:
    log = {"log": f"workerlog.{rank}", "rank": str(rank), "iteration": iteration, "idle_s": idle_s}
    return {"why": "deadline", "node": node, "logs": [log]}


@pytest.mark.parametrize(
    ("kind", "idle_s", "root_cause", "reason"),
    [
        (FailureClass.TIMEOUT, 0.2, "a", "late"),
        (
            FailureClass.TIMEOUT,
            45.0,
            "b",
            "rank 1 on node b is at iteration 40, other ranks at iteration 41; late",
        ),
        (FailureClass.HANG, 6.0, "b", "rank 1 on node b is at iteration 40, other ranks at iteration 41; late"),
    ],
)
def test_a_slow_job_has_no_rank_behind(
    tmp_path: Path, kind: FailureClass, idle_s: float, root_cause: str, reason: str
) -> None:
    """Ranks that continue are an iteration apart at any moment."""
    result = Outcome(Status.FAILED, "late", Failure(failure_class=kind, node="a"))
    evidence = {"a": seen("a", 0, 41, 0.1), "b": seen("b", 1, 40, idle_s)}
    files = [tmp_path / "train" / "b" / "evidence.json"]
    report = with_evidence(result, evidence, files, root=tmp_path)
    assert report.failure
    assert (report.failure.node, report.reason) == (root_cause, reason)
    assert report.failure.evidence == ("train/b/evidence.json",)


@pytest.mark.parametrize(
    ("by", "status", "kind", "words"),
    [
        ("node", Status.INFRA_FAILURE, FailureClass.NODE_LOST, "node b shut down (the runner got SIGTERM)"),
        (
            "operator",
            Status.INFRA_FAILURE,
            FailureClass.INTERRUPTED,
            "an operator ended the job on node b (reaped)",
        ),
        ("controller", Status.INFRA_FAILURE, FailureClass.INTERRUPTED, "the controller ended the job on node b"),
        ("user", Status.CANCELLED, None, "on node b"),
        (None, Status.INFRA_FAILURE, FailureClass.INTERRUPTED, "the job was stopped on node b"),
    ],
)
def test_status_of_a_stopped_job_depends_on_stopped_by(
    by: str | None, status: Status, kind: FailureClass | None, words: str
) -> None:
    message = "reaped" if by == "operator" else "the runner got SIGTERM"
    ended = record(reason="stopped", message=message, stopped_by=by)
    found, reason = status_of(ended)
    failure = failure_of(ended, LogDiagnosis(), node="b")
    assert (found, failure and failure.failure_class) == (status, kind)
    assert words in reason


def test_a_stop_whose_initiator_could_not_be_stored_is_the_disk() -> None:
    """On a full disk the stop request is an empty file."""
    ended = record(reason="stopped", message="stopped", disk_full=True)
    assert status_of(ended)[0] is Status.INFRA_FAILURE
    assert class_of(ended, LogDiagnosis()) is FailureClass.DISK
    assert class_of(record(reason="stopped", stopped_by="user", disk_full=True), LogDiagnosis()) is None


def test_a_deadline_that_the_budget_cut_is_the_budgets() -> None:
    ended = record(reason="deadline", message="not done within 9 s")
    late = "the run's budget of 60 s is used up"
    assert status_of(ended)[0] is Status.FAILED
    assert status_of(ended, late=late) == (Status.INFRA_FAILURE, f"{late}: not done within 9 s on node b")


def test_a_rank_that_stalled_until_the_end_of_the_budget_hangs(tmp_path: Path) -> None:
    result = Outcome(Status.INFRA_FAILURE, "late", Failure(failure_class=FailureClass.BUDGET, node="a"))
    evidence = {"a": seen("a", 0, 41, 0.1), "b": seen("b", 1, 40, 45.0)}
    report = with_evidence(result, evidence, [], root=tmp_path)
    assert report.failure
    assert (report.status, report.failure.failure_class, report.failure.node) == (
        Status.FAILED,
        FailureClass.HANG,
        "b",
    )


def test_the_class_of_a_full_disk_does_not_depend_on_the_message() -> None:
    refused = record(reason="refused", message="any words", disk_full=True)
    assert class_of(refused, diagnose_logs("", {})) is FailureClass.DISK
    assert (
        class_of(record(reason="refused", message="/w is full"), diagnose_logs("", {}))
        is FailureClass.NODE_UNREADY
    )


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("No space left on device", FailureClass.DISK),  # no bytes or no inodes: the error is the same
        ("Disk quota exceeded", FailureClass.DISK),
        ("Read-only file system", FailureClass.DISK),
        ("Permission denied", FailureClass.NODE_UNREADY),
    ],
)
def test_full_disk_at_the_start_of_a_job_is_a_disk_failure(words: str, kind: FailureClass) -> None:
    """The error comes from a runner of an older version, without `errno`, or from a command of the node."""
    refused = record(reason="refused", message=f"/w/jobs/r/v%2Ftrain/1: {words}")
    assert class_of(refused, diagnose_logs("", {})) is kind
    spec = JobSpec(
        run="r", step="v/train", node="b", fence=1, workspace="/w", root="/w",
        commands=(JobCommand(text="true", cwd="."),),
    )  # fmt: skip
    node: Any = SimpleNamespace(node=SimpleNamespace(name="b"))
    member = Member(node, spec, listener=lambda _: None, reconnect_s=0)
    error = InfraError("node b could not start v/train", node="b", output=f"cat: write error: {words}")
    ended = unready([member], error)
    assert ended.failure
    assert (ended.status, ended.failure.failure_class, ended.failure.node) == (Status.INFRA_FAILURE, kind, "b")
    member.apply_refusal({"state": "ended", "record": refused.model_dump(mode="json", exclude={"errno"})})
    ended = unready([member], InfraError(reason_of(member), node="b"))
    assert ended.failure
    assert (ended.failure.failure_class, ended.failure.node) == (kind, "b")
    assert unstarted_class(member) is kind


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"errno": "ENOSPC"}, FailureClass.DISK),
        ({"errno": "EDQUOT"}, FailureClass.DISK),
        ({"errno": "EROFS"}, FailureClass.DISK),
        ({"errno": "EIO"}, FailureClass.DISK),
        ({"errno": "EACCES"}, FailureClass.NODE_UNREADY),
        ({"errno": "ENOENT"}, FailureClass.NODE_UNREADY),
        ({"errno": "ENOENT", "interpreter": "/bin/bash"}, FailureClass.ENVIRONMENT),
        ({"errno": "", "disk_full": True}, FailureClass.DISK),
        ({"errno": ""}, FailureClass.NODE_UNREADY),
    ],
)
def test_the_class_of_a_refusal_does_not_depend_on_its_message(fields: dict[str, Any], kind: FailureClass) -> None:
    for message in ("", "No space left on device"):
        assert class_of(record(reason="refused", message=message, **fields), diagnose_logs("", {})) is kind


def test_the_class_of_a_member_that_could_not_start_reaches_other_processes() -> None:
    node: Any = SimpleNamespace(node=SimpleNamespace(name="b"))
    spec: Any = SimpleNamespace()
    first, second = (Member(node, spec, listener=lambda _: None, reconnect_s=0) for _ in range(2))
    first.lost, first.lost_class = "node b could not start v/train", FailureClass.DISK
    second.restore(first.state)
    assert unstarted_class(second) is FailureClass.DISK


@pytest.mark.parametrize(
    ("kind", "losses", "rank", "words"),
    [
        ("output_missing", {("a", 0): 4, ("a", 1): 10, ("b", 2): 10}, 0, "rank 0 on node a logged 4 of 10 losses"),
        ("output_missing", {("a", 0): 10, ("b", 2): 9}, 2, "rank 2 on node b logged 9 of 10 losses"),
        ("output_missing", {("a", 0): 4, ("a", 1): 4}, -1, ""),
        ("output_missing", {("a", 0): 10}, -1, ""),
        ("output_missing", {}, -1, ""),
        ("code_error", {("a", 0): 4, ("a", 1): 10}, -1, ""),
    ],
)
def test_a_rank_that_left_early_explains_a_missing_output(
    kind: str, losses: dict[tuple[str, int], int], rank: int, words: str
) -> None:
    failed = Outcome(Status.FAILED, "did not write w", Failure(failure_class=FailureClass(kind), node="a"))
    named = with_short_rank(failed, losses)
    assert named.failure is not None
    assert (named.failure.rank, named.status) == (rank, Status.FAILED)
    assert named.reason == (f"{words} that another rank logged; did not write w" if words else "did not write w")
