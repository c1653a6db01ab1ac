"""airflow.cfg of airflow_entrypoint.py: with docker-compose, and in a private copy of the Helm chart's file."""

import configparser
import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from tests.unit.docker.conftest import AIRFLOW, compose


def test_mounted_configuration_without_secrets_to_add_is_kept(entrypoint: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "airflow.cfg").write_text("[core]\nexecutor = KubernetesExecutor\n")
    left = {"AIRFLOW__CORE__FERNET_KEY": "of the chart"}
    entrypoint.prepare(left, tmp_path)
    assert (tmp_path / "airflow.cfg").read_text() == "[core]\nexecutor = KubernetesExecutor\n"
    assert left == {"AIRFLOW__CORE__FERNET_KEY": "of the chart"}


@pytest.fixture
def mounted(tmp_path: Path) -> Path:
    """AIRFLOW_HOME with the configuration of the Helm chart."""
    home = tmp_path / "home"
    home.mkdir()
    text = "[core]\nexecutor = KubernetesExecutor\nfernet_key = old\n[logging]\nx = 5%\n"
    (home / "airflow.cfg").write_text(text)
    return home


def assert_is_merged(file: Path, given: Mapping[str, str]) -> None:
    config = configparser.RawConfigParser()
    config.read(file)
    assert config["core"]["executor"] == "KubernetesExecutor"
    assert config["core"]["fernet_key"] == given["AIRFLOW_FERNET_KEY"]
    assert config["logging"]["x"] == "5%"
    assert {path.stat().st_mode & 0o777 for path in (file, file.parent)} == {0o600, 0o700}


def test_secrets_are_in_a_private_folder_if_the_configuration_is_mounted(
    entrypoint: ModuleType, given: dict[str, str], mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = Path.replace

    def refuse(path: Path, target: Path) -> None:
        if target == mounted / "airflow.cfg":  # a mount point
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        replace(path, target)

    monkeypatch.setattr(Path, "replace", refuse)
    for _ in range(2):  # the component, then a probe in its container
        left = dict(given)
        entrypoint.prepare(left, mounted)
        file = Path(left.pop("AIRFLOW_CONFIG"))
        assert set(left) == {"AIRFLOW_HOME"}
        assert_is_merged(file, given)
    assert file == mounted / "private" / "airflow.cfg"
    assert {path.name for path in mounted.rglob("*")} == {"airflow.cfg", "private"}


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_secrets_are_elsewhere_if_the_home_is_not_writable(
    entrypoint: ModuleType,
    given: dict[str, str],
    mounted: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    opened, mkdir = os.open, Path.mkdir

    def refuse(path: Path) -> None:
        if mounted in Path(path).parents:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", lambda path, *more: (refuse(path), opened(path, *more))[1])
    monkeypatch.setattr(Path, "mkdir", lambda path, *more, **named: (refuse(path), mkdir(path, *more, **named))[1])
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    left = dict(given)
    entrypoint.prepare(left, mounted)
    file = Path(left.pop("AIRFLOW_CONFIG"))
    assert set(left) == {"AIRFLOW_HOME"}
    assert file.parents[1] == temporary
    assert_is_merged(file, given)


def test_other_errors_of_the_home_end_the_start(
    entrypoint: ModuleType, given: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError):
        entrypoint.prepare(given, tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("lines", "address"),
    [
        ("", "http://localhost:8080"),
        ("AIRFLOW_PORT=8081", "http://localhost:8081"),
        ("AIRFLOW_PORT=8081\nAIRFLOW_URL=https://tipc.example.com", "https://tipc.example.com"),
    ],
)
def test_logins_return_to_the_address_of_this_deployment(
    root: Path, env_file: Path, entrypoint: ModuleType, tmp_path: Path, lines: str, address: str
) -> None:
    (tmp_path / "env").write_text(env_file.read_text() + lines)
    services = yaml.safe_load(compose(root, tmp_path / "env", "config").stdout)["services"]
    for name in AIRFLOW:
        left = dict(services[name]["environment"])
        # The environment would have priority.
        assert "AIRFLOW__API__BASE_URL" not in left
        entrypoint.prepare(left, tmp_path, tmp_path / "none")
        assert f"\nbase_url = {address}\n" in (tmp_path / "airflow.cfg").read_text(), name
        assert not {*entrypoint.ADDRESSES} & left.keys(), name


@pytest.mark.process
@pytest.mark.parametrize("is_mounted", [False, True])
def test_airflow_reads_percent_encoded_passwords(
    entrypoint: ModuleType, tmp_path: Path, is_mounted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, url = tmp_path / "secret", "redis://:p%40ss%%@redis:6379/0"
    secret.mkdir()
    (secret / "broker").write_text("p%40ss%%")
    if is_mounted:
        (tmp_path / "airflow.cfg").write_text("[core]\nexecutor = KubernetesExecutor\n[logging]\nx = 5%%\n")
    left = {"AIRFLOW_BROKER_URL": "redis://:{BROKER}@redis:6379/0", "AIRFLOW_URL": "https://a.example.com/%7Eci"}
    if is_mounted:
        monkeypatch.setattr(entrypoint, "_write", refusing(entrypoint._write, tmp_path / "airflow.cfg"))
    entrypoint.prepare(left, tmp_path, secret)
    script = (
        "from airflow.configuration import conf; "
        "print(conf.get('celery', 'broker_url'), conf.get('api', 'base_url'))"
    )
    env = {"PATH": os.environ["PATH"], "AIRFLOW_HOME": str(tmp_path), **left}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.splitlines()[-1] == f"{url} https://a.example.com/%7Eci"


def refusing(write: Callable[[Path, str], None], mounted: Path) -> Callable[[Path, str], None]:
    """The writer for a file that is a mount point."""

    def refuse(path: Path, text: str) -> None:
        if path == mounted:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        write(path, text)

    return refuse
