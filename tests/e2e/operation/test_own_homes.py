"""Two Celery workers with homes of their own and an object store: one of them judges what both have fetched."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support import postgres
from tests.support.certify import ROOT, TIPCFLOW, Site
from tests.support.programs import need
from tests.support.scheduler import DAG, Scheduler, make_catalog

from devcluster.airflow.health import free_port
from devcluster.airflow.stack import airflow_stack
from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.airflow_api.node_connections import connections_env
from tipcflow.domain import Status

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(900)]


@contextmanager
def redis(folder: Path) -> Iterator[str]:
    port = free_port()
    argv = [need("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
    server = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    try:
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.kill()
        server.wait()


@contextmanager
def worker(name: str, scheduler_pid: int, home: Path) -> Iterator[None]:
    """A Celery worker of a running Airflow, which differs from its components in TIPCFLOW_HOME only."""
    content = Path(f"/proc/{scheduler_pid}/environ").read_bytes().decode()
    env = dict(line.split("=", 1) for line in content.split("\0") if line)
    argv = [sys.executable, "-P", "-m", "airflow", "celery", "worker", "--skip-serve-logs", "--without-gossip"]
    with (home.parent / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            [*argv, "--without-mingle", "--celery-hostname", f"{name}@%h"],
            env={**env, "TIPCFLOW_HOME": str(home)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(60)
            finally:
                process.kill()


def test_run_of_two_workers_is_certified_from_the_object_store(nodes: LocalNodes, tmp_path: Path) -> None:
    homes = {name: tmp_path / name for name in ("first", "second")}
    objects = tmp_path / "objects"
    objects.mkdir()
    with postgres.running() as server, redis(tmp_path) as broker:
        site = Site(tmp_path, nodes, database_url=server.create())
        dags = make_catalog(site)
        (site.configs / "airflow.env").write_bytes((ROOT / "configs" / "airflow.env").read_bytes())
        airflow_database = server.create().replace("postgresql://", "postgresql+psycopg2://")
        env = {
            "TIPCFLOW_STORE": f"file://{objects}",
            "TIPCFLOW_DATABASE_URL": site.database_url,
            "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": airflow_database,
            "AIRFLOW__CELERY__BROKER_URL": broker,
            "AIRFLOW__CELERY__RESULT_BACKEND": f"db+{airflow_database}",
            # One task at a time per worker, so that both have a part in each run.
            "AIRFLOW__CELERY__WORKER_CONCURRENCY": "1",
            "AIRFLOW__CELERY__WORKER_PREFETCH_MULTIPLIER": "1",
        }
        with airflow_stack(
            site.home, dags=dags, configs=site.configs, env=env, connections=connections_env(nodes.cluster)
        ) as stack:
            scheduler = Scheduler(site, stack)
            pid = stack.pids["scheduler"]
            with worker("first", pid, homes["first"]), worker("second", pid, homes["second"]):
                scheduler.wait_for_dags(DAG)
                _, run = scheduler.certify()
            assert run.status is Status.PASS, run.reason
        _check_files(site, run.id, homes, objects)


def _check_files(site: Site, run: str, homes: dict[str, Path], objects: Path) -> None:
    """Both workers fetched logs; the certificate lists the files of both, and each machine can verify all."""
    folders = {name: home / "runs" / run for name, home in homes.items()}
    fetched = {
        name: {path.relative_to(folder).as_posix() for path in folder.glob("*/*/**/*.log")}
        for name, folder in folders.items()
    }
    assert all(fetched.values()), fetched
    certificate = json.loads((objects / "runs" / run / "certificate.json").read_text())
    assert set(certificate["files"]) >= fetched["first"] | fetched["second"]
    assert not fetched["first"] & fetched["second"], "a step was closed twice"
    for home in (*homes.values(), site.home):
        own = {"TIPCFLOW_HOME": str(home), "TIPCFLOW_STORE": f"file://{objects}"}
        env = {**os.environ, **site.env, **own}
        command = [str(TIPCFLOW), "certificate", "verify", run]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        count = len(certificate["files"])
        assert f"({count} of {count} collected files checked)" in done.stdout
