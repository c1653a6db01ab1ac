"""Wheels of framework builds: from a path, an address or the folder of Airflow; each wrong one is one error."""

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.support.framework.wheels import make_wheel, sha256_of

from tipcflow.domain import ConfigError, InfraError, TipcflowError
from tipcflow.domain.build import FrameworkBuild
from tipcflow.execute.source.wheel import (
    check_address,
    check_source,
    fetch_wheel,
    kept_wheel,
    name_build,
)

pytestmark = pytest.mark.slow

NONE = "0" * 64


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "site"))
    (tmp_path / "site").mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{made.server_port}"
        made.shutdown()
        thread.join(10)


def test_a_path_is_kept_by_its_hash(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "built", "Toy.Frame", "1.0+cpu")
    build = fetch_wheel(str(wheel), "", home=tmp_path)
    assert build == FrameworkBuild(name="toy-frame", version="1.0+cpu", wheel=wheel.name, sha256=sha256_of(wheel))
    assert build.label == f"1.0+cpu (wheel {sha256_of(wheel)[:12]})"
    assert kept_wheel(tmp_path, build).read_bytes() == wheel.read_bytes()
    wheel.unlink()
    assert kept_wheel(tmp_path, build).is_file()


def test_an_address_is_fetched_once(tmp_path: Path, server: str) -> None:
    wheel = make_wheel(tmp_path / "site")
    sha256 = sha256_of(wheel)
    build = fetch_wheel(f"{server}/{wheel.name}", sha256, home=tmp_path)
    assert kept_wheel(tmp_path, build).read_bytes() == wheel.read_bytes()
    wheel.unlink()
    assert fetch_wheel(f"{server}/{wheel.name}", sha256, home=tmp_path) == build
    with pytest.raises(ConfigError, match="404"):
        fetch_wheel(f"{server}/{wheel.name}", NONE, home=tmp_path)
    with pytest.raises(InfraError, match="cannot be fetched"):
        fetch_wheel(f"http://127.0.0.1:1/{wheel.name}", NONE, home=tmp_path)
    assert not [path for path in (tmp_path / "wheels").iterdir() if path.name.startswith(".")]


def test_a_fetch_has_a_deadline(tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = make_wheel(tmp_path / "site")
    monkeypatch.setattr("tipcflow.execute.source.wheel._FETCH_S", -1.0)
    with pytest.raises(InfraError, match=r"the wheel was not fetched from 127\.0\.0\.1 within -1 s"):
        fetch_wheel(f"{server}/{wheel.name}", sha256_of(wheel), home=tmp_path)
    assert not [path for path in (tmp_path / "wheels").rglob("*") if path.is_file()]


def test_airflow_accepts_names_of_wheels_in_its_folder(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels")
    build = fetch_wheel(wheel.name, sha256_of(wheel), home=tmp_path, only_names=True)
    assert kept_wheel(tmp_path, build).is_file()


def test_wheel_kept_by_hash_needs_no_file_of_its_name(tmp_path: Path) -> None:
    """Two builds of one version have the same name."""
    first = make_wheel(tmp_path / "first", text="a")
    build = fetch_wheel(str(first), "", home=tmp_path)
    make_wheel(tmp_path / "wheels", text="b")
    assert fetch_wheel(first.name, build.sha256, home=tmp_path, only_names=True) == build
    assert kept_wheel(tmp_path, build).read_bytes() == first.read_bytes()
    assert name_build(first.name, build.sha256, home=tmp_path, hosts="") == build


def test_named_wheel_is_checked_in_place(tmp_path: Path) -> None:
    """The api-server, which reads it, may not write there."""
    wheel = make_wheel(tmp_path / "wheels")
    (tmp_path / "wheels").chmod(0o500)
    assert name_build(wheel.name, sha256_of(wheel), home=tmp_path, hosts="").version == "1.0"
    with pytest.raises(ConfigError, match="has another hash"):
        name_build(wheel.name, NONE, home=tmp_path, hosts="")
    assert [path.name for path in (tmp_path / "wheels").iterdir()] == [wheel.name]


def test_hash_of_an_address_is_checked(tmp_path: Path, server: str) -> None:
    wheel = make_wheel(tmp_path / "site")
    check_address(f"{server}/{wheel.name}", sha256_of(wheel))
    with pytest.raises(ConfigError, match=f"has another hash; found '{sha256_of(wheel)}'; expected {NONE}"):
        check_address(f"{server}/{wheel.name}", NONE)
    with pytest.raises(ConfigError, match="404"):
        check_address(f"{server}/missing-1-py3-none-any.whl", NONE)
    with pytest.raises(InfraError, match="cannot be fetched"):
        check_address(f"http://127.0.0.1:1/{wheel.name}", NONE)


def wrong(tmp_path: Path, source: str, sha256: str, *, only_names: bool = False) -> str:
    with pytest.raises(TipcflowError) as caught:
        fetch_wheel(source, sha256, home=tmp_path / "home", only_names=only_names)
    return str(caught.value).replace(str(tmp_path), "TMP")


def test_messages_name_source_and_problem(tmp_path: Path) -> None:
    good = make_wheel(tmp_path)
    sha256 = sha256_of(good)
    text = tmp_path / "toyframe-2.0-py3-none-any.whl"
    text.write_text("not found")
    tar = tmp_path / "toyframe-1.0.tar.gz"
    tar.touch()
    assert wrong(tmp_path, str(good), NONE) == (
        f"--sha256: TMP/{good.name} has another hash; found '{sha256}'; expected {NONE}"
    )
    assert "--framework-wheel: no such file; found 'TMP/x-1-py3-none-any.whl'" in wrong(
        tmp_path, str(tmp_path / "x-1-py3-none-any.whl"), ""
    )
    assert "--framework-wheel: is not a wheel: no zip archive" in wrong(tmp_path, str(text), "")
    assert "--framework-wheel: is not a wheel; found 'TMP/toyframe-1.0.tar.gz'" in wrong(tmp_path, str(tar), "")
    assert "--sha256: the wheel needs a hash" in wrong(tmp_path, f"https://x.example/{good.name}", "")
    assert "--sha256: is not a hash; found 'abc'" in wrong(tmp_path, str(good), "abc")
    for place in (str(good), "../" + good.name, "a/" + good.name):
        assert "is not on the machine of Airflow" in wrong(tmp_path, place, sha256, only_names=True)
    with pytest.raises(ConfigError, match="has no effect without a wheel"):
        check_source("", NONE, only_names=False)


@pytest.mark.parametrize("login", ["bot:secret@", "bot@", ":secret@"])
def test_an_address_with_a_login_is_refused(login: str) -> None:
    """A request is shown to every user of Airflow."""
    with pytest.raises(ConfigError, match="contains a login") as caught:
        check_source(f"https://{login}example.com/a-1-py3-none-any.whl", NONE, only_names=True)
    assert "secret" not in str(caught.value)


def test_hosts_that_a_site_allows(tmp_path: Path, server: str) -> None:
    """Also after a redirect: a server that is allowed must not lead to one that is not."""
    wheel = make_wheel(tmp_path / "site")
    sha256 = sha256_of(wheel)
    message = r"--framework-wheel: the host of the address is not in TIPCFLOW_WHEEL_HOSTS; found '127\.0\.0\.1'"
    with pytest.raises(ConfigError, match=message):
        fetch_wheel(f"{server}/{wheel.name}", sha256, home=tmp_path, hosts="wheels.example.org, *.internal")
    elsewhere = redirect_to(f"{server}/{wheel.name}")
    with elsewhere as address, pytest.raises(ConfigError, match=message):
        fetch_wheel(f"{address}/{wheel.name}", sha256, home=tmp_path, hosts="localhost")
    assert fetch_wheel(f"{server}/{wheel.name}", sha256, home=tmp_path, hosts="127.0.0.*").wheel == wheel.name


@contextmanager
def redirect_to(target: str) -> Iterator[str]:
    """The address of a server on `localhost` that redirects every request."""

    class Redirect(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", target)
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Redirect) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield f"http://localhost:{made.server_port}"
        made.shutdown()
        thread.join(10)


def test_worker_with_a_separate_home_gets_the_wheel_from_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bucket").mkdir()
    monkeypatch.setenv("TIPCFLOW_STORE", f"file://{tmp_path}/bucket")
    wheel = make_wheel(tmp_path / "built")
    build = fetch_wheel(str(wheel), "", home=tmp_path / "here")
    there = kept_wheel(tmp_path / "there", build)
    assert (there.name, there.read_bytes()) == (build.wheel, wheel.read_bytes()), "pip checks the name"
    (tmp_path / "bucket" / "wheels" / build.sha256 / build.wheel).unlink()
    with pytest.raises(InfraError, match="is not on this machine"):
        kept_wheel(tmp_path / "third", build)
