"""docker-compose.yaml on a real engine: chains run, secrets and networks are closed, kills change no verdict."""

import json
from contextlib import ExitStack

import pytest
from tests.support.compose.deployment import AIRFLOW, FAST, SCALE, SLOW, Deployment
from tests.support.compose.engine import Engine

SERVICES = (*AIRFLOW, "postgres", "redis", "node-1", "node-2")


def test_chain_passes_directly_after_up(deployment: Deployment) -> None:
    # A fresh database has no DAGs before the dag-processor has read their files.
    run = deployment.certify()
    assert deployment.verdicts() == [[run, f"toy/toy/{FAST}", "pass"]]
    assert deployment.training_attempts(run) == 1


def test_certificate_is_complete(deployment: Deployment) -> None:
    run = deployment.verdicts()[0][0]
    _verify_everywhere(deployment, run)


def _verify_everywhere(deployment: Deployment, run: str) -> None:
    """Each worker verifies the files of both, in a home of its own."""
    workers = deployment.containers("worker")
    template = '{{range .Mounts}}{{if eq .Destination "/var/lib/tipcflow"}}{{.Name}}{{end}}{{end}}'
    assert len({deployment.engine.run("inspect", "--format", template, each) for each in workers}) == 2
    lists = json.loads(deployment.tipcflow("certificate", "show", run))["files"]
    assert len(lists) > 10
    for worker in workers:
        report = deployment.engine.run("exec", worker, "tipcflow", "certificate", "verify", run)
        assert f"valid ({len(lists)} of {len(lists)} collected files checked" in report


def test_all_instances_become_healthy(deployment: Deployment) -> None:
    deployment.until_healthy(*SERVICES)
    assert len(deployment.containers("worker")) == 2


def test_no_secret_is_in_an_environment(deployment: Deployment, engine: Engine) -> None:
    words = {path.name: path.read_text().strip() for path in (deployment.folder / ".secrets").iterdir()}
    # The public halves of keys are settings; a line that only the private key has.
    words = {name: text.splitlines()[-2] if "\n" in text else text for name, text in words.items()}
    assert not [word for word in words.values() if len(word) < 32]
    for service in SERVICES:
        for container in deployment.containers(service):
            shown = engine.run("inspect", container)
            first, *others = deployment.environments(container)
            assert "PATH=" in first
            assert {name for name, word in words.items() if word in shown or word in first} == set(), service
            # Tasks need the connections of the nodes, and have the environment of the component.
            found = {name for name, word in words.items() for text in others if word in text}
            assert found <= ({"node_login_key"} if service in ("worker", "triggerer") else set()), service


def test_services_see_only_their_secrets(deployment: Deployment) -> None:
    seen = set(deployment.inside("worker", "ls", "/run/secrets").split())
    assert seen == {
        "airflow_db_password", "airflow_secret_key", "metrics_db_password", "node_login_key",
        "object_store", "redis_password",
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


def test_hung_instance_becomes_unhealthy_and_no_other(deployment: Deployment) -> None:
    hung = {service: deployment.containers(service)[0] for service in AIRFLOW}
    others = {service: deployment.containers(service)[1] for service in SCALE}
    with ExitStack() as stack:
        for container in hung.values():
            stack.enter_context(deployment.hung(container))
        for service, container in hung.items():
            deployment.until(
                lambda one=container: deployment.health(one) == "unhealthy", f"an unhealthy {service}"
            )
        assert {service: deployment.health(one) for service, one in others.items()} == dict.fromkeys(
            others, "healthy"
        )
    deployment.until_healthy(*AIRFLOW)


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
        assert deployment.is_training(), "the training ended before the kill"
    except BaseException:
        started.kill()
        raise
    run = deployment.passed(started)
    assert deployment.verdicts()[0] == [run, f"toy/toy/{SLOW}", "pass"]
    assert deployment.training_attempts(run) == 1
    deployment.until_healthy(*SERVICES)


def test_objects_may_be_in_a_bucket(deployment: Deployment, engine: Engine, images: dict[str, str]) -> None:
    name, network = f"{deployment.project}-s3", f"{deployment.project}_default"
    words = ["run", "--detach", "--rm", "--name", name, "--network", network, "--network-alias", "s3"]
    engine.run(*words, images["PYTHON_IMAGE"], "moto_server", "-H", "0.0.0.0", "-p", "5000")
    make = "import urllib.request as r; r.urlopen(r.Request('http://localhost:5000/tipcflow', method='PUT'))"
    try:
        deployment.until(lambda: engine.run("exec", name, "python", "-c", make + "; print(1)", check=False), "S3")
        deployment.use_bucket("s3://tipcflow/objects", "http://s3:5000")
        deployment.up(**SCALE)
        deployment.until_healthy(*SERVICES)
        run = deployment.certify()
        _verify_everywhere(deployment, run)
    finally:
        engine.run("rm", "--force", name, check=False)
