"""docker-compose.yaml on a real engine: chains run, secrets and networks are closed, kills change no verdict."""

import json
import re
import subprocess
from contextlib import ExitStack
from secrets import token_hex
from uuid import uuid4

import httpx
import pytest
from tests.compose.conftest import Note, Timed
from tests.support.compose.deployment import AIRFLOW, FAST, LONG, PAUSED, SCALE, Deployment
from tests.support.compose.engine import Engine
from tests.support.installed.operations_page import inline

from tipcflow.airflow_api import Airflow, RunState
from tipcflow.github.webhook.delivery import signature

SERVICES = (*AIRFLOW, "postgres", "redis", "node-1", "node-2")


@pytest.mark.fast
def test_chain_passes_directly_after_up(deployment: Deployment, timed: Timed) -> None:
    # A fresh database has no DAGs before the dag-processor has read their files.
    with timed("first chain"):
        run = deployment.certify()
    assert deployment.verdicts() == [[run, f"toy/toy/{FAST}", "pass"]]
    assert deployment.training_attempts(run) == 1


@pytest.mark.fast
def test_certificate_is_complete_and_signed(deployment: Deployment) -> None:
    run = deployment.verdicts()[0][0]
    workers = deployment.containers("worker")
    template = '{{range .Mounts}}{{if eq .Destination "/var/lib/tipcflow"}}{{.Name}}{{end}}{{end}}'
    assert len({deployment.engine.run("inspect", "--format", template, each) for each in workers}) == 2
    deployment.verify_everywhere(run)


@pytest.mark.fast
def test_logs_are_json_with_fields_of_the_run(deployment: Deployment) -> None:
    run = deployment.verdicts()[0][0]
    shown = deployment.compose("logs", "--no-log-prefix", "--no-color", "worker", "triggerer").splitlines()
    lines = [json.loads(line) for line in shown if line.startswith("{")]
    ours = [line for line in lines if line.get("tipcflow_run") == run]
    assert {line.get("tipcflow_node") for line in ours} >= {"node-1", "node-2"}
    assert {"resolve", "prepare"} <= {line.get("task_id") for line in ours}


@pytest.mark.fast
def test_imports_compile_nothing(deployment: Deployment) -> None:
    imports = "python -v -c 'import tipcflow.cli.main, airflow.models.dagrun' 2>&1 >/dev/null"
    shown = deployment.inside("worker", "sh", "-c", imports).splitlines()
    assert [line for line in shown if re.match(r"# code object from /.*\.py$", line)] == []
    assert [line for line in shown if ".pyc matches /opt/tipcflow/src/" in line]


@pytest.mark.fast
def test_cli_in_a_container_reaches_the_nodes(deployment: Deployment) -> None:
    shown = deployment.inside("worker", "tipcflow", "nodes", "--cluster", "compose", check=False)
    # The toy suite needs no Paddle, which these nodes therefore lack.
    assert shown.count("frameworks configured, but not found: paddlepaddle") == 2
    shown = deployment.inside("worker", "tipcflow", "doctor", "--cluster", "compose", check=False)
    assert len(re.findall(r"(?m)^node node-[12]\s+login\s+ok ", shown)) == 2, shown
    assert re.search(r"(?m)\bobject store\s+ok ", shown), shown
    shown = deployment.inside("worker", "tipcflow", "nodes", "--cluster", "compose", "reap")
    assert shown.splitlines() == ["node-1: nothing to do", "node-2: nothing to do"]


def test_cli_in_a_container_runs_a_chain(deployment: Deployment) -> None:
    """With the connections of the nodes, in the home of a worker."""
    params = f"test_tipc/configs/toy/{FAST}.txt"
    words = ("run", params, "--suite", "toy", "--mode", "lite_train_lite_infer", "--cluster", "compose")
    before = deployment.verdicts()
    shown = deployment.tipcflow(*words, timeout=400)
    ((run, *others), *earlier) = deployment.verdicts()
    assert (others, earlier) == ([f"toy/toy/{FAST}", "pass"], before), shown
    assert deployment.training_attempts(run) == 1
    deployment.verify_everywhere(run)


def test_all_instances_become_healthy(deployment: Deployment) -> None:
    deployment.until_healthy(*SERVICES)
    assert len(deployment.containers("worker")) == 2


@pytest.mark.fast
def test_ci_starts_and_reads_only(deployment: Deployment) -> None:
    dag = f"/api/v2/dags/{deployment.dag(FAST)}"
    rows = [
        ("GET", dag, None), ("GET", "/certification/api/runs", None),
        ("PATCH", dag, {"is_paused": True}), ("DELETE", dag, None), ("GET", "/api/v2/connections", None),
        ("GET", "/api/v2/variables", None), ("POST", "/api/v2/dags/maintenance/dagRuns", {"logical_date": None}),
        ("GET", "/auth/fab/v1/users", None),
    ]  # fmt: skip
    with deployment.api("ci") as client:
        statuses = [client.request(method, path, json=body).status_code for method, path, body in rows]
    assert statuses == [200, 200] + [403] * 6


def test_paused_chain_is_unpaused_by_an_operator_only(deployment: Deployment) -> None:
    deployment.sql(f"UPDATE dag SET is_paused = true WHERE dag_id = '{deployment.dag(PAUSED)}'", "airflow")
    output, _ = deployment.trigger(PAUSED, "--unpause").communicate(timeout=120)
    assert f"{PAUSED} is paused, and this login may not unpause it" in output


def test_user_of_an_own_folder_logs_in_and_decides(deployment: Deployment) -> None:
    folder = deployment.folder / ".secrets" / "access"
    folder.mkdir()
    text = (deployment.folder / "docker/access/roles.yaml").read_text()
    (folder / "roles.yaml").write_text(text.replace("# alice", "alice"))
    (folder / "alice").write_text("a-long-password-of-alice\n")
    subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
    with (deployment.folder / ".env").open("a") as file:
        file.write("ACCESS_FOLDER=./.secrets/access\n")
    shown = deployment.follow(inline("docker-compose run --rm init tipcflow access apply"))
    assert "alice" in shown
    run = deployment.verdicts()[0][0]
    with Airflow(f"http://127.0.0.1:{deployment.port}", user="alice", password="a-long-password-of-alice") as one:
        assert one.unpause(deployment.dag(PAUSED)).is_paused is False
        conf = {"run": run, "kind": "accept", "why": "the first level"}
        one.trigger("decide_baseline", conf, "manual__first")
        deployment.until(lambda: one.dag_run("decide_baseline", "manual__first").state.ended, "a decision")
        assert one.dag_run("decide_baseline", "manual__first").state is RunState.SUCCESS
    assert deployment.sql("SELECT DISTINCT who, why FROM baselines") == [["alice", "the first level"]]


@pytest.mark.fast
def test_webhook_stores_signed_deliveries(deployment: Deployment) -> None:
    secret, body = token_hex(32), b'{"zen": "Keep it logically awesome.", "hook_id": 7}'
    folder = deployment.folder / "configs/repositories"
    folder.mkdir(exist_ok=True)
    file = folder / "toy.yaml"
    file.write_text("name: owner/toy\nconnection: github_toy\nsuite: toy\ncluster: compose\n")
    subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
    connection = {"connection_id": "github_toy", "conn_type": "generic", "password": secret}
    with deployment.api("admin") as client:
        client.post("/api/v2/connections", json=connection).raise_for_status()
    delivery = str(uuid4())

    def deliver(key: str) -> int:
        headers = {
            "X-GitHub-Event": "ping",
            "X-GitHub-Delivery": delivery,
            "X-Hub-Signature-256": signature(key.encode(), body),
            "Content-Type": "application/json",
        }
        url = f"http://127.0.0.1:{deployment.port}/certification/webhook/github"
        return httpx.post(url, content=body, headers=headers, timeout=60).status_code

    try:
        # The configuration and the secret are read again after 15 s.
        deployment.until(lambda: deliver(token_hex(32)) == 401, "a webhook that knows the secret", 60)
        assert deliver(secret) == 202
        assert deliver(secret) == 200, "a replay is stored once"
    finally:
        file.unlink()
    rows = "SELECT delivery, event, connection FROM outbox"
    assert deployment.sql(rows) == [[delivery, "ping", "github_toy"]]


def _secret_words(deployment: Deployment) -> dict[str, str]:
    files = [path for path in (deployment.folder / ".secrets").iterdir() if path.is_file()]
    words = {path.name: path.read_text().strip() for path in files}
    # The public halves of keys are settings; a line that only the private key has.
    words = {name: text.splitlines()[-2] if "\n" in text else text for name, text in words.items()}
    assert not [word for word in words.values() if len(word) < 32]
    return words


@pytest.mark.parametrize("image", ["tipcflow-airflow", "tipcflow-node"])
def test_no_secret_is_in_an_image(deployment: Deployment, engine: Engine, image: str) -> None:
    # Built again after the secrets were made, and after they were used.
    deployment.compose("build", timeout=1100)
    words = {name: word.encode() for name, word in _secret_words(deployment).items()}
    words["control"] = b"Usage: airflow_entrypoint.py COMMAND"
    assert engine.found_in(deployment.image(image), words) == ({"control"} if "airflow" in image else set())


@pytest.mark.fast
def test_no_secret_is_in_an_environment(deployment: Deployment, engine: Engine) -> None:
    words = _secret_words(deployment)
    for service in SERVICES:
        for container in deployment.containers(service):
            shown = engine.run("inspect", container)
            environments = deployment.environments(container)
            # Redis writes its title over its environment.
            assert service == "redis" or "PATH=" in environments[0]
            assert {name for name, word in words.items() if word in shown} == set(), service
            found = {name for name, word in words.items() for text in environments if word in text}
            assert found == set(), service


@pytest.mark.fast
def test_services_see_only_their_secrets(deployment: Deployment) -> None:
    seen = set(deployment.inside("worker", "ls", "/run/secrets").split())
    assert seen == {
        "airflow_secret_key", "metrics_db_password", "node_login_key", "object_store", "redis_password",
        "results_db_password", "signing_key", "signing_key_pub",
    }  # fmt: skip
    connections = "/var/lib/airflow/connections.json"
    assert deployment.inside("worker", "stat", "--format", "%a %U", connections) == "600 airflow"
    assert deployment.inside("worker", "stat", "--file-system", "--format", "%T", connections) == "tmpfs"
    assert deployment.inside("worker", "sh", "-c", "touch /run/secrets/redis_password; echo $?") == "1"
    # The code under test runs as this user.
    key = "id -un; cat /root/host_key /etc/tipcflow/host_key; ls /run/secrets"
    assert deployment.inside("node-1", "su", "tipcflow", "-c", key, check=False) == "tipcflow"


@pytest.mark.fast
@pytest.mark.parametrize(("service", "port"), [("postgres", 5432), ("redis", 6379), ("api-server", 8080)])
def test_nodes_do_not_reach_control(deployment: Deployment, engine: Engine, service: str, port: int) -> None:
    template = "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}"
    (address,) = engine.run("inspect", "--format", template, deployment.containers(service)[0]).split()
    connect = f"timeout 5 bash -c 'exec 3<>/dev/tcp/{{}}/{port}' && echo open || echo closed"
    assert deployment.inside("node-1", "bash", "-c", connect.format(address)) == "closed"
    assert deployment.inside("node-1", "bash", "-c", connect.format(service)) == "closed"
    assert deployment.inside("worker", "bash", "-c", connect.format(address)) == "open"


@pytest.mark.fast
@pytest.mark.parametrize(("service", "port"), [("worker", 8793), ("triggerer", 8794)])
def test_nodes_read_no_log(deployment: Deployment, service: str, port: int) -> None:
    # Airflow's log server listens on all networks of its container and requires a token.
    url = f"http://{service}:{port}/log/any"
    shown = deployment.inside(
        "node-1", "curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}", url
    )
    assert shown.strip() == "403"


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
    "service", ["", "worker", "triggerer", "scheduler", "dag-processor", "api-server", "postgres", "redis"]
)
def test_kill_in_training_changes_no_verdict(deployment: Deployment, service: str, note: Note) -> None:
    with deployment.in_training():
        if service:
            deployment.kill(service)
        assert deployment.is_training(), "the training ended before the kill"
    note(f"chain, killed in its training: {service or 'nothing'}", deployment.last_s)
    deployment.until_healthy(*SERVICES)


def test_triggerer_that_hangs_for_a_time_stops_no_training(deployment: Deployment) -> None:
    """The other triggerer takes over its triggers. When it continues, Airflow cancels them there as if a user had
    ended the tasks."""
    own = "SELECT DISTINCT hostname FROM job JOIN trigger ON job.id = triggerer_id"
    alive = "SELECT 1 FROM job WHERE latest_heartbeat > now() - interval '10 s' AND hostname = "
    with deployment.in_training(params=LONG):
        ((host,), *_) = deployment.until(lambda: deployment.sql(own, "airflow"), "a deferred training")
        (container,) = (one for one in deployment.containers("triggerer") if one.startswith(host))
        with deployment.hung(container):
            deployment.until(lambda: [host] not in deployment.sql(own, "airflow"), "the other triggerer")
            assert deployment.is_training(), "the training ended before the other triggerer had its trigger"
        deployment.until(lambda: deployment.sql(f"{alive}'{host}'", "airflow"), "a heartbeat of the triggerer")


def test_task_whose_message_is_lost_is_queued_again(deployment: Deployment, timed: Timed) -> None:
    workers = deployment.containers("worker")
    with deployment.in_training():
        # Steps that train have no process in a worker. Their next tasks wait in the queue.
        deployment.engine.run("stop", *workers, timeout=300)
        deployment.until(lambda: deployment.redis("LLEN", "default") != "0", "a queued task", 400)
        assert deployment.redis("DEL", "default") == "1"
        deployment.engine.run("start", *workers)
        since = deployment.sql("SELECT now()", "airflow")[0][0]
        query = f"SELECT count(*) FROM log WHERE event = 'stuck in queued reschedule' AND dttm > '{since}'"
        with timed("a lost message, until its task is queued again"):
            deployment.until(lambda: deployment.sql(query, "airflow") != [["0"]], "a rescheduled task", 300)
    deployment.until_healthy(*SERVICES)
