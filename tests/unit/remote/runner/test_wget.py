"""`wget` of a suite with cached downloads."""

import os
import socket
import threading
import urllib.request
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tipcflow.domain import FailureClass
from tipcflow.parse.failures.failure import find_failure
from tipcflow.remote.runner.wget import understood, wget


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "www").mkdir()
    (tmp_path / "www" / "weights.pdparams").write_text("weights")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "www"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIPCFLOW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TIPCFLOW_MIRRORS", "{}")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache"


def test_cached_file_is_fetched_again_only_after_a_change(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "www" / "weights.pdparams", tmp_path / "d" / "weights.pdparams"
    assert wget(["-nc", "-P", "d", f"{url}/weights.pdparams"]) == 0
    assert target.read_text() == "weights"
    target.unlink()
    capsys.readouterr()
    assert wget(["-nc", "-P", "d", f"{url}/weights.pdparams", "--no-check-certificate"]) == 0
    assert "from the cache" in capsys.readouterr().err
    source.write_text("newer weights")
    os.utime(source, (1, 1))
    target.unlink()
    assert wget(["-P", "d", f"{url}/weights.pdparams"]) == 0
    assert target.read_text() == "newer weights"
    assert wget(["-nc", "-P", "d", f"{url}/weights.pdparams"]) == 0
    assert "already there" in capsys.readouterr().err


def test_cached_file_is_used_without_a_server(
    tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert wget(["-O", "w", f"{url}/weights.pdparams"]) == 0
    assert wget([f"{url}/none"]) == 8
    assert "ERROR 404" in capsys.readouterr().err
    monkeypatch.setenv("TIPCFLOW_MIRRORS", f'{{"{url}/": "http://127.0.0.1:9/"}}')
    assert wget(["-O", "again", f"{url}/weights.pdparams"]) == 0
    assert "the server does not respond" in capsys.readouterr().err
    assert wget([f"{url}/other"]) == 4
    output = capsys.readouterr().err
    assert f"Download from {url}/other failed" in output
    failure = find_failure(output)
    assert failure is not None
    assert failure.failure_class is FailureClass.DOWNLOAD


def test_changed_file_of_a_mirror_replaces_the_cached_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = tmp_path / "mirror" / "example.org"
    mirror.mkdir(parents=True)
    monkeypatch.setenv("TIPCFLOW_MIRRORS", f'{{"https://": "{tmp_path / "mirror"}"}}')
    (mirror / "data.tar").write_text("old")
    assert wget(["-O", "data.tar", "https://example.org/data.tar"]) == 0
    assert wget(["-O", "data.tar", "https://example.org/data.tar"]) == 0
    assert "data.tar: from the cache\n" in capsys.readouterr().err
    (mirror / "data.tar").write_text("newer")
    assert wget(["-O", "data.tar", "https://example.org/data.tar"]) == 0
    assert (tmp_path / "data.tar").read_text() == "newer"
    (mirror / "data.tar").unlink()
    assert wget(["-O", "again", "https://example.org/data.tar"]) == 0
    assert "from the cache; not in the mirror" in capsys.readouterr().err


def test_a_host_without_an_address_is_reported_as_by_wget(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)

    def unknown(host: str, *_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "worded in another way")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert wget(["http://nowhere.invalid/x"]) == 4
    assert "unable to resolve host address ‘nowhere.invalid’" in capsys.readouterr().err


def test_the_words_of_another_error_are_not_a_host_without_an_address(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ConnectionRefusedError("Name or service not known")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    assert wget(["http://nowhere.invalid/x"]) == 4
    error = capsys.readouterr().err
    assert "Name or service not known" in error
    assert "unable to resolve" not in error


@pytest.mark.parametrize("words", [["--version"], ["-r", "http://h/"], ["-O", "-", "http://h/x"], ["-i", "list"]])
def test_other_uses_are_left_to_the_real_wget(words: list[str]) -> None:
    assert understood(words) is None
