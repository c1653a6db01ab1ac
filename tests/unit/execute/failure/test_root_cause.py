"""The root cause of a gang's failure and its collateral failures."""

from collections.abc import Mapping

import pytest

from tipcflow.domain import EndReason, ExitRecord, FailureClass, JobCommand, JobSpec, Node, SshTarget, Status
from tipcflow.execute.attempt.decisions import is_cancelled
from tipcflow.execute.failure.diagnosis import LogDiagnosis, diagnose_logs
from tipcflow.execute.failure.outcome import step_outcome
from tipcflow.execute.failure.root_cause import find_root_cause, is_root_cause
from tipcflow.execute.job.member import Member
from tipcflow.execute.progress import silent

RESET = "RuntimeError: [pair.cc:576] Read error [10.0.0.2]:50304: Connection reset by peer\n"
VALUE = "Traceback (most recent call last):\n  x\nValueError: bad label\n"


class NoSession:
    """A node that is never queried."""

    def __init__(self, name: str) -> None:
        self.node = Node(
            name=name, address=name, ssh=SshTarget(alias=name), workspace="/w", python="/usr/bin/python3"
        )


def member(
    name: str, *, lost: str = "", down_since: float = 0.0, known_at: float = 0.0, **record: object
) -> Member:
    command = JobCommand(text="true", cwd=".")
    spec = JobSpec(
        run="r", step="v/train", node=name, fence=1, workspace="/w", root="/w", commands=(command,), barrier=True
    )
    made = Member(NoSession(name), spec, listener=silent, reconnect_s=1)  # type: ignore[arg-type]
    made.lost, made.down_since, made.known_at = lost, down_since, known_at
    if record:
        fields = {"run": "r", "step": "v/train", "node": name, "reason": EndReason.EXITED, "exit_code": 1}
        made.record = ExitRecord.model_validate({**fields, **record})
    return made


STOPPED = {"reason": "stopped", "exit_code": None, "message": "a peer failed", "stopped_by": "peer"}
HANGS = {"reason": "hang", "exit_code": None, "message": "no progress for 120 s"}


@pytest.mark.parametrize(
    ("members", "logs", "name", "kind", "status"),
    [
        # Paddle's launcher: 250 is a peer's abort.
        (
            [member("a", exit_code=250, ended_at=1), member("b", exit_code=17, ended_at=2)],
            {},
            "b",
            FailureClass.CODE_ERROR,
            Status.FAILED,
        ),
        # The same with exit code 1 everywhere, as with torchrun and collectives that raise: the logs show it.
        (
            [member("a", ended_at=1), member("b", ended_at=2)],
            {"a": RESET, "b": VALUE},
            "b",
            FailureClass.CODE_ERROR,
            Status.FAILED,
        ),
        # Two with causes of their own: the first.
        (
            [member("a", ended_at=5), member("b", ended_at=3)],
            {"a": VALUE, "b": "MemoryError\n"},
            "b",
            FailureClass.OOM_HOST,
            Status.FAILED,
        ),
        # Only collateral failures: the network.
        (
            [member("a", exit_code=250, ended_at=1), member("b", ended_at=2)],
            {"b": RESET},
            "a",
            FailureClass.COMMUNICATION,
            Status.INFRA_FAILURE,
        ),
        # A collateral failure, and a peer that continued until it was stopped: the peer hung.
        (
            [member("a", exit_code=250, ended_at=1), member("b", ended_at=9, **STOPPED)],
            {},
            "b",
            FailureClass.HANG,
            Status.FAILED,
        ),
        # As before, but it had just crashed and was stopped before it could end.
        (
            [member("a", exit_code=250, ended_at=1), member("b", ended_at=9, **STOPPED)],
            {"b": VALUE},
            "b",
            FailureClass.CODE_ERROR,
            Status.FAILED,
        ),
        # The member that failed by itself is the root cause, not those that were stopped because of it.
        (
            [member("a", ended_at=1), member("b", ended_at=9, **STOPPED)],
            {"a": VALUE},
            "a",
            FailureClass.CODE_ERROR,
            Status.FAILED,
        ),
        (
            [member("a", ended_at=9, **STOPPED), member("b", ended_at=3, **HANGS)],
            {},
            "b",
            FailureClass.HANG,
            Status.FAILED,
        ),
        # A node that was lost before any other failed is the root cause, whatever the others report.
        (
            [
                member("a", ended_at=9, known_at=20, exit_code=1),
                member("b", lost="node b was lost", down_since=10),
            ],
            {},
            "b",
            FailureClass.NODE_LOST,
            Status.INFRA_FAILURE,
        ),
        # A node that was lost afterwards is not.
        (
            [member("a", ended_at=9, known_at=20), member("b", lost="node b was lost", down_since=30)],
            {"a": VALUE},
            "a",
            FailureClass.CODE_ERROR,
            Status.FAILED,
        ),
        (
            [member("a", ended_at=9, reason="signaled", signal=9, exit_code=None), member("b", exit_code=250)],
            {},
            "a",
            FailureClass.KILLED,
            Status.INFRA_FAILURE,
        ),
        (
            [member("a", ended_at=9, reason="signaled", signal=9, exit_code=None, oom=True)],
            {},
            "a",
            FailureClass.OOM_HOST,
            Status.FAILED,
        ),
    ],
)
def test_root_cause_names_node_and_failure_class(
    members: list[Member], logs: Mapping[str, str], name: str, kind: FailureClass, status: Status
) -> None:
    report = {node: diagnose_logs(text, {}) for node, text in logs.items()}
    outcome = step_outcome(members, report, cancelled=False)
    assert outcome.failure is not None
    assert (outcome.failure.node, outcome.failure.failure_class, outcome.status) == (name, kind, status)
    assert f"node {name}" in outcome.reason
    backwards = step_outcome(members[::-1], report, cancelled=False)
    assert backwards.failure is not None
    assert backwards.failure.node == name


@pytest.mark.parametrize("failed_at", [50, 200])
def test_of_several_lost_nodes_the_first_is_the_cause(failed_at: float) -> None:
    lost = [member(name, lost=f"node {name} was lost", down_since=at) for name, at in (("a", 130), ("b", 100))]
    members = [member("z", lost="node z was lost"), *lost, member("c", exit_code=250, known_at=failed_at)]
    for order in (members, members[::-1]):
        named = find_root_cause(order)
        assert named is not None
        assert named.name == "b"


# The end of an export of PaddleRec wide_deep with paddlepaddle 3.3.1 on CPU (`tools/to_static.py`), shortened.
CONVERSION = """Traceback (most recent call last):
  File "/suite/tools/to_static.py", line 101, in main
    save_jit_model(dy_model_class.dy_model, model_save_path)
  File "/env/paddle/jit/dy2static/error.py", line 454, in raise_new_exception
    raise new_exception from None
TypeError: In transformed code:

    File "/suite/models/rank/wide_deep/net.py", line 100, in forward
        pred = F.sigmoid(prediction)
        ~~~~~~~~~~~~~~~~~~~~~~~~~~~~ <--- HERE

    TypeError: (InvalidType) sigmoid(): argument (position 1) must be Value, but got Variable
"""


def test_reason_begins_with_the_error() -> None:
    report = {"b": diagnose_logs(CONVERSION, {})}
    first, *below = step_outcome([member("b", ended_at=1)], report, cancelled=False).reason.splitlines()
    error = "TypeError: (InvalidType) sigmoid(): argument (position 1) must be Value, but got Variable"
    assert first == f"exit code 1 on node b: {error}"
    assert not [line for line in below if "InvalidType" in line]
    assert any("net.py" in line for line in below)


def test_a_clock_that_is_off_does_not_make_a_node_the_first() -> None:
    members = [member("a", ended_at=1000.0), member("b", ended_at=402.0)]
    report = {name: LogDiagnosis(VALUE, -1, diagnose_logs(VALUE, {}).trouble) for name in ("a", "b")}
    named = find_root_cause(members, report, {"b": -600.0})
    assert named is not None
    assert named.name == "a"


def test_successful_members_have_no_root_cause() -> None:
    members = [member("a", exit_code=0), member("b", exit_code=0)]
    assert find_root_cause(members) is None
    assert step_outcome(members, {}, cancelled=False).status is Status.PASS


def test_cancelled_step_is_not_a_failure() -> None:
    members = [member("a", **STOPPED), member("b", exit_code=250)]
    outcome = step_outcome(members, {}, cancelled=True)
    assert (outcome.status, outcome.failure) == (Status.CANCELLED, None)


@pytest.mark.parametrize(("disk_full", "kind"), [(False, FailureClass.INTERRUPTED), (True, FailureClass.DISK)])
def test_a_stop_by_an_unknown_initiator_is_not_a_users(disk_full: bool, kind: FailureClass) -> None:
    unknown = {**STOPPED, "stopped_by": None, "disk_full": disk_full}
    members = [member("a", ended_at=3, **unknown), member("b", ended_at=9, **STOPPED)]
    assert not is_cancelled(members, requested=False)
    outcome = step_outcome(members, {}, cancelled=False)
    assert outcome.failure is not None
    assert (outcome.status, outcome.failure.failure_class, outcome.failure.node) == (
        Status.INFRA_FAILURE,
        kind,
        "a",
    )
    members = [member("a", ended_at=9, **unknown), member("b", ended_at=3)]
    outcome = step_outcome(members, {"b": diagnose_logs(VALUE, {})}, cancelled=False)
    assert outcome.failure is not None
    assert (outcome.failure.failure_class, outcome.failure.node) == (FailureClass.CODE_ERROR, "b")


def test_member_whose_log_shows_a_lost_peer_is_not_the_root_cause() -> None:
    outcome = member("a", exit_code=1)
    assert is_root_cause(outcome)
    outcome.recent = RESET
    assert not is_root_cause(outcome)
    assert not is_root_cause(member("b", exit_code=250))
    assert is_root_cause(member("c", lost="gone"))


def test_the_followers_are_named() -> None:
    members = [member("a", exit_code=250), member("b", ended_at=2), member("c", exit_code=250)]
    outcome = step_outcome(members, {"b": diagnose_logs(VALUE, {})}, cancelled=False)
    assert outcome.failure is not None
    assert outcome.failure.followers == ("a", "c")
    assert outcome.failure.root_cause == "node b"
    assert outcome.reason.endswith("; collateral failure on node a, c")


def test_reason_begins_with_the_marked_error_of_the_log() -> None:
    """Reasons are shortened: behind eight long lines of pip, the error would be lost."""
    log = "Processing ./urllib3-2.8.0-py3-none-any.whl\nERROR: No matching distribution found for x\nsee above\n"
    outcome = step_outcome([member("a", exit_code=1)], {"a": diagnose_logs(log, {})}, cancelled=False)
    assert outcome.reason.splitlines() == [
        "exit code 1 on node a: ERROR: No matching distribution found for x",
        "Processing ./urllib3-2.8.0-py3-none-any.whl",
        "see above",
    ]
