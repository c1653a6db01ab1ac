"""A node's session: what is fetched is bounded, and a broken connection is made again."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import InfraError, JobCommand, JobSpec, StoppedBy
from tipcflow.execute.job.member import Member
from tipcflow.execute.node.session import NodeSession
from tipcflow.execute.progress import silent
from tipcflow.remote import paths

pytestmark = pytest.mark.cluster


@pytest.fixture
def session(nodes: LocalNodes) -> Iterator[NodeSession]:
    made = NodeSession(nodes.cluster.node("a"))
    made.prepare()
    yield made
    made.close()


def job(session: NodeSession) -> JobSpec:
    """A job that has ended: its folder has a record and a log of 1,000 bytes, its root a file of 1,000."""
    node = session.node
    root = paths.run_root(node, "fetched")
    spec = JobSpec(
        run="fetched",
        step="train",
        node="a",
        fence=1,
        workspace=node.workspace,
        root=root,
        commands=(JobCommand(text="true", cwd="."),),
    )
    folder = paths.job_dir(node, "fetched", "train", 1)
    session.transport.put(b"{}", f"{folder}/exit.json")
    session.transport.put(b"0123456789" * 100, paths.log_file(folder))
    session.transport.put(b"0123456789" * 100, f"{root}/launch/workerlog.0")
    return spec


def test_large_files_are_cut_and_the_cut_is_reported(session: NodeSession, tmp_path: Path) -> None:
    lost = session.fetch(job(session), ["launch/workerlog.0"], tmp_path, limit=105).spoiled
    assert (tmp_path / "exit.json").read_text() == "{}"
    for name in ("logs/main.log", "files/launch/workerlog.0"):
        assert (tmp_path / name).read_bytes() == b"0123456789" * 10 + b"01234"
    assert len(lost) == 2
    assert all("has 1000 B: only the first 105 B were fetched" in one for one in lost)


def test_small_files_are_whole(session: NodeSession, tmp_path: Path) -> None:
    assert session.fetch(job(session), ["launch/workerlog.0"], tmp_path, limit=1000).spoiled == []
    assert (tmp_path / "logs" / "main.log").stat().st_size == 1000


def test_the_logs_of_a_lost_job_are_found(session: NodeSession, tmp_path: Path) -> None:
    """What its runner listed at its end; without a list, what shows its progress, once it had begun."""
    spec = job(session).model_copy(update={"progress": ("launch/workerlog.*", "other/[ab]*.log")})
    log = tmp_path / "files" / "launch" / "workerlog.0"
    session.fetch(spec, None, tmp_path, limit=10_000)
    assert not log.exists(), "it never began"
    folder = paths.job_dir(session.node, "fetched", "train", 1)
    session.transport.put(b'{"files": {}}', f"{folder}/before.json")
    session.transport.put(b"secret", f"{spec.root}/launch/workerlog.abcdef.log")
    session.transport.put(b"x", f"{spec.root}/other/a b.log")
    session.fetch(spec, None, tmp_path, limit=10_000)
    assert log.stat().st_size == 1000
    assert (tmp_path / "files" / "other" / "a b.log").read_bytes() == b"x"
    assert not (tmp_path / "files" / "launch" / "workerlog.abcdef.log").exists()
    session.transport.put(b'[{"path": "listed.log", "exists": true, "fresh": true}]', f"{folder}/artefacts.json")
    session.transport.put(b"y", f"{spec.root}/listed.log")
    session.fetch(spec, None, tmp_path / "again", limit=10_000)
    assert not (tmp_path / "again" / "files" / "launch").exists()
    assert (tmp_path / "again" / "files" / "listed.log").read_bytes() == b"y"


def test_a_broken_connection_is_made_again(session: NodeSession) -> None:
    session.transport.close()
    assert session.list_ours()["processes"] == []
    assert session.was_connected


def sleeper(session: NodeSession, run: str) -> JobSpec:
    """A job that ends by itself, of a run of its own."""
    node = session.node
    session.call(f"mkdir -p {paths.run_root(node, run)}", "make a folder")
    return JobSpec(
        run=run,
        step="train",
        node="a",
        fence=1,
        workspace=node.workspace,
        root=paths.run_root(node, run),
        commands=(JobCommand(text="echo begun | tee -a begun", cwd="."),),
        artefacts=("begun",),
    )


@pytest.mark.parametrize("trouble", ["none", "broken", "no runner"])
def test_a_job_is_begun_and_watched_in_one_go(session: NodeSession, tmp_path: Path, trouble: str) -> None:
    spec = sleeper(session, f"begun-{trouble.replace(' ', '-')}")
    if trouble == "broken":
        session.transport.close()
    if trouble == "no runner":  # as after an update of the controller
        session.call(f"rm {paths.runner_path(session.node)}", "remove it")
    try:
        member = Member(session, spec, listener=silent, reconnect_s=5.0)
        # The job takes milliseconds: on a busy machine it has ended when its state is read.
        assert member.begin(30.0)["state"] in ("running", "ended")
        assert member.follow(30.0)
        assert member.record is not None
        assert member.record.ok
        session.transport.close()  # what was sent along need not be fetched
        found = session.fetch(spec, member.artefacts, tmp_path, limit=1000, sent=member.sent)
        assert (found.notes, found.spoiled) == ([], [])
        assert (tmp_path / "logs" / "main.log").read_text() == "begun\n"
        assert (tmp_path / "files" / "begun").read_text() == "begun\n"
    finally:
        session.remove_run(spec.run)


@pytest.fixture
def away(make_nodes: Callable[..., LocalNodes]) -> Iterator[Callable[[], None]]:
    """Called, it ends node a's sshd with its connections; the sshd is back 2 s later."""
    nodes = make_nodes(python=Path(sys.executable))
    waiting: list[threading.Timer] = []

    def go() -> None:
        nodes.kill_sshd("a")
        timer = threading.Timer(2.0, nodes.start_sshd, ("a",))
        waiting.append(timer)
        timer.start()

    go.node = nodes.cluster.node("a")  # type: ignore[attr-defined]
    yield go
    for timer in waiting:
        timer.join()


def test_every_question_waits_for_an_sshd_that_is_away_for_a_moment(away: Any, tmp_path: Path) -> None:
    """Between two steps, too, when nothing is watched; a job is started once."""
    session = NodeSession(away.node, reconnect_s=20.0)
    session.prepare()
    spec = job(session).model_copy(update={"run": "away", "commands": (JobCommand(text="sleep 30", cwd="."),)})
    away()
    started = session.start(spec)
    assert started["state"] in ("staging", "running"), started
    away()
    assert session.poll(spec)["pid"] == session.start(spec)["pid"]
    away()
    assert session.fetch(spec, [], tmp_path, limit=10**6).spoiled == []
    away()
    assert next(iter(session.begin(spec, {}, 1)))["event"] == "response"
    session.stop(spec, "over", StoppedBy.CONTROLLER)
    session.close()


def test_unreachable_node_is_lost_after_the_reconnect_time_of_the_policy(away: Any) -> None:
    session = NodeSession(away.node, reconnect_s=1.0)
    session.prepare()
    away()
    began = time.monotonic()
    with pytest.raises(InfraError, match="refuses connections"):
        session.list_ours()
    assert time.monotonic() - began < 2.0
