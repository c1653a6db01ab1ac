"""What steps and broken connections leave on real nodes is never waited for, and is gone at the run's end."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tipcflow.demo.nodes import LocalNodes
from tipcflow.domain import JobCommand, JobSpec
from tipcflow.execute.member import Member
from tipcflow.execute.progress import silent
from tipcflow.execute.session import NodeSession
from tipcflow.remote import paths

pytestmark = pytest.mark.cluster


@pytest.fixture
def session(nodes: LocalNodes) -> Iterator[NodeSession]:
    made = NodeSession(nodes.cluster.node("a"))
    made.prepare()
    yield made
    with contextlib.suppress(Exception):
        made.remove_run("left")
    made.close()


def job(session: NodeSession, text: str, **values: object) -> JobSpec:
    """A job of the run `left`."""
    node = session.node
    session.ask(f"mkdir -p {paths.run_root(node, 'left')}", "make a folder")
    fields = {
        "run": "left",
        "step": "train",
        "node": "a",
        "fence": 1,
        "workspace": node.workspace,
        "root": paths.run_root(node, "left"),
        "commands": (JobCommand(text=text, cwd="."),),
        "kill_after_s": 1.0,
    }
    return JobSpec.model_validate({**fields, **values})


def test_a_worker_log_that_is_a_fifo_is_lost_and_nobody_waits_for_it(session: NodeSession, tmp_path: Path) -> None:
    text = "mkdir log; mkfifo log/workerlog.0; ln -s /dev/zero log/workerlog.1; echo 2 > log/workerlog.2; sleep 2"
    spec = job(session, text, artefacts=("log",), progress=("log/workerlog.*",))
    member = Member(session, spec, listener=silent, reconnect_s=5.0)
    member.begin(30.0)
    assert session.evidence(spec, 20.0)["complete"]
    assert member.follow(20.0)
    found = session.fetch(spec, member.artefacts, tmp_path, limit=1000, sent=member.sent)
    assert sorted(found.spoiled) == [
        f"log/workerlog.{rank} of node a is lost: skipped, not a regular file" for rank in (0, 1)
    ]
    assert (tmp_path / "files/log/workerlog.2").read_text() == "2\n"
    assert session.list_ours()["processes"] == []
