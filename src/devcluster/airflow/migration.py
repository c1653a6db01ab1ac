"""Migration state of Airflow's database, without a call of Airflow, which takes 10 s."""

import contextlib
import sqlite3
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from devcluster.airflow.environment import SQL_ALCHEMY_CONN
from devcluster.airflow.home import AirflowHome
from tipcflow.domain import InfraError

_NOTE = "migrated"


def airflow_version() -> str:
    """Return the installed Airflow's version.

    Raises:
        InfraError: this Python environment has no Airflow.
    """
    try:
        return version("apache-airflow-core")
    except PackageNotFoundError as error:
        raise InfraError(
            "Airflow is not installed here",
            hint="make install, or tipcflow demo --cli, which does not need Airflow",
        ) from error


def is_migrated(airflow: AirflowHome, env: dict[str, str]) -> bool:
    """Whether this version migrated the home's own SQLite file; False if unknown."""
    if env[SQL_ALCHEMY_CONN] != airflow.database_url:
        return False
    try:
        noted = (airflow.folder / _NOTE).read_text()
    except OSError:
        return False
    return noted == f"{airflow_version()} {_revision(airflow.database)}"


def note_migrated(airflow: AirflowHome) -> None:
    """Record that the migration has succeeded."""
    (airflow.folder / _NOTE).write_text(f"{airflow_version()} {_revision(airflow.database)}")


def _revision(database: Path) -> str:
    if not database.is_file():
        return ""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT version_num FROM alembic_version").fetchall()
        return ",".join(sorted(row[0] for row in rows))
    return ""
