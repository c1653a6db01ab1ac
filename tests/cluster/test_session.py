"""A node's session: what is fetched is bounded, and a broken connection is made again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tipcflow.demo.nodes import LocalNodes
from tipcflow.domain import JobCommand, JobSpec
from tipcflow.execute.session import NodeSession
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


def test_large_files_are_cut_and_it_is_said(session: NodeSession, tmp_path: Path) -> None:
    notes = session.fetch(job(session), {"launch/workerlog.0": 1000}, {"": 1000}, tmp_path, limit=105)
    assert (tmp_path / "exit.json").read_text() == "{}"
    for name in ("logs/main.log", "files/launch/workerlog.0"):
        assert (tmp_path / name).read_bytes() == b"0123456789" * 10 + b"01234"
    assert len(notes) == 2
    assert all("has 1000 bytes: only the first 105 were fetched" in note for note in notes)


def test_small_files_are_whole(session: NodeSession, tmp_path: Path) -> None:
    assert session.fetch(job(session), {"launch/workerlog.0": 1000}, {"": 1000}, tmp_path, limit=1000) == []
    assert (tmp_path / "logs" / "main.log").stat().st_size == 1000


def test_a_broken_connection_is_made_again(session: NodeSession) -> None:
    session.transport.close()
    assert session.list_ours()["processes"] == []
    assert session.was_connected
