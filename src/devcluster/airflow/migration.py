"""Whether Airflow's database is as this Airflow needs it, without asking Airflow, which takes ten seconds."""

import contextlib
import sqlite3
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from devcluster.airflow.home import AirflowHome
from tipcflow.domain import InfraError

_NOTE = "migrated"


def airflow_version() -> str:
    """The installed Airflow's version.

    Raises:
        InfraError: there is none beside this Python.
    """
    try:
        return version("apache-airflow-core")
    except PackageNotFoundError as error:
        raise InfraError(
            "Airflow is not installed here", hint="make install, or tipcflow demo --cli, which needs none"
        ) from error


def is_migrated(airflow: AirflowHome, env: dict[str, str]) -> bool:
    """Whether the home's own SQLite file was migrated by this version; False when that is not known."""
    if "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN" in env:
        return False
    try:
        noted = (airflow.folder / _NOTE).read_text()
    except OSError:
        return False
    return noted == f"{airflow_version()} {_revision(airflow.database)}"


def note_migrated(airflow: AirflowHome) -> None:
    """Remember that the migration has ended well."""
    (airflow.folder / _NOTE).write_text(f"{airflow_version()} {_revision(airflow.database)}")


def _revision(database: Path) -> str:
    if not database.is_file():
        return ""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT version_num FROM alembic_version").fetchall()
        return ",".join(sorted(row[0] for row in rows))
    return ""
