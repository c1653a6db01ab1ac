"""The node's cache of data: filled once, checked, linked or copied; nothing is left half filled."""

import hashlib
import io
import os
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tipcflow.remote.runner.cache import provide, unpacked
from tipcflow.remote.runner.unmet import Unusable


class Served:
    """A web server of one folder, which counts its requests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.requests: list[str] = []
        served = self

        class Handler(SimpleHTTPRequestHandler):
            def log_request(self, *_: object) -> None:
                served.requests.append(f"{self.command} {self.path}")

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "www").mkdir()
    made = Served(tmp_path / "www")
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


@pytest.fixture
def archive(served: Served, tmp_path: Path) -> tuple[str, str]:
    """(URL, sha256) of an archive with images/1.jpg and val.txt."""
    source = tmp_path / "source"
    (source / "images").mkdir(parents=True)
    (source / "images" / "1.jpg").write_text("one")
    (source / "val.txt").write_text("images/1.jpg 0\n")
    with tarfile.open(served.folder / "data.tar", "w") as tar:
        for path in ("images", "val.txt"):
            tar.add(source / path, arcname=path)
    return f"{served.url}/data.tar", hashlib.sha256((served.folder / "data.tar").read_bytes()).hexdigest()


def get(root: Path, archive: tuple[str, str], cache: Path, **changes: object) -> None:
    url, sha256 = archive
    settings: dict[str, object] = {"sha256": sha256, "unpack": True, "copy": False, **changes}
    provide(str(root), url, str(cache), **settings)  # type: ignore[arg-type]


def test_two_runs_fetch_once(served: Served, archive: tuple[str, str], tmp_path: Path) -> None:
    for run in ("one", "two"):
        get(tmp_path / run / "dataset", archive, tmp_path / "cache")
        assert (tmp_path / run / "dataset" / "images" / "1.jpg").read_text() == "one"
        assert (tmp_path / run / "dataset" / "val.txt").is_symlink()
    assert served.requests == ["GET /data.tar"]


def test_data_are_merged_into_folders_of_the_suite_but_replace_no_file(
    archive: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "run" / "images").mkdir(parents=True)
    (tmp_path / "run" / "images" / "own.jpg").write_text("own")
    get(tmp_path / "run", archive, tmp_path / "cache")
    assert sorted(path.name for path in (tmp_path / "run" / "images").iterdir()) == ["1.jpg", "own.jpg"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "val.txt").write_text("own")
    with pytest.raises(Unusable, match="is a file of the suite"):
        get(tmp_path / "other", archive, tmp_path / "cache")


def test_a_run_that_writes_into_linked_data_does_not_harm_the_next(
    served: Served, archive: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    get(tmp_path / "one", archive, tmp_path / "cache")
    (tmp_path / "one" / "images" / "1.jpg").write_text("changed!")
    get(tmp_path / "two", archive, tmp_path / "cache")
    assert (tmp_path / "two" / "images" / "1.jpg").read_text() == "one"
    assert len(served.requests) == 2
    assert "is damaged (1 files differ, such as images/1.jpg)" in capsys.readouterr().out


def test_copied_data_may_be_changed(served: Served, archive: tuple[str, str], tmp_path: Path) -> None:
    get(tmp_path / "one", archive, tmp_path / "cache", copy=True)
    (tmp_path / "one" / "images" / "1.jpg").write_text("changed!")
    get(tmp_path / "two", archive, tmp_path / "cache", copy=True)
    assert (tmp_path / "two" / "images" / "1.jpg").read_text() == "one"
    assert len(served.requests) == 1


def test_another_content_is_refused_and_not_kept(archive: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(Unusable, match=r"its sha256 is .* the suite file expects 0000"):
        get(tmp_path / "run", archive, tmp_path / "cache", sha256="0" * 64)
    assert list((tmp_path / "cache" / "data").glob("0*.unpacked*/*")) == []
    get(tmp_path / "run", archive, tmp_path / "cache")


def test_an_archive_cannot_write_elsewhere(served: Served, tmp_path: Path) -> None:
    bad = served.folder / "bad.tar"
    with tarfile.open(bad, "w") as tar:
        tar.add(__file__, arcname="../evil")
    found = hashlib.sha256(bad.read_bytes()).hexdigest()
    with pytest.raises(Unusable, match=r"\.\./evil is outside"):
        get(tmp_path / "run", (f"{served.url}/bad.tar", found), tmp_path / "cache")
    assert not (tmp_path / "cache" / "data" / "evil").exists()


def test_a_mirror_is_used_without_a_network(
    archive: tuple[str, str], served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIPCFLOW_MIRRORS", f'{{"https://data.example/": "{served.folder}"}}')
    get(tmp_path / "run", ("https://data.example/data.tar", archive[1]), tmp_path / "cache")
    assert (tmp_path / "run" / "val.txt").exists()
    assert served.requests == []


def test_a_missing_source_is_a_failed_download(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match=r"Download from /none failed"):
        provide(str(tmp_path / "run"), "/none", str(tmp_path / "cache"), sha256="", unpack=False, copy=False)
    with pytest.raises(Unusable, match=r"Download from http://127.0.0.1:9/x failed: <urlopen error"):
        get(tmp_path / "run", ("http://127.0.0.1:9/x", "0" * 64), tmp_path / "cache")


def test_a_shared_folder_is_linked_entry_by_entry(tmp_path: Path) -> None:
    (tmp_path / "shared" / "train").mkdir(parents=True)
    folder = str(tmp_path / "shared")
    provide(str(tmp_path / "run"), folder, str(tmp_path / "cache"), sha256="", unpack=False, copy=False)
    assert (tmp_path / "run" / "train").resolve() == tmp_path / "shared" / "train"


LINKS = [
    # Each link alone leads to a folder of the archive; the chain leads out.
    [("p/q/x", "../.."), ("p/q/x/y", ".."), ("y/z", ".."), ("y/z/key", None)],
    [("a", "."), ("a/b", None)],
    [("b", "."), ("c", "b/..")],
    [("b", "../x")],
    [("b", "/etc")],
]


def packed(file: Path, members: list[tuple[str, str | None]], kind: bytes = tarfile.SYMTYPE) -> str:
    """Write a tar of links and files; return its path."""
    with tarfile.open(file, "w") as tar:
        for name, target in members:
            member = tarfile.TarInfo(name)
            if target is None:
                member.size = 3
                tar.addfile(member, io.BytesIO(b"key"))
            else:
                member.type, member.linkname = kind, target
                tar.addfile(member)
    return str(file)


@pytest.mark.parametrize("members", LINKS)
def test_chain_of_links_cannot_lead_out(tmp_path: Path, members: list[tuple[str, str | None]]) -> None:
    inside = tmp_path / "cache" / "new" / "content"
    inside.mkdir(parents=True)
    archive = packed(tmp_path / "data.tar", members)
    assert unpacked(archive, str(inside)).endswith("is outside of the archive's folder")
    assert list(inside.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "data.tar"]


@pytest.mark.parametrize("target", ["../cache", "/etc/passwd", "link", "link/x"])
def test_hard_link_cannot_lead_out(tmp_path: Path, target: str) -> None:
    archive = packed(tmp_path / "data.tar", [("hard", target)], tarfile.LNKTYPE)
    with tarfile.open(archive, "a") as tar:
        member = tarfile.TarInfo("link")
        member.type, member.linkname = tarfile.SYMTYPE, "."
        tar.addfile(member)
    (tmp_path / "content").mkdir()
    assert unpacked(archive, str(tmp_path / "content")) == "hard is outside of the archive's folder"


def test_links_within_an_archive_are_kept(tmp_path: Path) -> None:
    source, content = tmp_path / "source", tmp_path / "content"
    (source / "train").mkdir(parents=True)
    (source / "val").mkdir()
    content.mkdir()
    (source / "train" / "a.txt").write_text("a")
    os.link(source / "train" / "a.txt", source / "val" / "same.txt")
    (source / "val" / "b.txt").symlink_to("../train/a.txt")
    (source / "all").symlink_to("train")
    with tarfile.open(tmp_path / "data.tar", "w") as tar:
        for name in ("all", "val", "train"):
            tar.add(source / name, arcname=f"./{name}")
    assert unpacked(str(tmp_path / "data.tar"), str(content)) == ""
    names = ("train/a.txt", "val/same.txt", "val/b.txt", "all/a.txt")
    assert [(content / name).read_text() for name in names] == ["a"] * 4
    assert (content / "all").is_symlink()
