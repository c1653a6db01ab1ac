"""The root cause of a failed training with parameter servers: the process that died first."""

from typing import Any

import pytest
from tests.unit.execute.failure.test_root_cause import STOPPED, member

from tipcflow.domain import FailureClass, Status
from tipcflow.execute.failure.diagnosis import LogDiagnosis
from tipcflow.execute.failure.outcome import step_outcome
from tipcflow.execute.failure.servers import first_failed

WITH_SERVERS = {"observed": {"servers": True}}


def dead(rank: int, at: float, **how: Any) -> dict[str, Any]:
    return {"rank": rank, "at": at, **how}


@pytest.mark.parametrize("a_ends_by_itself", [True, False])
def test_the_first_dead_server_is_the_root_cause(a_ends_by_itself: bool) -> None:
    """The trainer on b crashes because of it, and its launcher may be faster than that of the server."""
    end = {"exit_code": 247, "ended_at": 9} if a_ends_by_itself else {**STOPPED, "ended_at": 9}
    crash = "RuntimeError: pull sparse failed\n"
    members = [
        member("a", servers=[dead(0, 1.0, signal=9)], ranks=[dead(0, 2.5, signal=6)], **WITH_SERVERS, **end),
        member(
            "b", ranks=[dead(1, 2.0, exit_code=1)], servers=[dead(1, 4.0, signal=15)], ended_at=5, **WITH_SERVERS
        ),
    ]
    outcome = step_outcome(members, {"b": LogDiagnosis(crash, 1)}, cancelled=False)
    assert outcome.status is Status.INFRA_FAILURE
    assert outcome.reason == "parameter server 0 on node a was ended by signal 9; collateral failure on node b"
    assert outcome.failure is not None
    assert (outcome.failure.failure_class, outcome.failure.node) == (FailureClass.KILLED, "a")
    assert outcome.failure.followers == ("b",)


def test_clock_offsets_count() -> None:
    members = [
        member("a", servers=[dead(0, 100.0, signal=9)], ended_at=109, **WITH_SERVERS),
        member("b", ranks=[dead(1, 2.0, signal=6)], ended_at=5, **WITH_SERVERS),
    ]
    outcome = step_outcome(members, {}, cancelled=False, skew={"a": 99.0})
    assert outcome.failure is not None
    assert outcome.failure.node == "a"


def test_a_trainer_that_died_before_the_stop_is_the_root_cause() -> None:
    members = [
        member("a", exit_code=1, ended_at=4, ranks=[dead(0, 3.0, exit_code=1)], **WITH_SERVERS),
        member("b", ranks=[dead(1, 2.0, signal=9)], ended_at=9, **STOPPED, **WITH_SERVERS),
    ]
    outcome = step_outcome(members, {}, cancelled=False)
    assert outcome.reason == "trainer 1 on node b was ended by signal 9; collateral failure on node a"
    assert outcome.failure is not None
    assert (outcome.failure.node, outcome.failure.rank) == ("b", 1)


def test_a_killed_trainer_counts_more_than_messages_about_its_connections() -> None:
    """Its own server logs a lost connection to the other trainer, which crashed because of it."""
    lost = "W1126 15:41:20 input_messenger.cpp:362] Fail to read from Socket: Connection reset by peer [104]\n"
    members = [
        member("a", exit_code=241, ended_at=5, ranks=[dead(0, 3.0, signal=11)], **WITH_SERVERS),
        member("b", exit_code=241, ended_at=4, ranks=[dead(1, 2.8, signal=9)], **WITH_SERVERS),
    ]
    outcome = step_outcome(
        members, {name: LogDiagnosis(lost, rank) for rank, name in enumerate("ab")}, cancelled=False
    )
    assert outcome.reason == "trainer 1 on node b was ended by signal 9; collateral failure on node a"
    assert outcome.failure is not None
    assert (outcome.failure.failure_class, outcome.failure.rank) == (FailureClass.KILLED, 1)


def test_the_log_of_a_crashed_server_is_quoted() -> None:
    server = "Traceback (most recent call last):\n  x\nValueError: bad table\n"
    members = [member("a", servers=[dead(0, 1.0, exit_code=1)], **WITH_SERVERS)]
    outcome = step_outcome(members, {"a": LogDiagnosis("", servers={0: server})}, cancelled=False)
    assert outcome.status is Status.FAILED
    assert outcome.reason.startswith("parameter server 0 on node a exited with code 1: ")
    assert "ValueError: bad table" in outcome.reason


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"servers": [dead(1, 1.0, exit_code=0)]}, "parameter server 1"),
        ({"servers": [dead(1, 3.0, exit_code=0)], "ranks": [dead(0, 2.0, exit_code=0)]}, None),
        ({"servers": [dead(-1, 1.0)]}, "parameter server"),
        ({"ranks": [dead(0, 2.0, exit_code=0), dead(1, 2.0, exit_code=3)]}, "trainer 1"),
    ],
)
def test_servers_fail_by_an_end_before_the_trainers(fields: dict[str, Any], name: str | None) -> None:
    record = member("a", **fields, **WITH_SERVERS).record
    process = first_failed(record)
    assert (process and process.name) == name


def test_collective_trainings_have_no_first_process() -> None:
    assert first_failed(member("a", ranks=[dead(0, 1.0, signal=9)]).record) is None
    assert first_failed(None) is None
