"""`tipcflow doctor` on this machine: each problem is reported with its fix, and the exit code is 2."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tipcflow.cli.doctor.local import check_local
from tipcflow.config.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    configs = tmp_path / "configs" / "suites"
    configs.mkdir(parents=True)
    (configs / "mine.yaml").touch()
    return Settings(
        home=tmp_path / "home", database_url=f"sqlite:///{tmp_path}/t.db", config_dir=tmp_path / "configs"
    )


def finding(settings: Settings, what: str) -> tuple[bool, str]:
    (found,) = [found for found in check_local(settings) if found.what == what]
    return found.ok, found.text


def test_missing_database_is_acceptable(settings: Settings, tmp_path: Path) -> None:
    ok, text = finding(settings, "database")
    assert ok
    assert text.endswith("t.db (created by the first run)")
    assert not (tmp_path / "t.db").exists()


def test_a_database_without_schema_wants_an_upgrade(settings: Settings, tmp_path: Path) -> None:
    import sqlite3

    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute("create table t (x)")
    ok, text = finding(settings, "database")
    assert not ok
    assert text.endswith("run `tipcflow db upgrade`")


def test_an_unreachable_database_is_reported_without_its_password(settings: Settings) -> None:
    url = "postgresql://me:hidden@127.0.0.1:9/none"
    ok, text = finding(settings.model_copy(update={"database_url": url}), "database")
    assert not ok
    assert "127.0.0.1:9" in text
    assert "hidden" not in text


def test_missing_suites_are_reported(settings: Settings, tmp_path: Path) -> None:
    assert finding(settings, "configs") == (True, f"{tmp_path}/configs: 1 suite")
    ok, text = finding(settings.model_copy(update={"config_dir": tmp_path / "nowhere"}), "configs")
    assert not ok
    assert "set TIPCFLOW_CONFIG_DIR" in text


def test_a_missing_program_is_reported(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    ok, text = finding(settings, "git")
    assert (ok, text) == (False, "checks out the suites' code: install the package git")


def test_the_kind_of_local_nodes_is_reported(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert finding(settings, "local nodes") == (
        True,
        "loopback addresses, each with an unprivileged sshd (network namespaces require root)",
    )


def test_without_sshd_no_local_node_can_start(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devcluster.install.packages.find_sshd", lambda: "")
    assert finding(settings, "local nodes") == (
        False,
        "none can start here: install openssh-server; nodes on other machines do not need them",
    )


def test_missing_node_environment_is_a_problem_with_a_remedy(settings: Settings) -> None:
    ok, text = finding(settings, "node environment")
    assert not ok
    assert text.endswith("`tipcflow demo` creates it")


@pytest.mark.slow
def test_the_command_exits_with_5_and_its_json_is_complete(tmp_path: Path) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("tipcflow"), "doctor", "--json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        timeout=60,
    )
    assert done.returncode == 5, done.stderr
    report = json.loads(done.stdout)
    assert report["ok"] is False
    assert {"Python", "git", "sshd", "uv", "node environment", "disk", "configs", "database"} <= {
        found["what"] for found in report["findings"]
    }
    assert all(found["fix"] for found in report["findings"] if not found["ok"])


def test_object_store_is_tried(settings: Settings, tmp_path: Path) -> None:
    ok, text = finding(settings, "object store")
    assert (ok, text) == (True, "none (TIPCFLOW_STORE): workers on other machines must share TIPCFLOW_HOME")
    url = f"file://{tmp_path}/objects"
    ok, text = finding(settings.model_copy(update={"store": url}), "object store")
    assert not ok
    assert f"the folder of the object store {url} does not exist on this machine: create it once" in text
    (tmp_path / "objects").mkdir()
    ok, text = finding(settings.model_copy(update={"store": url}), "object store")
    assert ok
    assert text.startswith(f"{url}: an object was written, read and removed in ")


def test_package_that_an_object_store_needs_is_named(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    ok, text = finding(settings.model_copy(update={"store": "s3://bucket"}), "object store")
    assert not ok
    assert "pip install 'tipcflow[s3]'" in text
