"""Files over a real sshd: interrupted, damaged on the way, changed meanwhile, too large."""

import hashlib
import itertools
import json
import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.no_privilege import WITHOUT_PRIVILEGE
from tests.support.sshd import Server, make_server, server

from tipcflow.domain import InfraError
from tipcflow.execute.node import fetch
from tipcflow.execute.node.fetch import FolderFetch, changed_since
from tipcflow.remote.fetching import EACH
from tipcflow.transport.login import connect_client
from tipcflow.transport.paramiko_adapter import ParamikoTransport

pytestmark = pytest.mark.process
__all__ = ["make_server", "server"]

LIMIT = 64 << 20


class Frail(ParamikoTransport):
    """Its connection is lost after a number of bytes of a large file; and it counts what it fetched.

    Attributes:
        spoil: changes what arrives of files; called with the local path.
    """

    breaks: list[int] = []
    offsets: list[int] = []
    listings = 0
    spoil: Callable[[Path], None] | None = None

    def get_more(self, remote: str, local: Path, *, limit: int, timeout: float = 300.0) -> None:
        Frail.offsets.append(local.stat().st_size if local.exists() else 0)
        after = Frail.breaks.pop(0) if Frail.breaks else None
        if after is None:
            super().get_more(remote, local, limit=limit, timeout=timeout)
        else:
            super().get_more(remote, local, limit=min(limit, Frail.offsets[-1] + after), timeout=timeout)
            self.close()
            self.run("true")  # reports that the connection is lost
        if Frail.spoil:
            Frail.spoil(local)

    def get_many(self, root: str, names: Any, local: Path, *, limit: int, timeout: float = 300.0) -> Any:
        Frail.listings += 1
        found = super().get_many(root, names, local, limit=limit, timeout=timeout)
        for name in names if Frail.spoil else ():
            if (local / name).is_file():
                Frail.spoil(local / name)
        return found


@pytest.fixture
def twice(server: Server) -> Iterator[Callable[[Callable[[Any], Any]], Any]]:
    """As NodeSession does it."""
    made: list[Frail] = []
    Frail.breaks, Frail.offsets, Frail.listings, Frail.spoil = [], [], 0, None

    def connect() -> Frail:
        made.append(Frail(connect_client(server.node()), server.node()))
        return made[-1]

    def do(task: Callable[[Any], Any]) -> Any:
        try:
            return task(made[-1] if made else connect())
        except InfraError:
            return task(connect())

    yield do
    for one in made:
        one.close()


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """There and here."""
    for name in ("there", "here"):
        (tmp_path / name).mkdir()
    return tmp_path / "there", tmp_path / "here"


@pytest.fixture
def folder(twice: Any, folders: tuple[Path, Path]) -> FolderFetch:
    there, here = folders
    return FolderFetch(twice, node="a", root=str(there), local=here, limit=LIMIT)


def _names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_small_and_large_files_arrive_unchanged(folder: FolderFetch, folders: tuple[Path, Path]) -> None:
    there, here = folders
    (there / "logs").mkdir()
    data = {"logs/main.log": b"", "log 1": b"x" * 10, "weights": os.urandom(3 * EACH)}
    for name, content in data.items():
        (there / name).write_bytes(content)
    (there / "envlog.0").write_text("SECRET=1")
    found = folder.fetch([*data, "missing", "envlog.0"])
    assert {name: (here / name).read_bytes() for name in _names(here)} == data
    assert {name: one.sha256 for name, one in found.listed.items()} == {
        name: hashlib.sha256(content).hexdigest() for name, content in data.items()
    }
    assert (found.notes, found.spoiled) == ([], [])


def test_fetch_continues_after_each_break_of_the_link(folder: FolderFetch, folders: tuple[Path, Path]) -> None:
    there, here = folders
    data = os.urandom(4 * EACH)
    (there / "log").write_bytes(data)
    Frail.breaks = [EACH, 1000, EACH, EACH]
    folder.fetch(["log"])
    assert (here / "log").read_bytes() == data
    assert Frail.offsets == [0, EACH, EACH + 1000, 2 * EACH + 1000, 3 * EACH + 1000]
    assert _names(here) == ["log"]


def test_slow_fetch_continues_with_any_progress(folder: FolderFetch, folders: tuple[Path, Path]) -> None:
    there, here = folders
    data = os.urandom(EACH + 11 * 1000)
    (there / "log").write_bytes(data)
    Frail.breaks = [EACH, *[1000] * 10]
    folder.fetch(["log"])
    assert ((here / "log").read_bytes(), len(Frail.offsets)) == (data, 12)


def test_useless_partial_file_does_not_count_as_progress(folder: FolderFetch, folders: tuple[Path, Path]) -> None:
    there, here = folders
    data = os.urandom(2 * EACH)
    (there / "log").write_bytes(data)
    (here / ".log.part").write_bytes(b"z" * EACH)
    Frail.breaks = [1000, 1000, 1000, 1000]
    folder.fetch(["log"])
    assert (here / "log").read_bytes() == data
    assert Frail.offsets == [0, 1000, 2000, 3000, 4000]


def test_fetch_over_the_time_limit_is_dropped(twice: Any, folders: tuple[Path, Path]) -> None:
    there, here = folders
    (there / "log").write_bytes(b"x" * 2 * EACH)
    Frail.breaks = [1000] * 100
    times = itertools.count(0.0, fetch.LARGE_S / 3)
    slow = FolderFetch(twice, node="a", root=str(there), local=here, limit=LIMIT, clock=lambda: next(times))
    with pytest.raises(InfraError, match="the connection is lost"):
        slow.fetch(["log"])
    assert len(Frail.offsets) == 4, "three times; a connection that broke brings nothing more"


def test_unreadable_file_does_not_affect_other_files(
    make_server: Callable[..., Server], folders: tuple[Path, Path]
) -> None:
    there, here = folders
    for name in ("log", "workerlog.0", "workerlog.1"):
        (there / name).write_text(name)
    (there / "workerlog.0").chmod(0)
    words = shlex.join([*WITHOUT_PRIVILEGE, "sh", "-c"])
    node = make_server(f'ForceCommand {words} "$SSH_ORIGINAL_COMMAND"').node()
    transport = ParamikoTransport(connect_client(node), node)
    try:
        one = FolderFetch(lambda do: do(transport), node="a", root=str(there), local=here, limit=LIMIT)
        found = one.fetch(["log", "workerlog.0", "workerlog.1"])
    finally:
        transport.close()
    assert (_names(here), sorted(found.listed)) == (["log", "workerlog.1"], ["log", "workerlog.1"])
    assert found.spoiled == ["workerlog.0 of node a could not be fetched: not readable for the node's user"]


def test_a_link_that_brings_nothing_is_dropped(folder: FolderFetch, folders: tuple[Path, Path]) -> None:
    there, here = folders
    (there / "log").write_bytes(b"x" * 2 * EACH)
    Frail.breaks = [EACH, *[0] * 100]
    with pytest.raises(InfraError, match="node a: the connection is lost"):
        folder.fetch(["log"])
    assert len(Frail.offsets) < 10
    assert _names(here) == [".log.part"]


def test_interrupted_fetch_is_resumed_by_the_next(folder: FolderFetch, folders: tuple[Path, Path]) -> None:
    there, here = folders
    data = os.urandom(2 * EACH)
    (there / "log").write_bytes(data)
    (here / ".log.part").write_bytes(data[:EACH])
    folder.fetch(["log"])
    assert (Frail.offsets, (here / "log").read_bytes()) == ([EACH], data)
    folder.fetch(["log"])
    assert Frail.offsets == [EACH], "what is here already is not fetched again"


@pytest.mark.parametrize("here_already", [b"y" * EACH, b"x" * 3 * EACH])
def test_overwritten_file_is_fetched_from_the_start(
    folder: FolderFetch, folders: tuple[Path, Path], here_already: bytes
) -> None:
    """The file was overwritten meanwhile, or is shorter now."""
    there, here = folders
    (there / "log").write_bytes(b"x" * 2 * EACH)
    (here / ".log.part").write_bytes(here_already)
    folder.fetch(["log"])
    assert Frail.offsets == [0]
    assert (here / "log").read_bytes() == b"x" * 2 * EACH


@pytest.mark.parametrize("size", [1000, 2 * EACH])
def test_damaged_file_is_fetched_again(folder: FolderFetch, folders: tuple[Path, Path], size: int) -> None:
    there, here = folders
    (there / "log").write_bytes(b"x" * size)

    def once(path: Path) -> None:
        Frail.spoil = None
        path.write_bytes(b"y" + path.read_bytes()[1:])

    Frail.spoil = once
    found = folder.fetch(["log"])
    assert (here / "log").read_bytes() == b"x" * size
    assert found.spoiled == []


@pytest.mark.parametrize("size", [1000, 2 * EACH])
def test_file_damaged_twice_is_reported(folder: FolderFetch, folders: tuple[Path, Path], size: int) -> None:
    there, _ = folders
    for name in ("log", "other"):
        (there / name).write_bytes(b"x" * size)
    Frail.spoil = lambda path: path.write_bytes(b"y" * size) and None if "log" in path.name else None
    found = folder.fetch(["log", "other"])
    assert found.spoiled == [
        "log of node a could not be fetched: the received content differs twice "
        "from the file on the node (SHA-256)"
    ]
    assert len(Frail.offsets) <= 3


def test_file_that_grows_during_a_fetch_is_complete(folder: FolderFetch, folders: tuple[Path, Path]) -> None:
    """Its beginning is what was listed, so it need not be fetched again."""
    there, here = folders
    (there / "log").write_bytes(b"x" * 2 * EACH)

    def grow(_: Path) -> None:
        with (there / "log").open("ab") as file:
            file.write(b"more\n")

    Frail.spoil = grow
    found = folder.fetch(["log"])
    assert (here / "log").read_bytes() == b"x" * 2 * EACH
    assert (found.spoiled, len(Frail.offsets)) == ([], 1)


def test_too_large_file_is_cut_and_reported(twice: Any, folders: tuple[Path, Path]) -> None:
    there, here = folders
    for name, size in (("log", 301), ("log2", 300), ("best.pdparams", 302)):
        (there / name).write_bytes(os.urandom(size))
    names = ["log", "log2", "best.pdparams"]
    found = FolderFetch(twice, node="a", root=str(there), local=here, limit=300).fetch(names)
    cut = "only the first 300 B were fetched (limit TIPCFLOW_LOG_LIMIT_MB)"
    assert found.spoiled == [f"log on node a has 301 B: {cut}"], "what it says after the cut is not known"
    assert found.notes == [f"best.pdparams on node a has 302 B: {cut}"]
    assert (here / "log").read_bytes() == (there / "log").read_bytes()[:300]
    assert (here / "log2").read_bytes() == (there / "log2").read_bytes()


def test_a_name_that_leads_out_is_refused(folder: FolderFetch) -> None:
    with pytest.raises(InfraError, match=r"sent the name '\.\./x', which would leave the folder"):
        folder.fetch(["../x"])


def test_many_names_need_several_questions(
    folder: FolderFetch, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    there, here = folders
    monkeypatch.setattr(fetch, "portions", lambda names: [names[:2], names[2:]])
    for name in "abcd":
        (there / name).write_text(name)
    folder.fetch("abcd")
    assert (_names(here), Frail.listings) == (["a", "b", "c", "d"], 2)


def test_artefacts_that_changed_after_the_end_are_reported(
    folder: FolderFetch, folders: tuple[Path, Path]
) -> None:
    there, here = folders
    for name in ("log", "weights", "unhashed"):
        (there / name).write_text(name)
    listed = folder.fetch(["log", "weights", "unhashed"]).listed
    assert changed_since(here, listed, node="a", limit=LIMIT) == []
    report = [
        {"path": "log", "sha256": listed["log"].sha256},
        {"path": "weights", "sha256": "0" * 64},
        {"path": "unhashed", "sha256": ""},
        {"path": "gone", "exists": False},
    ]
    (here / "artefacts.json").write_text(json.dumps(report))
    assert changed_since(here, listed, node="a", limit=LIMIT) == [
        "weights on node a was written to after the step had ended"
    ]
