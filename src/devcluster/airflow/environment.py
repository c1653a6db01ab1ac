"""The environment that every process of a local Airflow gets."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from devcluster.airflow.home import USER, AirflowHome
from devcluster.airflow.settings_file import read_settings

LOOPBACK = "127.0.0.1"


class Folders(NamedTuple):
    """What Airflow reads.

    Attributes:
        dags: its DAGs folder.
        plugins: its plugins folder; None for none.
        configs: TIPCFLOW_CONFIG_DIR; `airflow.env` in it holds the settings.
    """

    dags: Path
    plugins: Path | None
    configs: Path


def environment(
    airflow: AirflowHome, folders: Folders, *, home: Path, port: int, more: Mapping[str, str]
) -> dict[str, str]:
    """This process's environment without its Airflow settings, plus ours; `more` wins over all of them.

    Args:
        home: TIPCFLOW_HOME.

    Raises:
        ConfigError: the settings file is wrong.
    """
    env = {key: value for key, value in os.environ.items() if not _is_foreign(key)}
    env |= {setting.key: setting.value for setting in read_settings(folders.configs / "airflow.env")}
    url = f"http://{LOOPBACK}:{port}"
    env |= {
        "AIRFLOW_HOME": str(airflow.folder),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folders.dags.resolve()),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str((folders.plugins or airflow.folder / "plugins").resolve()),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(airflow.passwords_file),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__HOST": LOOPBACK,
        "AIRFLOW__API__PORT": str(port),
        "TIPCFLOW_HOME": str(home.resolve()),
        "TIPCFLOW_CONFIG_DIR": str(folders.configs.resolve()),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), env.get("PATH", os.defpath)]),
        "PYTHONUNBUFFERED": "1",
    }
    # A proxy of the outer world has no way to this machine's loopback.
    for name in ("NO_PROXY", "no_proxy"):
        env[name] = ",".join(part for part in (env.get(name, ""), LOOPBACK, "localhost") if part)
    return env | dict(more)


def _is_foreign(key: str) -> bool:
    """Settings of some other Airflow that this shell knows, and what would change what our Python imports."""
    return key.startswith(("AIRFLOW_", "_AIRFLOW_")) or key in ("PYTHONHOME", "PYTHONSTARTUP")
