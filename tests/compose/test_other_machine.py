"""compose.worker.yaml on another machine: a network of its own, from which it reaches the main machine by TLS."""

import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest
import yaml
from tests.compose.conftest import Timed
from tests.support.certify import ROOT
from tests.support.compose.deployment import FAST, LAB, LAB_CONNECTION, NETWORK, SCALE, Deployment
from tests.support.compose.engine import KEPT, Engine
from tests.support.compose.local import free_port
from tests.support.compose.s3 import OPEN_REQUESTS, Logins
from tests.support.installed.operations_page import blocks

MAIN, WORKER = "tipc.test", "gpu-1"
PORTS = ("POSTGRES_PORT", "REDIS_PORT", "TLS_PORT")
# The name server of a site, as a part of each compose file.
NAMES = "names.yaml"


def _certify(deployment: Deployment, *words: str) -> None:
    script = deployment.folder / "docker/certificates.sh"
    subprocess.run([script, *words], check=True, capture_output=True, timeout=60)


def _ports(deployment: Deployment) -> dict[str, str]:
    """The published ports of the main machine."""
    lines = (line.partition("=") for line in (deployment.folder / ".env").read_text().splitlines())
    return {name: value for name, _, value in lines if name in PORTS}


@pytest.fixture(scope="module")
def logins(deployment: Deployment, engine: Engine, images: dict[str, str]) -> Iterator[Logins]:
    """Of an S3 service that other machines reach, with a bucket."""
    name, port, address = f"{deployment.project}-s3", free_port(), engine.address
    words = ["run", "--detach", "--rm", "--name", name, "--publish", f"{address}:{port}:5000"]
    words += ["--env", f"INITIAL_NO_AUTH_ACTION_COUNT={OPEN_REQUESTS}", images["PYTHON_IMAGE"]]
    engine.run(*words, "moto_server", "-H", "0.0.0.0", "-p", "5000")
    try:
        connect = "import socket; socket.create_connection(('localhost', 5000)); print(1)"
        deployment.until(lambda: engine.run("exec", name, "python", "-c", connect, check=False), "S3")
        yield Logins(f"http://{address}:{port}", "tipcflow")
    finally:
        engine.run("rm", "--force", name, check=False)


@pytest.fixture(scope="module")
def bucket(deployment: Deployment, engine: Engine, logins: Logins) -> Deployment:
    """The deployment with its objects in the bucket, and with compose.tls.yaml."""
    deployment.set(TIPCFLOW_STORE="s3://tipcflow/objects")
    deployment.set_secret("object_store", logins.current)
    _certify(deployment, "server", MAIN)
    ports = {name: str(free_port()) for name in PORTS}
    address = engine.address
    deployment.set(TLS_ADDRESS=address, AIRFLOW_URL=f"https://{MAIN}:{ports['TLS_PORT']}", **ports)
    names = {"services": {"api-server": {"extra_hosts": [f"{WORKER}:{address}"]}}}
    (deployment.folder / NAMES).write_text(yaml.safe_dump(names))
    deployment.files = ("docker-compose.yaml", "compose.tls.yaml", NAMES)
    deployment.up(scale=SCALE)
    deployment.until_healthy()
    return deployment


@pytest.fixture
def worker(bucket: Deployment, engine: Engine) -> Iterator[Deployment]:
    """The other machine, with a checkout and what certificates.sh wrote for it; its worker is the only one."""
    _certify(bucket, "worker", WORKER)
    folder = KEPT / WORKER
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(bucket.folder, folder, ignore=shutil.ignore_patterns(".env", ".secrets", ".certificates"))
    for name in (".env", ".secrets"):
        (bucket.folder / ".certificates" / WORKER / name).rename(folder / name)
    # As a checkout with umask 077, on which docker/env.sh never runs; the command of docs/tutorial/workers.md.
    subprocess.run(["chmod", "-R", "go-rwx", folder], check=True)
    (command,) = re.findall(r"(?m)^ +(chmod -R a\+rX .*)$", (ROOT / "docs/tutorial/workers.md").read_text())
    subprocess.run(["bash", "-c", command], cwd=folder, check=True)
    made = Deployment(engine, folder, WORKER, "compose.worker.yaml", NAMES)
    made.set(WORKER_LOG_PORT=f"{engine.address}:8793")
    # Next to the nodes.
    networks = {"nodes": {"external": True, "name": f"{bucket.project}_nodes"}}
    service = {"extra_hosts": [f"{MAIN}:{engine.address}"], "networks": ["default", "nodes"]}
    (folder / NAMES).write_text(yaml.safe_dump({"services": {"worker": service}, "networks": networks}))
    own = bucket.containers("worker")
    engine.run("stop", *own, timeout=300)
    try:
        made.up()
        made.until_healthy("worker")
        yield made
    finally:
        made.compose("down", "--volumes", "--timeout", "10", check=False)
        engine.run("start", *own)


def test_objects_may_be_in_a_bucket(bucket: Deployment) -> None:
    bucket.verify_everywhere(bucket.certify())


def test_new_login_of_the_object_store_loses_no_run(bucket: Deployment, logins: Logins) -> None:
    (restart,) = blocks("Login of the object store")
    old = logins.key
    with bucket.in_training():
        logins.add()
        bucket.set_secret("object_store", logins.current)
        bucket.follow(restart)
        logins.remove(old)
    bucket.up(scale=SCALE)
    bucket.until_healthy()
    bucket.verify_everywhere(bucket.certify())


def test_published_port_of_postgres_requires_a_certificate(bucket: Deployment, engine: Engine) -> None:
    # Docker's proxy connects from the gateway of PostgreSQL's own network, for containers of all networks.
    port = _ports(bucket)["POSTGRES_PORT"]
    connect = "import psycopg, sys; print(psycopg.connect(sys.argv[1]).execute('SELECT 1').fetchone())"
    url = "postgresql://{role}@{place}/{role}?sslmode=require&connect_timeout=10"
    for role in ("tipcflow", "results"):
        inside = url.format(role=role, place="postgres")
        assert bucket.inside("worker", "python", "-c", connect, inside) == "(1,)"
        published = url.format(role=role, place=f"{engine.address}:{port}")
        shown = bucket.inside("worker", "sh", "-c", f'python -c "{connect}" "{published}" 2>&1', check=False)
        assert "requires a valid client certificate" in shown


def test_firewall_rules_of_the_page_close_the_ports_to_nodes(bucket: Deployment, engine: Engine) -> None:
    ports = _ports(bucket)
    connect = (
        f"timeout 5 bash -c 'exec 3<>/dev/tcp/{engine.address}/{ports['REDIS_PORT']}' && echo open || echo closed"
    )
    assert bucket.inside("node-1", "bash", "-c", connect) == "open"
    rules = re.findall(r"(?m)^iptables .*$", (ROOT / "docs/tutorial/workers.md").read_text())
    rules = [
        rule.replace("10.213.77", NETWORK).replace("443,5432,6380", ",".join(ports.values())) for rule in rules
    ]
    for rule in rules:
        subprocess.run(rule.split(), check=True, timeout=30)
    try:
        assert bucket.inside("node-1", "bash", "-c", connect) == "closed"
    finally:
        for rule in rules:
            subprocess.run(rule.replace(" -I ", " -D ").split(), check=True, timeout=30)


def test_worker_on_another_machine_runs_a_chain(
    bucket: Deployment, worker: Deployment, engine: Engine, timed: Timed
) -> None:
    bucket.add_connections(f"{LAB_CONNECTION}1", f"{LAB_CONNECTION}2")
    dag = bucket.dag(FAST)
    with timed("chain whose tasks run on another machine"):
        run = bucket.certify(cluster=LAB)
    newest = f"(SELECT run_id FROM dag_run WHERE dag_id = '{dag}' ORDER BY id DESC LIMIT 1)"
    query = f"SELECT DISTINCT hostname FROM task_instance WHERE dag_id = '{dag}' AND run_id = {newest}"
    assert bucket.sql(f"{query} AND hostname <> ''", "airflow") == [[WORKER]]
    assert bucket.training_attempts(run) == 1
    worker.verify_everywhere(run)
    # The main machine shows the logs of its tasks.
    ((dag_run,),) = bucket.sql(newest.strip("()"), "airflow")
    with bucket.api("ci") as client:
        path = f"/api/v2/dags/{dag}/dagRuns/{dag_run}/taskInstances/resolve/logs/1"
        shown = client.get(path, headers={"Accept": "application/json"}).text
    assert run in shown, shown[:2000]
    # No other way than TLS: neither network of the worker has a service of the main machine.
    address = engine.run(
        "inspect", "--format", f'{{{{index .NetworkSettings.Networks "{bucket.project}_default" "IPAddress"}}}}',
        bucket.containers("postgres")[0],
    )  # fmt: skip
    connect = f"timeout 5 bash -c 'exec 3<>/dev/tcp/{address}/5432' && echo open || echo closed"
    assert worker.inside("worker", "bash", "-c", connect) == "closed"
