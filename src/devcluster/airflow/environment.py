"""Environment of every process of a local Airflow."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from devcluster.airflow.home import USER, AirflowHome
from devcluster.airflow.settings_file import read_settings

LOOPBACK = "127.0.0.1"
SQL_ALCHEMY_CONN = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"


class Folders(NamedTuple):
    """Folders that Airflow reads.

    Attributes:
        dags: the DAGs folder.
        plugins: the plugins folder; None for none.
        configs: TIPCFLOW_CONFIG_DIR; its `airflow.env` contains the settings.
    """

    dags: Path
    plugins: Path | None
    configs: Path


def environment(
    airflow: AirflowHome, folders: Folders, *, home: Path, port: int, more: Mapping[str, str]
) -> dict[str, str]:
    """Return this process's environment with its Airflow settings replaced by tipcflow's; `more` overrides both.

    Args:
        home: TIPCFLOW_HOME.

    Raises:
        ConfigError: the settings file is invalid.
    """
    env = {key: value for key, value in os.environ.items() if not _is_foreign(key)}
    env[SQL_ALCHEMY_CONN] = airflow.database_url
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
    # An external proxy cannot reach this machine's loopback.
    for name in ("NO_PROXY", "no_proxy"):
        env[name] = ",".join(part for part in (env.get(name, ""), LOOPBACK, "localhost") if part)
    return env | dict(more)


def _is_foreign(key: str) -> bool:
    """Whether a variable is a setting of another Airflow, or changes the imports of this Python."""
    return key.startswith(("AIRFLOW_", "_AIRFLOW_")) or key in ("PYTHONHOME", "PYTHONSTARTUP")
