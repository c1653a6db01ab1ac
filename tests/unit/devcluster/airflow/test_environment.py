"""The environment of a local Airflow: its database, and who may name another."""

from pathlib import Path

import pytest
from sqlalchemy.dialects.sqlite import dialect
from sqlalchemy.engine import make_url

from devcluster.airflow.environment import SQL_ALCHEMY_CONN, Folders, environment
from devcluster.airflow.home import AirflowHome, airflow_home
from devcluster.airflow.migration import is_migrated

OTHER = "postgresql+psycopg2://user@db/airflow"


@pytest.fixture
def airflow(tmp_path: Path) -> AirflowHome:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "airflow.env").write_text("# Few cores.\nAIRFLOW__CORE__PARALLELISM=4\n")
    return airflow_home(tmp_path / "airflow")


def made(airflow: AirflowHome, **more: str) -> dict[str, str]:
    folder = airflow.folder.parent
    return environment(airflow, Folders(folder, None, folder / "configs"), home=folder, port=1, more=more)


def test_writers_of_the_sqlite_file_wait_for_each_other(airflow: AirflowHome) -> None:
    """SQLite's own 5 s are too short: Airflow's scheduler ends when they are over."""
    url = make_url(made(airflow)[SQL_ALCHEMY_CONN])
    words, options = dialect().create_connect_args(url)
    assert words == [str(airflow.database)]
    assert options["timeout"] == 60.0


def test_only_the_api_server_stops_early(airflow: AirflowHome) -> None:
    words, options = dialect().create_connect_args(make_url(airflow.impatient_url))
    assert words == [str(airflow.database)]
    assert "timeout" not in options


def test_settings_name_another_database(airflow: AirflowHome) -> None:
    assert made(airflow, **{SQL_ALCHEMY_CONN: OTHER})[SQL_ALCHEMY_CONN] == OTHER
    settings = airflow.folder.parent / "configs" / "airflow.env"
    settings.write_text(f"# A server.\n{SQL_ALCHEMY_CONN}={OTHER}\n")
    env = made(airflow)
    assert env[SQL_ALCHEMY_CONN] == OTHER
    assert not is_migrated(airflow, env)
