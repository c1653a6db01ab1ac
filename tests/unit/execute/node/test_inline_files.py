"""Files inlined in a job's end: stored unchanged, never fetched again, and always validated."""

import base64
import binascii
import hashlib
from pathlib import Path
from typing import Any

import pytest

from tipcflow.domain import InfraError
from tipcflow.execute.node.fetch import FolderFetch
from tipcflow.execute.node.inline_files import InlineFiles, unpack
from tipcflow.remote.fetching import Listed


def packed(data: bytes) -> list[Any]:
    return [binascii.crc32(data), base64.b64encode(data).decode()]


def asks_nobody(_: Any) -> Any:
    raise AssertionError("the node was asked")


def fetch(local: Path, sent: dict[str, bytes | None], *, limit: int = 100) -> FolderFetch:
    return FolderFetch(asks_nobody, node="a", root="/there", local=local, limit=limit, sent=sent)


def test_inline_files_are_unpacked() -> None:
    message = {"event": "files", "job": {"a": packed(b"\x00\xff"), "b": None}, "root": {"c/d": packed(b"")}}
    assert unpack(message) == InlineFiles(job={"a": b"\x00\xff", "b": None}, root={"c/d": b""})


def test_damaged_inline_files_are_ignored() -> None:
    wrong = [binascii.crc32(b"x"), base64.b64encode(b"y").decode()]
    assert unpack({"job": {"a": wrong, "b": [0, "no base 64!"]}}) == InlineFiles()


def test_sent_files_are_kept_without_asking_the_node(tmp_path: Path) -> None:
    found = fetch(tmp_path, {"logs/main.log": b"all\n", "gone": None}).fetch(["logs/main.log", "gone"])
    assert (tmp_path / "logs" / "main.log").read_bytes() == b"all\n"
    assert found.listed == {"logs/main.log": Listed(4, hashlib.sha256(b"all\n").hexdigest())}
    assert (found.notes, found.spoiled) == ([], [])


@pytest.mark.parametrize("name", ["other", "long"])
def test_missing_or_long_inline_files_are_fetched(tmp_path: Path, name: str) -> None:
    with pytest.raises(AssertionError, match="the node was asked"):
        fetch(tmp_path, {"long": b"x" * 101}).fetch([name])


def test_a_sent_name_cannot_leave_the_folder(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="would leave the folder"):
        fetch(tmp_path / "in", {"../out": b"x"}).fetch(["../out"])
    assert not (tmp_path / "out").exists()
