"""What steps and broken connections leave on real nodes is never waited for, and is gone at the run's end."""

import contextlib
import io
import tarfile
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import JobCommand, JobSpec
from tipcflow.execute.job.member import Member
from tipcflow.execute.node.session import NodeSession
from tipcflow.execute.progress import silent
from tipcflow.remote import commands, paths
from tipcflow.remote.bundle import runner_bytes
from tipcflow.transport.login import connect_client

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
    session.call(f"mkdir -p {paths.run_root(node, 'left')}", "make a folder")
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


def test_worker_log_that_is_a_fifo_is_skipped_without_blocking(session: NodeSession, tmp_path: Path) -> None:
    text = "mkdir log; mkfifo log/workerlog.0; ln -s /dev/zero log/workerlog.1; echo 2 > log/workerlog.2; sleep 2"
    text += "; ln -s workerlog.2 log/workerlog.3"
    spec = job(session, text, artefacts=("log",), progress=("log/workerlog.*",))
    member = Member(session, spec, listener=silent, reconnect_s=5.0)
    member.begin(30.0)
    assert session.evidence(spec, 20.0)["complete"]
    assert member.follow(20.0)
    found = session.fetch(spec, member.artefacts, tmp_path, limit=1_000_000, sent=member.sent)
    assert sorted(found.spoiled) == [
        f"log/workerlog.{rank} of node a is lost: skipped, not a regular file ({kind})"
        for rank, kind in ((0, "FIFO"), (1, "link"), (3, "link"))
    ]
    assert (tmp_path / "files/log/workerlog.2").read_text() == "2\n"
    assert session.list_ours()["processes"] == []


HIDDEN = """
import os, sys
for _ in (1, 2):
    if os.fork():
        os._exit(0)
    os.setsid()
os.execve("/bin/sleep", ["/bin/sleep", "7345"], {})
"""


def daemons(nodes: LocalNodes) -> list[int]:
    """Pids of the daemon on node a."""
    return [one.pid for one in nodes.processes("a") if one.cmdline == "/bin/sleep 7345"]


@pytest.mark.parametrize("killed", ["runner", "runner and guard"])
def test_a_daemon_without_marks_ends_though_its_runner_is_killed(
    nodes: LocalNodes, session: NodeSession, killed: str
) -> None:
    spec = job(session, "python3 hidden.py; sleep 300", step=killed.replace(" ", "-"))
    session.transport.put(HIDDEN.encode(), f"{spec.root}/hidden.py")
    session.start(spec)
    until(lambda: daemons(nodes), "the daemon")
    time.sleep(1.0)  # a sample is taken every 0.5 s
    listed = session.list_ours()
    guards = [one["pid"] for one in listed["helpers"] if one["helper"] == "guard"]
    runners = [one["pid"] for one in listed["processes"] if one["runner"]]
    assert daemons(nodes)[0] in [one["pid"] for one in listed["processes"]]
    if killed == "runner":
        session.call(f"kill -9 {runners[0]}", "kill the runner")
        until(lambda: not daemons(nodes), "the daemon's end")
    else:
        session.call(f"kill -9 {guards[0]} {runners[0]}", "kill both")
        for one in listed["processes"]:  # and all that carries marks
            if one["pid"] != daemons(nodes)[0]:
                nodes.exec("a", ["kill", "-9", str(one["pid"])])
        assert daemons(nodes)
        report = session.reap(f"left/{spec.step}/1")
        assert [one["cmdline"] for one in report["killed"]] == ["/bin/sleep 7345"]
        assert not daemons(nodes)
    assert session.list_ours()["processes"] == []


@pytest.mark.parametrize("damage", [": >", "head -c 1000"])
def test_a_damaged_runner_file_is_replaced(session: NodeSession, damage: str) -> None:
    runner = paths.runner_path(session.node)
    cut = f": > {runner}" if damage == ": >" else f"head -c 1000 {runner} > {runner}.cut; mv {runner}.cut {runner}"
    session.call(f"sh -c '{cut}'", "damage the runner")
    assert session.list_ours()["processes"] == []  # in the middle of a run
    session.call(f"sh -c '{cut}'", "damage the runner")
    session.prepare()  # before the next one
    assert (
        session.call(f"sha256sum < {runner}", "hash it").split()[0].decode() == sha256(runner_bytes()).hexdigest()
    )
    session.call(f"sh -c '{cut}'", "damage the runner")
    spec = job(session, "echo begun", step="damaged")
    member = Member(session, spec, listener=silent, reconnect_s=5.0)
    assert member.begin(30.0)["state"] in ("running", "ended")
    assert member.follow(20.0)


def test_a_damaged_archive_is_replaced(session: NodeSession) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz"):
        pass
    data = packed.getvalue()
    name = sha256(data).hexdigest()
    session.transport.put(data[:20], paths.suite_archive(session.node, name))
    session.deploy("left", data, name)


def test_an_upload_over_a_dead_link_is_seen_and_ends(nodes: LocalNodes, session: NodeSession) -> None:
    place = f"{session.node.workspace}/suites/large"
    client = connect_client(nodes.cluster.node("a"), timeout=10.0)
    transport = client.get_transport()
    assert transport is not None
    channel = transport.open_session()
    channel.exec_command(commands.write_file(place))
    channel.send(b"the beginning")
    until(lambda: uploads(session), "the upload")
    session.reap("left/none/1")
    assert uploads(session)  # it may still continue: the node does not know whether the connection is gone
    part = session.call(f"sh -c 'ls {place}.*.tmp'", "find it").decode().strip()
    session.call(f"touch -d '1 minute ago' {part}", "make it look silent")
    report = session.reap("left/none/1")
    assert {one["helper"] for one in report["helpers"]} == {"upload"}
    until(lambda: not uploads(session), "its end")
    client.close()


def uploads(session: NodeSession) -> list[int]:
    """Pids of those that write a file."""
    return [one["pid"] for one in session.list_ours()["helpers"] if one["cmdline"] == "cat"]


def until(condition: Callable[[], object], what: str, seconds: float = 20.0) -> None:
    """Wait for something to be true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds:g} s for {what}"
        time.sleep(0.1)
