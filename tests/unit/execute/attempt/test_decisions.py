"""Decisions about a running attempt, by what is known about its members."""

from typing import Any

import pytest
from tests.unit.execute.attempt.test_drive import ScriptedNode, members

from tipcflow.domain import EndReason, ExitRecord, StoppedBy
from tipcflow.execute.attempt.decisions import PEER_GRACE_S, Decision, decide, is_cancelled
from tipcflow.execute.job.member import Member

CONTINUE = Decision()


def gang(*ends: dict[str, Any] | str | None) -> list[Member]:
    """Members that are running (None), lost (text), or ended with an exit record of these fields."""
    made = members(*(ScriptedNode(name) for name, _ in zip("abcd", ends, strict=False)))
    for member, end in zip(made, ends, strict=True):
        if isinstance(end, str):
            member.lost = end
        elif end is not None:
            fields = {"reason": EndReason.EXITED, "exit_code": 0, **end}
            member.record = ExitRecord(run="r", step="v/train", node=member.name, **fields)
    return made


FINE: dict[str, Any] = {}
CRASHED = {"exit_code": 7}
COLLATERAL = {"exit_code": 250}
HUNG = {"reason": EndReason.HANG, "exit_code": None}


@pytest.mark.parametrize("ends", [(None, None), (FINE, None), (FINE, FINE), (CRASHED, CRASHED), ("lost", "lost")])
def test_healthy_members_run_and_ended_ones_need_nothing(ends: Any) -> None:
    assert decide(gang(*ends), together=True) == CONTINUE


@pytest.mark.parametrize("end", [CRASHED, "node a was lost"])
def test_the_peers_of_a_failing_member_are_stopped_at_once(end: Any) -> None:
    assert decide(gang(end, None), together=True) == Decision(stop="a peer failed", by=StoppedBy.PEER)


def test_independent_nodes_continue_after_a_failure() -> None:
    assert decide(gang(CRASHED, None), together=False, trouble_s=1000) == CONTINUE


def test_a_collateral_failure_gives_the_others_the_grace_period() -> None:
    ends = gang(COLLATERAL, None)
    assert decide(ends, together=True, trouble_s=PEER_GRACE_S) == CONTINUE
    late = decide(ends, together=True, trouble_s=PEER_GRACE_S + 0.1)
    assert (late.gather, late.by) == (True, StoppedBy.PEER)
    assert "likely hung" in late.stop


def test_hang_is_inspected_before_its_peers_are_stopped() -> None:
    running = gang(None, None)
    running[0].hangs = "no progress"
    assert decide(running, together=True) == Decision(gather=True)
    assert decide(running, together=False) == Decision(gather=True)
    assert decide(gang(HUNG, None), together=True) == Decision(
        gather=True, stop="a peer failed", by=StoppedBy.PEER
    )


def test_a_member_after_its_deadlines_is_inspected_and_stopped() -> None:
    late = decide(gang(None, FINE), together=False, late=True)
    assert late == Decision(gather=True, stop="no exit record in time", by=StoppedBy.CONTROLLER)


def test_a_stop_by_a_user_needs_no_evidence_and_comes_first() -> None:
    stopped = decide(gang(CRASHED, None), together=True, cancelled=True, late=True)
    assert stopped == Decision(stop="stopped by a user", by=StoppedBy.USER)
    assert decide(gang(FINE, FINE), together=True, cancelled=True) == CONTINUE


@pytest.mark.parametrize(
    ("ends", "requested", "cancelled"),
    [
        ((FINE, FINE), False, False),
        ((None, None), True, True),
        ((CRASHED, {"reason": EndReason.STOPPED, "stopped_by": StoppedBy.PEER}), False, False),
        (({"reason": EndReason.STOPPED, "stopped_by": StoppedBy.USER},) * 2, False, True),
        (({"reason": EndReason.STOPPED, "stopped_by": StoppedBy.CONTROLLER},) * 2, False, False),
    ],
)
def test_attempt_is_cancelled_by_request_or_exit_records(ends: Any, requested: bool, cancelled: bool) -> None:
    assert is_cancelled(gang(*ends), requested=requested) is cancelled
