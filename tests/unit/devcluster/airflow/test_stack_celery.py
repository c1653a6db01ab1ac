"""The same stack with PostgreSQL, Redis and a Celery worker: what differs comes through the environment."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import postgres
from tests.support.programs import need

from devcluster.airflow.health import free_port
from devcluster.airflow.stack import COMPONENTS, airflow_stack
from devcluster.local_nodes.processes import wait_until
from tipcflow.airflow_api import Airflow

pytestmark = [pytest.mark.process, pytest.mark.full, pytest.mark.timeout(900)]

CONFIGS = Path(__file__).resolve().parents[4] / "configs"
# The setting of configs/airflow.env imports what steps need before the worker forks.
DAG = """
import sys

from airflow.sdk import DAG, task

with DAG("one", schedule=None, is_paused_upon_creation=False):

    @task
    def hello() -> str:
        assert "tipcflow.execute.run.step" in sys.modules
        return "hello"

    hello()
"""


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[str]:
    program = need("redis-server")
    port = free_port()
    argv = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(tmp_path), "--save", ""]
    server = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    yield f"redis://127.0.0.1:{port}/0"
    server.kill()
    server.wait()


def test_a_task_runs_on_a_celery_worker(tmp_path: Path, redis: str) -> None:
    dags = tmp_path / "dags"
    dags.mkdir()
    (dags / "one.py").write_text(DAG)
    with postgres.running() as server:
        url = server.create().replace("postgresql://", "postgresql+psycopg2://")
        env = {
            "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": url,
            "AIRFLOW__CELERY__BROKER_URL": redis,
            "AIRFLOW__CELERY__RESULT_BACKEND": f"db+{url}",
            "AIRFLOW__CELERY__WORKER_CONCURRENCY": "2",
        }
        components = [*COMPONENTS, "worker"]
        with (
            airflow_stack(tmp_path, dags=dags, configs=CONFIGS, env=env, components=components) as stack,
            Airflow(stack.url, user=stack.user, password=stack.password) as airflow,
        ):
            wait_until(
                lambda: any(dag.dag_id == "one" for dag in airflow.dags()),
                "the DAG was not listed",
                deadline_s=120,
            )
            run = airflow.trigger("one", {}, "test__1")
            wait_until(
                lambda: airflow.dag_run("one", run.run_id).state.ended, "the run did not end", deadline_s=180
            )
            assert [task.state for task in airflow.task_instances("one", run.run_id)] == ["success"]
            assert not (stack.airflow_home / "airflow.db").exists()
            stack.check()
