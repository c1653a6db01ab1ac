"""The end of an attempt, when a node's files could not all be had."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import INFER, T0, TRAIN, a_plan, a_run, open_store

from tipcflow.check import CheckContext
from tipcflow.check.proof.engine import ran_engine
from tipcflow.domain import (
    EndReason,
    ExitRecord,
    FailureClass,
    InfraError,
    JobCommand,
    JobSpec,
    LegKey,
    Node,
    SshTarget,
    Status,
)
from tipcflow.domain.run_documents import FailuresDocument
from tipcflow.execute.attempt.finalize import StepCloser
from tipcflow.execute.job.member import Member
from tipcflow.execute.node.fetch import Fetched
from tipcflow.execute.progress import Event, Kind
from tipcflow.remote.paths import log_file
from tipcflow.store import Store

GOLDEN = Path(__file__).parents[3] / "golden" / "parse"
RUN, NODE = a_run().id, "node-a"
SPOILED = "log/workerlog.0 of node node-a could not be fetched: not readable for the node's user"


class Ended:
    """A node whose job has succeeded; one of its logs cannot be read, another path leads nowhere."""

    node = Node(name=NODE, address=NODE, ssh=SshTarget(alias=NODE), workspace="/w", python="/usr/bin/python3")
    exit_code = 0

    def begin(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        yield {"event": "response", "state": "running"}
        yield from self.watch(spec, resume, seconds)

    def watch(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        record = ExitRecord(
            run=RUN, step=TRAIN, node=NODE, reason=EndReason.EXITED, exit_code=self.exit_code,
            started_at=T0, ended_at=T0 + 1,
        )  # fmt: skip
        artefacts = [
            {"path": "log/workerlog.0", "exists": True, "fresh": True, "size": 4, "sha256": ""},
            {"path": "log/workerlog.1", "exists": False},
        ]
        yield {"event": "end", "record": record.model_dump(mode="json"), "artefacts": artefacts}

    def fetch(self, spec: JobSpec, artefacts: dict[str, int], *_: object, **__: object) -> Fetched:
        assert artefacts == {"log/workerlog.0": 4}
        return Fetched(spoiled=[SPOILED])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "metrics.db") as opened:
        yield opened


class Failed(Ended):
    """The same node with a job that failed."""

    exit_code = 1


class Away(Ended):
    """The same node, which cannot be reached any more when its logs are fetched; or may not be."""

    def __init__(self, *, passing: bool) -> None:
        self.passing = passing

    def fetch(self, *_: object, **__: object) -> Fetched:
        raise InfraError.of_node(NODE, "gone", passing=self.passing)


GONE = f"the logs of node {NODE} could not be fetched: node {NODE}: gone"
SPOILED_END = (Status.INFRA_FAILURE, SPOILED)


@pytest.mark.parametrize(
    ("node", "ended", "words", "kind"),
    [
        (Ended(), SPOILED_END, SPOILED, FailureClass.EVIDENCE_LOST),
        (Failed(), (Status.FAILED, f"exit code 1 on node {NODE}; {SPOILED}"), SPOILED, FailureClass.CODE_ERROR),
        (Away(passing=True), (Status.INFRA_FAILURE, GONE), GONE, FailureClass.NODE_LOST),
        (Away(passing=False), (Status.INFRA_FAILURE, GONE), GONE, FailureClass.EVIDENCE_LOST),
    ],
)
def test_missing_files_are_reported(
    store: Store, tmp_path: Path, node: Any, ended: tuple[Status, str], words: str, kind: FailureClass
) -> None:
    step = next(one for one in a_plan().steps if one.id == TRAIN).model_copy(update={"nodes": (NODE,)})
    store.runs.create(a_run(), a_plan())
    attempt = store.attempts.open(RUN, TRAIN, [NODE], T0)
    spec = JobSpec(
        run=RUN, step=TRAIN, attempt=attempt, node=NODE, fence=1, workspace="/w", root="/w",
        commands=(JobCommand(text="true", cwd="."),),
    )  # fmt: skip
    member = Member(node, spec, listener=lambda _: None, reconnect_s=0)
    member.follow(1.0)
    messages: list[Event] = []
    closer = StepCloser(store, run=RUN, home=tmp_path / "home", log_format="models", report=messages.append)
    assert closer.close(step, attempt, [member], node) == ended
    kept = store.documents.get(RUN, FailuresDocument)
    assert kept
    assert [(one.failure_class, one.node) for one in kept.root.values()] == [(kind, NODE)]
    assert words in [event.text for event in messages if event.kind is Kind.NOTE]


def ended_with_0(spec: JobSpec, leg: str = "") -> dict[str, Any]:
    """The exit record of a job of the inference step, or of one of its legs."""
    record = ExitRecord(
        run=RUN, step=INFER, attempt=spec.attempt, leg=leg, node=NODE, reason=EndReason.EXITED, exit_code=0
    )
    return record.model_dump(mode="json")


class TriedTwice(Ended):
    """A node that inferred twice: the first attempt printed what its engine did, the second nothing."""

    def __init__(self) -> None:
        self.prints = "engine: device=cpu onednn=True\n0.png\t" + '{"class_id": 0, "scores": [0.9, 0.1]}\n'

    def watch(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        for leg in spec.commands:
            yield {"event": "leg", "record": ended_with_0(spec, leg.leg)}
        record = ended_with_0(spec)
        yield {"event": "end", "record": record, "artefacts": []}

    def fetch(self, spec: JobSpec, artefacts: dict[str, int], folder: Path, **__: object) -> Fetched:
        for leg in spec.commands:
            path = folder / log_file("", leg.leg).lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.prints)
        return Fetched()


def test_an_earlier_attempt_proves_nothing_of_a_later_one(store: Store, tmp_path: Path) -> None:
    step = next(one for one in a_plan().steps if one.id == INFER)
    store.runs.create(a_run(), a_plan())
    node: Any = TriedTwice()
    report = (GOLDEN / "autolog_plain.log").read_text() + "reporter: auto_log\n"
    for prints in (node.prints + report, ""):
        node.prints = prints
        attempt = store.attempts.open(RUN, INFER, [NODE], T0)
        spec = JobSpec(
            run=RUN, step=INFER, attempt=attempt, node=NODE, fence=1, workspace="/w", root="/w",
            commands=tuple(JobCommand(leg=leg.id, text="true", cwd=".") for leg in step.legs),
        )  # fmt: skip
        member = Member(node, spec, listener=lambda _: None, reconnect_s=0)
        member.follow(1.0)
        closer = StepCloser(store, run=RUN, home=tmp_path / "home", log_format="models", report=lambda _: None)
        assert closer.close(step, attempt, [member], node)[0] is Status.PASS
        facts = store.history.facts(RUN)
        assert bool(facts.engine) == bool(facts.predictions) == bool(prints)
        assert facts.reporter == ("auto_log" if prints else "")
        silent = [one for one in ran_engine(facts, CheckContext()) if "no evidence of execution" in one.reason]
        assert [one.status for one in silent] == ([] if prints else [Status.FAILED, Status.FAILED])


class Garbled(TriedTwice):
    """A node whose `legs.jsonl` holds other things than exit records, and whose exit.json may."""

    def __init__(self, *lines: object, end: object = None) -> None:
        super().__init__()
        self.lines, self.end = lines, end

    def watch(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        *_, last = super().watch(spec, resume, seconds)
        for line in self.lines:
            if not isinstance(line, str):  # the runner leaves out invalid JSON
                yield {"event": "leg", "record": line}
        yield {**last, "record": self.end or last["record"]}

    def end_stuck(self, spec: JobSpec) -> None:
        """Nothing of the job is left."""

    def fetch(self, spec: JobSpec, artefacts: dict[str, int], folder: Path, **__: object) -> Fetched:
        text = (line if isinstance(line, str) else json.dumps(line) for line in self.lines)
        (folder / "legs.jsonl").write_text("".join(f"{line}\n" for line in text))
        return super().fetch(spec, artefacts, folder)


def closed(store: Store, tmp_path: Path, node: Any) -> tuple[Status, str]:
    step = next(one for one in a_plan().steps if one.id == INFER)
    store.runs.create(a_run(), a_plan())
    attempt = store.attempts.open(RUN, INFER, [NODE], T0)
    spec = JobSpec(
        run=RUN, step=INFER, attempt=attempt, node=NODE, fence=1, workspace="/w", root="/w",
        commands=tuple(JobCommand(leg=leg.id, text="true", cwd=".") for leg in step.legs),
    )  # fmt: skip
    member = Member(node, spec, listener=lambda _: None, reconnect_s=0)
    member.follow(1.0)
    closer = StepCloser(store, run=RUN, home=tmp_path / "home", log_format="models", report=lambda _: None)
    return closer.close(step, attempt, [member], node)


def leg_records(*codes: int) -> list[dict[str, Any]]:
    legs = next(one for one in a_plan().steps if one.id == INFER).legs
    return [
        ExitRecord(run=RUN, step=INFER, leg=leg.id, node=NODE, reason=EndReason.EXITED, exit_code=code).model_dump(
            mode="json"
        )
        for leg, code in zip(legs, codes, strict=False)
    ]


@pytest.mark.parametrize("rubbish", ["rubbish", {"leg": 5}, [1, 2]])
def test_a_garbled_leg_record_is_an_infra_failure_and_the_others_count(
    store: Store, tmp_path: Path, rubbish: object
) -> None:
    records = leg_records(0)
    status, reason = closed(store, tmp_path, Garbled(*records, rubbish))
    assert status is Status.INFRA_FAILURE, reason
    assert f"node {NODE}: legs.jsonl line 2 is not an exit record: found " in reason
    assert "validation error" not in reason
    known = store.history.facts(RUN).leg_status
    legs = next(one for one in a_plan().steps if one.id == INFER).legs
    assert [known[LegKey(INFER, leg.id)] for leg in legs] == [Status.PASS, Status.BLOCKED]


def test_garbled_line_next_to_all_leg_records_is_an_infra_failure(store: Store, tmp_path: Path) -> None:
    status, reason = closed(store, tmp_path, Garbled(*leg_records(0, 0), "rubbish"))
    messages = f"node {NODE}: legs.jsonl line 3 is not an exit record: found 'rubbish'"
    assert (status, reason) == (Status.INFRA_FAILURE, messages)


def test_a_failed_leg_is_failed_next_to_a_garbled_line(store: Store, tmp_path: Path) -> None:
    status, reason = closed(store, tmp_path, Garbled(*leg_records(3), "rubbish"))
    assert status is Status.FAILED, reason


def test_a_garbled_exit_record_of_the_job_names_the_node(store: Store, tmp_path: Path) -> None:
    status, reason = closed(store, tmp_path, Garbled(*leg_records(0, 0), end={"reason": "?"}))
    messages = f'node {NODE}: exit.json is not an exit record: found \'{{"reason": "?"}}\''
    assert (status, reason) == (Status.INFRA_FAILURE, messages)


@pytest.mark.parametrize("other", [{"run": "20250101-000000-other"}, {"step": TRAIN}, {"attempt": 7}])
def test_exit_records_of_another_job_are_not_stored_as_this_ones(
    store: Store, tmp_path: Path, other: dict[str, object]
) -> None:
    """The database has no such attempt: metrics of it would violate a foreign key."""
    (field, value), *_ = other.items()
    end = {**leg_records(0)[0], "leg": "", **other, "peak_rss_bytes": {"total": 5}}
    status, reason = closed(store, tmp_path, Garbled(*leg_records(0, 0), end=end))
    messages = f"node {NODE}: exit.json is the exit record of another job: found {field} '{value}', expected "
    assert (status, reason.startswith(messages)) == (Status.INFRA_FAILURE, True), reason


def test_a_leg_record_of_another_job_is_a_garbled_line(store: Store, tmp_path: Path) -> None:
    other = {**leg_records(0)[0], "attempt": 7, "peak_rss_bytes": {"total": 5}}
    status, reason = closed(store, tmp_path, Garbled(*leg_records(0, 0), other))
    messages = f"node {NODE}: legs.jsonl line 3 is the exit record of another job: found attempt '7', expected '1'"
    assert (status, reason) == (Status.INFRA_FAILURE, messages)
