"""Secrets of a local Airflow: made once, for their owner alone, and nowhere else."""

import json
import os
import stat
from pathlib import Path

import pytest

from devcluster.airflow.environment import Folders, environment
from devcluster.airflow.home import AirflowHome, airflow_home
from tipcflow.domain import ConfigError

SETTINGS = "# why\nAIRFLOW__CORE__PARALLELISM=3\n"


@pytest.fixture
def made(tmp_path: Path) -> AirflowHome:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "airflow.env").write_text(SETTINGS)
    return airflow_home(tmp_path / "airflow")


def env_of(made: AirflowHome, **more: str) -> dict[str, str]:
    root = made.folder.parent
    return environment(made, Folders(root / "dags", None, root / "configs"), home=root, port=8123, more=more)


def test_secrets_are_for_their_owner_and_stay(made: AirflowHome) -> None:
    config = (made.folder / "airflow.cfg").read_text()
    assert {line.split(" = ")[0] for line in config.splitlines() if " = " in line} == {
        "fernet_key",
        "secret_key",
        "jwt_secret",
    }
    assert json.loads(made.passwords_file.read_text()) == {"admin": made.password}
    for path in (made.folder / "airflow.cfg", made.passwords_file):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(made.folder.stat().st_mode) == 0o700
    assert airflow_home(made.folder) == made
    assert (made.folder / "airflow.cfg").read_text() == config
    assert made.password not in repr(made)


def test_two_homes_share_no_secret(made: AirflowHome, tmp_path: Path) -> None:
    other = airflow_home(tmp_path / "other")
    assert other.password != made.password
    assert (other.folder / "airflow.cfg").read_text() != (made.folder / "airflow.cfg").read_text()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"admin": 3}'])
def test_a_corrupt_passwords_file_is_rewritten(made: AirflowHome, text: str) -> None:
    made.passwords_file.write_text(text)
    made.passwords_file.chmod(0o644)
    again = airflow_home(made.folder)
    assert json.loads(again.passwords_file.read_text()) == {"admin": again.password}
    assert stat.S_IMODE(again.passwords_file.stat().st_mode) == 0o600


def test_no_secret_is_in_the_environment(made: AirflowHome) -> None:
    result = "\n".join(env_of(made).values())
    secrets = [
        line.split(" = ")[1] for line in (made.folder / "airflow.cfg").read_text().splitlines() if " = " in line
    ]
    assert [secret for secret in [*secrets, made.password] if secret in result] == []


def test_another_airflows_settings_do_not_leak_in(made: AirflowHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_HOME", "/elsewhere")
    monkeypatch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "True")
    monkeypatch.setenv("AIRFLOW_CONN_PROD", "ssh://prod")
    monkeypatch.setenv("http_proxy", "http://proxy:1")
    env = env_of(made)
    assert env["AIRFLOW_HOME"] == str(made.folder)
    assert [key for key in env if "EXAMPLES" in key or key.startswith("AIRFLOW_CONN")] == []
    assert env["AIRFLOW__CORE__PARALLELISM"] == "3"
    assert env["http_proxy"] == "http://proxy:1"
    assert "127.0.0.1" in env["no_proxy"].split(",")
    assert env["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:8123/execution/"
    assert env["PATH"].split(os.pathsep)[0]


def test_environment_overrides_generated_settings(made: AirflowHome) -> None:
    env = env_of(made, AIRFLOW__CORE__PARALLELISM="9", AIRFLOW__API__PORT="1")
    assert (env["AIRFLOW__CORE__PARALLELISM"], env["AIRFLOW__API__PORT"]) == ("9", "1")


def test_a_wrong_settings_file_is_reported(made: AirflowHome) -> None:
    (made.folder.parent / "configs" / "airflow.env").write_text("nonsense\n")
    with pytest.raises(ConfigError, match=r"airflow.env:1: not a setting"):
        env_of(made)
