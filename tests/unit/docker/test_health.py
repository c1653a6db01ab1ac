"""The health check of a container reports its own component, not that of another instance."""

import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import ModuleType

import psycopg
import pytest
from tests.support import postgres

TABLES = """
CREATE TABLE job (job_type text, hostname text, state text, start_date timestamptz, latest_heartbeat timestamptz);
CREATE TABLE dag (relative_fileloc text, last_parsed_time timestamptz);
CREATE TABLE import_error (filename text, timestamp timestamptz);
"""


@pytest.fixture
def answers() -> Iterator[str]:
    """The address of a server whose path `/dead` responds as an unhealthy scheduler does."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(503 if self.path == "/dead" else 200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_health_is_the_response_of_the_component(health: ModuleType, answers: str) -> None:
    assert health.responds(f"{answers}/health")
    with pytest.raises(OSError, match="503"):
        health.responds(f"{answers}/dead")
    with pytest.raises(KeyError):
        health.healthy("schedulr")
    assert set(health.OWN) == {"scheduler", "api_server"}


def test_component_that_is_away_is_not_healthy(health: ModuleType) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(OSError, match="refused"):
        health.responds(f"http://127.0.0.1:{port}/health")


class Database:
    """Airflow's tables, as far as the health check reads them."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.run(TABLES)

    def run(self, text: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(text)

    def add_job(
        self, kind: str, *, host: str = "", started_s: int = 5, beat_s: int = 1, state: str = "running"
    ) -> None:
        self.run(
            f"INSERT INTO job VALUES ('{kind}', '{host or socket.gethostname()}', '{state}',"
            f" now() - interval '{started_s} s', now() - interval '{beat_s} s')"
        )


@pytest.fixture
def database() -> Iterator[Database]:
    with postgres.running() as server:
        yield Database(server.url("postgres"))


@pytest.mark.process
def test_triggerer_is_healthy_by_its_own_heartbeat(health: ModuleType, database: Database) -> None:
    database.add_job("TriggererJob", host="another")
    database.add_job("TriggererJob", beat_s=90)
    database.add_job("TriggererJob", state="success")
    database.add_job("SchedulerJob")
    assert not health.job_is_healthy("triggerer", database.url)
    database.add_job("TriggererJob", beat_s=20)
    assert health.job_is_healthy("triggerer", database.url)


@pytest.mark.process
def test_dag_processor_is_healthy_once_all_files_are_parsed(
    health: ModuleType, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(tmp_path))
    (tmp_path / "more").mkdir()
    for name in ("a.py", "more/b.py"):
        (tmp_path / name).touch()
    database.add_job("DagProcessorJob", started_s=20)
    # Rows of an earlier start.
    database.run(
        "INSERT INTO dag SELECT name, now() - interval '1 h' FROM unnest(ARRAY['a.py', 'more/b.py']) name"
    )
    assert not health.job_is_healthy("dag_processor", database.url)
    database.run("INSERT INTO dag VALUES ('a.py', now())")
    assert not health.job_is_healthy("dag_processor", database.url)
    database.run("INSERT INTO import_error VALUES ('more/b.py', now())")
    assert health.job_is_healthy("dag_processor", database.url)
    # A file without DAGs is never listed.
    (tmp_path / "empty.py").touch()
    assert not health.job_is_healthy("dag_processor", database.url)
    database.run("UPDATE job SET start_date = now() - interval '200 s'")
    assert health.job_is_healthy("dag_processor", database.url)


@pytest.mark.process
def test_columns_that_are_read_exist_in_airflow(health: ModuleType) -> None:
    from airflow.jobs.job import Job
    from airflow.models.dag import DagModel
    from airflow.models.errors import ParseImportError

    for table, names in (
        (Job.__table__, {"job_type", "hostname", "state", "start_date", "latest_heartbeat"}),
        (DagModel.__table__, {"relative_fileloc", "last_parsed_time"}),
        (ParseImportError.__table__, {"filename", "timestamp"}),
    ):
        assert names <= set(table.columns.keys())
        assert (
            f" {table.name}\n" in health.JOB_QUERY + health.PARSED_QUERY
            or f" {table.name} " in health.JOB_QUERY + health.PARSED_QUERY
        )
