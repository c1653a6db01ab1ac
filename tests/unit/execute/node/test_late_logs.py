"""A lost node is reachable again: the metric values of the attempt that lost it are stored for that attempt."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.support.stories import T0, TRAIN, a_plan, a_run, open_store

from tipcflow.domain import InfraError, JobCommand, JobSpec, Node, SshTarget, Status
from tipcflow.execute.attempt.finalize import StepCloser
from tipcflow.execute.job.member import Member
from tipcflow.execute.node.fetch import Fetched, listed_artefacts

RUN = a_run().id
NODE = "node-a"
LOG = "log/workerlog.0"


class Away:
    """A node that is unreachable until it is released."""

    node = Node(name=NODE, address=NODE, ssh=SshTarget(alias=NODE), workspace="/w", python="/usr/bin/python3")

    def __init__(self) -> None:
        self.log: str | None = None
        self.requests: list[Iterable[str] | None] = []

    def fetch(self, spec: JobSpec, artefacts: Iterable[str] | None, folder: Path, **_: object) -> Fetched:
        self.requests.append(artefacts)
        if self.log is None:
            raise InfraError(f"node {NODE} does not respond", node=NODE)
        path = folder / "files" / LOG
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.log)
        return Fetched()


def line(at: int) -> str:
    return f"[Epoch 1, iter: {at}] loss: {at / 10}\n"


def test_late_logs_are_stored_under_the_attempts_that_wrote_the_logs(tmp_path: Path) -> None:
    step = next(one for one in a_plan().steps if one.id == TRAIN).model_copy(update={"nodes": (NODE,)})
    node: Any = Away()
    with open_store(tmp_path / "metrics.db") as store:
        store.runs.create(a_run(), a_plan())
        closer = StepCloser(store, run=RUN, home=tmp_path / "home", log_format="models", report=lambda _: None)

        def attempt() -> Member:
            number = store.attempts.open(RUN, TRAIN, [NODE], T0)
            spec = JobSpec(
                run=RUN, step=TRAIN, attempt=number, node=NODE, fence=1, workspace="/w", root="/w",
                commands=(JobCommand(text="true", cwd="."),),
            )  # fmt: skip
            member = Member(node, spec, listener=lambda _: None, reconnect_s=0)
            member.lost = f"node {NODE} was lost"
            return member

        first = attempt()
        status, _ = closer.close(step, 1, [first], node)
        assert status is Status.INFRA_FAILURE
        node.log = line(1) + line(2)
        attempt()
        closer.fetch_late(step, 1, [first], node)
        assert {(one.attempt, one.iteration) for one in store.measurements.of(RUN)} == {(1, 1), (1, 2)}
        assert node.requests == [None, None], "it is not known what a lost job wrote"
        closer.fetch_late(step, 1, [first], node)
        assert len(store.measurements.of(RUN)) == 2, "once, for all callers"


def test_artefacts_listed_by_the_runner_are_read(tmp_path: Path) -> None:
    assert listed_artefacts(tmp_path) is None
    files = [{"path": LOG, "exists": True, "fresh": True}, {"path": "old", "exists": True, "fresh": False}]
    (tmp_path / "artefacts.json").write_text(json.dumps([*files, {"path": "gone", "exists": False}]))
    assert listed_artefacts(tmp_path) == [LOG]
    (tmp_path / "artefacts.json").write_text("[{")
    assert listed_artefacts(tmp_path) is None
