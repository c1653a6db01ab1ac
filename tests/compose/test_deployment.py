"""docker-compose.yaml on a real engine: chains run, secrets and networks are closed, kills change no verdict."""

import json

import pytest
from tests.support.compose.deployment import AIRFLOW, FAST, SLOW, Deployment
from tests.support.compose.engine import Engine

SERVICES = (*AIRFLOW, "postgres", "redis", "node-1", "node-2")


def test_chain_passes_directly_after_up(deployment: Deployment) -> None:
    # A fresh database has no DAGs before the dag-processor has read their files.
    run = deployment.certify()
    assert deployment.verdicts() == [[run, f"toy/toy/{FAST}", "pass"]]
    assert deployment.training_attempts(run) == 1


def test_certificate_is_complete(deployment: Deployment) -> None:
    run = deployment.verdicts()[0][0]
    lists = json.loads(deployment.tipcflow("certificate", "show", run))["files"]
    report = deployment.tipcflow("certificate", "verify", run)
    assert f"valid ({len(lists)} of {len(lists)} collected files checked" in report
    assert len(lists) > 10


def test_all_instances_become_healthy(deployment: Deployment) -> None:
    deployment.until_healthy(*SERVICES)
    assert len(deployment.containers("worker")) == 2


def test_no_secret_is_in_an_environment(deployment: Deployment, engine: Engine) -> None:
    words = {path.name: path.read_text().strip() for path in (deployment.folder / ".secrets").iterdir()}
    # Their public halves are settings; a line that only the private key has.
    words = {name: text.splitlines()[-2] if "\n" in text else text for name, text in words.items()}
    for service in SERVICES:
        for container in deployment.containers(service):
            shown = engine.run("inspect", "--format", "{{json .Config}}", container)
            first = engine.run("exec", "--user", "0", container, "cat", "/proc/1/environ", check=False)
            found = {name for name, word in words.items() if word in shown or word in first}
            # Tasks need the connections of the nodes.
            allowed = {"node_login_key"} if service in ("worker", "triggerer") else set()
            assert found <= allowed, f"{service}: {found}"
            assert "PATH=" in first


def test_services_see_only_their_secrets(deployment: Deployment) -> None:
    seen = set(deployment.inside("worker", "ls", "/run/secrets").split())
    assert seen == {
        "airflow_db_password", "airflow_secret_key", "metrics_db_password", "node_login_key", "redis_password",
    }  # fmt: skip
    assert deployment.inside("worker", "sh", "-c", "touch /run/secrets/redis_password; echo $?") == "1"
    # The code under test runs as this user.
    key = "cat /root/host_key /etc/tipcflow/host_key; ls /run/secrets"
    assert deployment.inside("node-1", "su", "tipcflow", "-c", key, check=False) == ""


@pytest.mark.parametrize(("service", "port"), [("postgres", 5432), ("redis", 6379), ("api-server", 8080)])
def test_nodes_do_not_reach_control(deployment: Deployment, engine: Engine, service: str, port: int) -> None:
    template = "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}"
    (address,) = engine.run("inspect", "--format", template, deployment.containers(service)[0]).split()
    connect = f"timeout 5 bash -c 'exec 3<>/dev/tcp/{{}}/{port}' && echo open || echo closed"
    assert deployment.inside("node-1", "bash", "-c", connect.format(address)) == "closed"
    assert deployment.inside("node-1", "bash", "-c", connect.format(service)) == "closed"
    assert deployment.inside("worker", "bash", "-c", connect.format(address)) == "open"


def test_health_is_that_of_the_instance(deployment: Deployment, engine: Engine) -> None:
    stopped, other = deployment.containers("triggerer")
    engine.run("pause", stopped)
    try:
        check = ["python", "/opt/tipcflow/docker/health.py", "triggerer"]
        query = (
            f"UPDATE job SET latest_heartbeat = now() - interval '90 s' WHERE hostname = '{stopped[:12]}'"
            " AND job_type = 'TriggererJob'"
        )
        deployment.inside("postgres", "psql", "--username=postgres", "--dbname=airflow", "--command", query)
        engine.run("exec", other, *check)
        engine.run("unpause", stopped)
        deployment.until_healthy("triggerer")
    finally:
        engine.run("unpause", stopped, check=False)


@pytest.mark.parametrize(
    "service", ["worker", "triggerer", "scheduler", "dag-processor", "api-server", "postgres", "redis"]
)
def test_kill_in_training_changes_no_verdict(deployment: Deployment, service: str) -> None:
    started = deployment.trigger(SLOW)
    try:
        deployment.until(
            lambda: started.poll() is not None or deployment.is_training(), "a training on both nodes"
        )
        deployment.kill(service)
    except BaseException:
        started.kill()
        raise
    run = deployment.passed(started)
    assert deployment.verdicts()[0] == [run, f"toy/toy/{SLOW}", "pass"]
    assert deployment.training_attempts(run) == 1
    deployment.until_healthy(*SERVICES)
