"""How a member interprets a runner that another process saw stopped."""

from collections.abc import Iterator
from typing import Any

import pytest

from tipcflow.domain import EndReason, ExitRecord, FailureClass, InfraError, JobCommand, JobSpec, Node
from tipcflow.domain.run.member import MemberState
from tipcflow.execute.failure.outcome import step_outcome, whole_job
from tipcflow.execute.job.member import Member
from tipcflow.execute.progress import Event, Kind
from tipcflow.remote.stillness import Stalled

SPEC = JobSpec(
    run="r", step="v/train", node="b", fence=1, workspace="/w", root="/w",
    commands=(JobCommand(text="true", cwd="."),),
)  # fmt: skip
STALLED = Stalled(5.0, 21.4)
SAID = "the runner on node b stopped responding: no heartbeat for 21 s"


class Still:
    """A node whose runner is stopped, according to `poll` and each watch."""

    node = Node(name="b", address="192.0.2.2", workspace="/w", python="/usr/bin/python3")

    def __init__(self, result: dict[str, Any], *watches: list[float]) -> None:
        self.result, self.watches, self.ended = result, list(watches), 0

    def poll(self, spec: JobSpec) -> dict[str, Any]:
        if not self.result:
            raise InfraError("node b does not respond")
        return self.result

    def watch(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        for still_s in self.watches.pop(0):
            yield {"event": "alive", "up": 5.0, "still_s": still_s}

    def end_stuck(self, spec: JobSpec) -> None:
        self.ended += 1


def member(node: Any, **fields: Any) -> Member:
    return Member(node, SPEC, listener=lambda _: None, reconnect_s=0, **fields)


def running(up: float) -> dict[str, Any]:
    return {"state": "running", "heartbeat": {"up": up}, "record": None, "legs": []}


@pytest.mark.parametrize(("up", "lost"), [(5.0, SAID), (6.0, "")])
def test_runner_without_a_new_heartbeat_is_ended(up: float, lost: str) -> None:
    node = Still(running(up))
    one = member(node)
    one.end_if_stalled(STALLED)
    assert (one.lost, node.ended) == (lost, bool(lost))


def test_a_job_that_has_ended_meanwhile_keeps_its_exit_record() -> None:
    record = ExitRecord(run="r", step="v/train", node="b", reason=EndReason.EXITED, exit_code=0)
    node = Still({**running(5.0), "state": "ended", "record": record.model_dump(mode="json")})
    one = member(node)
    one.end_if_stalled(STALLED)
    assert (one.record, one.lost, node.ended) == (record, "", 0)


def test_a_job_whose_exit_record_is_that_of_another_is_ended() -> None:
    """Its processes would otherwise print on while its logs are fetched."""
    record = ExitRecord(run="another", step="v/train", node="b", reason=EndReason.EXITED, exit_code=0)
    node = Still({**running(5.0), "state": "ended", "record": record.model_dump(mode="json")})
    one = member(node)
    one.poll()
    message = "node b: exit.json is the exit record of another job: found run 'another', expected 'r'"
    assert (one.record, one.lost, node.ended) == (None, message, 1)
    other = member(Still({}))
    other.restore(one.state)
    assert (other.lost, other.damaged) == (message, True)
    failures = [step_outcome([each], {}, cancelled=False).failure for each in (one, other)]
    assert {failure and failure.failure_class for failure in failures} == {FailureClass.EVIDENCE_LOST}
    assert {whole_job(each, cancelled=False).failure for each in (one, other)} == {failures[0]}


def test_a_node_that_does_not_respond_is_left_to_the_watch() -> None:
    node = Still({})
    one = member(node)
    one.end_if_stalled(STALLED)
    assert (one.lost, node.ended) == ("", 0)


class Ended(Still):
    """A node of an allocation that has ended because of the node `down`."""

    def __init__(self, down: str) -> None:
        super().__init__({})
        self.over = InfraError("the allocation has ended", node=down, failure_class=FailureClass.NODE_LOST)

    def poll(self, spec: JobSpec) -> dict[str, Any]:
        raise self.over

    def watch(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        raise InfraError("no step", node="b")

    def reconnect(self) -> None:
        raise self.over


@pytest.mark.parametrize(("down", "lost_by"), [("c", "c"), ("b", "")])
@pytest.mark.parametrize("is_watched", [True, False])
def test_loss_with_the_allocation_is_that_of_the_failed_node(is_watched: bool, down: str, lost_by: str) -> None:
    one = Member(Ended(down), SPEC, listener=lambda _: None, reconnect_s=60)  # type: ignore[arg-type]
    if is_watched:
        assert one.follow(15)
    else:
        one.poll()
    other = member(Still({}))
    other.restore(MemberState.model_validate_json(one.state.model_dump_json()))
    assert other.lost.endswith("the allocation has ended")
    assert other.lost_by == lost_by
    for failure in (step_outcome([other], {}, cancelled=False).failure, whole_job(other, cancelled=False).failure):
        assert failure is not None
        assert (failure.failure_class, failure.node) == (FailureClass.NODE_LOST, down)


def test_stillness_counts_over_several_watches() -> None:
    node = Still({}, [0.0, 4.0, 15.0], [0.0, 4.0], [0.0, 2.4, 3.0])
    one = member(node, silence_s=21.0)
    assert [one.follow(15) for _ in range(3)] == [False, False, True]
    assert (one.lost, node.ended) == (SAID, 1)


def test_a_runner_that_uses_its_cpu_is_not_stalled() -> None:
    node = Still({}, [0.0, 15.0], [0.0, 0.0, 15.0], [0.0, 20.0, 1.0, 3.0])
    one = member(node, silence_s=36.0)
    assert [one.follow(15) for _ in range(3)] == [False, False, False]
    assert (one.lost, node.ended) == ("", 0)


class Logging(Still):
    """A node whose job has logged 40 bytes, and ends with exit code 1."""

    text = "iteration 1\nConnection closed by peer\n\n"

    def watch(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        start = resume.get("", 0)
        data = self.text[start:]
        yield {"event": "log", "leg": "", "offset": start, "size": len(data), "data": data}
        record = ExitRecord(run="r", step="v/train", node="b", reason=EndReason.EXITED, exit_code=1)
        yield {"event": "end", "record": record.model_dump(mode="json"), "artefacts": []}


@pytest.mark.parametrize(("seen", "shown"), [(0, Logging.text), (12, Logging.text[12:]), (len(Logging.text), "")])
def test_log_shown_by_another_process_is_known_but_not_repeated(seen: int, shown: str) -> None:
    """The end of the log shows whether a peer is the cause; the triggerer has read it, not this process."""
    events: list[Event] = []
    one = Member(Logging({}), SPEC, listener=events.append, reconnect_s=0)
    one.resume_at({"": seen} if seen else {})
    assert one.follow(1.0)
    assert one.recent == Logging.text
    assert "".join(event.text for event in events if event.kind is Kind.LOG) == shown
    assert one.log_bytes == {"": len(Logging.text)}


def test_resumed_offset_counts_before_new_output() -> None:
    one = member(Still({}))
    one.resume_at({"": 50_000})
    assert (one.log_bytes, one.state.log_bytes) == ({"": 50_000}, {"": 50_000})


class Hanging(Still):
    """A node whose job hangs, or is silent while its peers may make progress."""

    def __init__(self, **fields: Any) -> None:
        super().__init__({})
        self.fields = fields

    def watch(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        yield {"event": "hang", "message": "no progress", **self.fields}


@pytest.mark.parametrize(("fields", "number"), [({"number": 2}, 2), ({}, 0), ({"number": 2, "unsure": True}, 0)])
def test_a_hang_is_known_by_its_number(fields: dict[str, Any], number: int) -> None:
    one = member(Hanging(**fields))
    one.follow(1.0)
    assert one.hang_number == number
