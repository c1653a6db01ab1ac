"""The files of docker/, and the settings and secrets that docker/env.sh makes."""

import importlib.util
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from tests.support.programs import need

ROOT = Path(__file__).parents[3]
# Services with Airflow's image.
AIRFLOW = ("init", "api-server", "scheduler", "dag-processor", "triggerer", "worker")


def compose(root: Path, env_file: Path | None, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run docker-compose with docker-compose.yaml and the file of settings; without it, with those of .env."""
    chosen = ["--env-file", str(env_file), "-f", "docker-compose.yaml"] if env_file else []
    command = [need("docker-compose"), *chosen, *arguments]
    clean = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    return subprocess.run(command, cwd=root, env=clean, capture_output=True, text=True, timeout=240)


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def env_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh .env."""
    need("ssh-keygen")
    need("openssl")
    path = tmp_path_factory.mktemp("env") / ".env"
    subprocess.run([ROOT / "docker/env.sh", path], check=True, capture_output=True, timeout=60)
    return path


@pytest.fixture(scope="session")
def secrets(env_file: Path) -> Path:
    """The folder with a fresh secret per file."""
    return env_file.parent / ".secrets"


@pytest.fixture(scope="session")
def env(env_file: Path, secrets: Path) -> Mapping[str, str]:
    """All settings and secrets, the latter by their names in upper case."""
    settings = dict(line.split("=", 1) for line in env_file.read_text().splitlines())
    return settings | {path.name.upper(): path.read_text() for path in secrets.iterdir()}


@pytest.fixture(scope="session")
def config(root: Path, env_file: Path) -> dict[str, Any]:
    """What docker-compose makes of the file."""
    result = compose(root, env_file, "config")
    assert result.returncode == 0, result.stderr
    return dict(yaml.safe_load(result.stdout))


@pytest.fixture(scope="session")
def services(config: Mapping[str, Any]) -> dict[str, Any]:
    return dict(config["services"])


def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docker" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def entrypoint() -> ModuleType:
    """docker/airflow_entrypoint.py."""
    return _module("airflow_entrypoint")


@pytest.fixture(scope="session")
def health() -> ModuleType:
    """docker/health.py."""
    return _module("health")


@pytest.fixture
def given(env: Mapping[str, str], entrypoint: ModuleType, tmp_path: Path) -> dict[str, str]:
    """Secrets in the environment, as in a deployment without secret files; AIRFLOW_HOME is `tmp_path`."""
    return {
        "AIRFLOW_HOME": str(tmp_path),
        "AIRFLOW_DB_URL": "postgresql+psycopg2://airflow:word1@postgres/airflow",
        "AIRFLOW_BROKER_URL": "redis://:word2@redis:6379/0",
        "AIRFLOW_RESULTS_URL": "db+postgresql+psycopg2://results:word3@postgres/results",
        **{name: env[name] for name in ("AIRFLOW_FERNET_KEY", "AIRFLOW_SECRET_KEY", "AIRFLOW_JWT_SECRET")},
    }
