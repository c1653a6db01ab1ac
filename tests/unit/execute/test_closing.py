"""The end of an attempt, when a node's files could not all be had."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import INFER, T0, TRAIN, a_plan, a_run

from tipcflow.check import CheckContext
from tipcflow.check.ran_engine import ran_engine
from tipcflow.domain import EndReason, ExitRecord, JobCommand, JobSpec, Node, SshTarget, Status
from tipcflow.execute.closing import StepCloser
from tipcflow.execute.fetch import Fetched
from tipcflow.execute.member import Member
from tipcflow.execute.progress import Event, Kind
from tipcflow.remote.paths import log_file
from tipcflow.store import Store

RUN, NODE = a_run().id, "node-a"
SPOILED = "log/workerlog.0 of node node-a could not be fetched: the node's user may not read it there"


class Ended:
    """A node whose job has ended well; one of its logs cannot be read, another path leads nowhere."""

    node = Node(name=NODE, address=NODE, ssh=SshTarget(alias=NODE), workspace="/w", python="/usr/bin/python3")

    def start(self, spec: JobSpec) -> dict[str, Any]:
        return {"state": "running"}

    def watch(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        record = ExitRecord(
            run=RUN, step=TRAIN, node=NODE, reason=EndReason.EXITED, exit_code=0, started_at=T0, ended_at=T0 + 1
        )
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
    with Store.open(f"sqlite:///{tmp_path}/metrics.db") as opened:
        yield opened


def test_what_could_not_be_had_is_said(store: Store, tmp_path: Path) -> None:
    step = next(one for one in a_plan().steps if one.id == TRAIN).model_copy(update={"nodes": (NODE,)})
    store.create_run(a_run(), a_plan())
    attempt = store.open_attempt(RUN, TRAIN, [NODE], T0)
    spec = JobSpec(
        run=RUN, step=TRAIN, attempt=attempt, node=NODE, fence=1, workspace="/w", root="/w",
        commands=(JobCommand(text="true", cwd="."),),
    )  # fmt: skip
    node: Any = Ended()
    member = Member(node, spec, listener=lambda _: None, reconnect_s=0)
    member.follow(1.0)
    said: list[Event] = []
    closer = StepCloser(store, run=RUN, home=tmp_path / "home", log_format="models", say=said.append)
    assert closer.close(step, attempt, [member], node) == (Status.INFRA_FAILURE, SPOILED)
    assert SPOILED in [event.text for event in said if event.kind is Kind.NOTE]


class TriedTwice(Ended):
    """A node that inferred twice: the first attempt printed what its engine did, the second nothing."""

    def __init__(self) -> None:
        self.prints = "engine: device=cpu onednn=True\n0.png\t" + '{"class_id": 0, "scores": [0.9, 0.1]}\n'

    def watch(self, spec: JobSpec, resume: dict[str, int], seconds: float) -> Iterator[dict[str, Any]]:
        for leg in spec.commands:
            record = ExitRecord(run=RUN, step=INFER, leg=leg.leg, node=NODE, reason=EndReason.EXITED, exit_code=0)
            yield {"event": "leg", "record": record.model_dump(mode="json")}
        record = ExitRecord(run=RUN, step=INFER, node=NODE, reason=EndReason.EXITED, exit_code=0)
        yield {"event": "end", "record": record.model_dump(mode="json"), "artefacts": []}

    def fetch(self, spec: JobSpec, artefacts: dict[str, int], folder: Path, **__: object) -> Fetched:
        for leg in spec.commands:
            path = folder / log_file("", leg.leg).lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.prints)
        return Fetched()


def test_an_earlier_attempt_proves_nothing_of_a_later_one(store: Store, tmp_path: Path) -> None:
    step = next(one for one in a_plan().steps if one.id == INFER)
    store.create_run(a_run(), a_plan())
    node: Any = TriedTwice()
    for prints in (node.prints, ""):
        node.prints = prints
        attempt = store.open_attempt(RUN, INFER, [NODE], T0)
        spec = JobSpec(
            run=RUN, step=INFER, attempt=attempt, node=NODE, fence=1, workspace="/w", root="/w",
            commands=tuple(JobCommand(leg=leg.id, text="true", cwd=".") for leg in step.legs),
        )  # fmt: skip
        member = Member(node, spec, listener=lambda _: None, reconnect_s=0)
        member.follow(1.0)
        closer = StepCloser(store, run=RUN, home=tmp_path / "home", log_format="models", say=lambda _: None)
        assert closer.close(step, attempt, [member], node)[0] is Status.PASS
        facts = store.facts(RUN)
        assert bool(facts.engine) == bool(facts.predictions) == bool(prints)
        silent = [one for one in ran_engine(facts, CheckContext()) if "printed nothing" in one.reason]
        assert [one.status for one in silent] == ([] if prints else [Status.FAILED, Status.FAILED])
