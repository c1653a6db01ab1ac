"""What containers of docker-compose.yaml may do: their secrets, networks, capabilities and limits."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.unit.docker.conftest import AIRFLOW, compose

pytestmark = pytest.mark.process

# Containers with Airflow's image hold secrets; `redis` and `postgres` hold data. Nodes run the code under test.
SERVERS, NODES = (*AIRFLOW, "postgres", "redis"), ("node-1", "node-2")
# Components that schedule, show or decrypt. Workers never get these variables.
CONTROL = ("init", "api-server", "scheduler", "dag-processor", "triggerer")
CONTROL_SECRETS = {"airflow_db_password", "airflow_fernet_key"}
# Of components that make or check tokens, and of `init`, which stores users.
WITH_TOKENS = ("init", "api-server", "scheduler")
# In addition to airflow_secret_key, which signs requests for logs.
SECRETS = {
    "init": {"airflow_admin_password", "airflow_ci_password", "metrics_db_password"},
    "api-server": {"metrics_reader_password", "object_store"},
    "scheduler": {"redis_password", "results_db_password"},
    "dag-processor": set[str](),
    "triggerer": {"metrics_db_password", "node_login_key", "object_store"},
    "worker": {
        *("metrics_db_password", "node_login_key", "object_store", "redis_password", "results_db_password"),
        *("signing_key", "signing_key_pub"),
    },
}
# Of sshd and `ping`.
NODE = {"AUDIT_WRITE", "CHOWN", "KILL", "NET_BIND_SERVICE", "NET_RAW", "SETGID", "SETUID", "SYS_CHROOT"}
# The entrypoint of PostgreSQL's image changes the owner of its volume, then its user.
SERVER = {"CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"}
CAPABILITIES = {"postgres": SERVER, "node-1": NODE, "node-2": NODE}
AUTH_MANAGER = "tipcflow_operators.access.manager.RolesAuthManager"


def test_services_get_only_the_secrets_that_the_entrypoint_removes(
    services: Mapping[str, Any], entrypoint: ModuleType
) -> None:
    for name in AIRFLOW:
        environment = services[name]["environment"]
        given = {secret["source"] for secret in services[name]["secrets"]}
        control = CONTROL_SECRETS if name in CONTROL else set()
        tokens = {"airflow_jwt_secret"} if name in WITH_TOKENS else set()
        assert given == {"airflow_secret_key", *SECRETS[name], *control, *tokens}, name
        assert ("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN" in environment) == (name in CONTROL)
        assert environment["AIRFLOW__CORE__AUTH_MANAGER"] == AUTH_MANAGER
        assert environment["PGPASSFILE"] == f"/var/lib/airflow/{entrypoint.POSTGRES_FILE}"
        signs = "/run/secrets/signing_key" if name == "worker" else None
        assert environment.get("TIPCFLOW_SIGNING_KEY") == signs


def test_results_of_celery_are_in_a_separate_database(services: Mapping[str, Any]) -> None:
    for name in AIRFLOW:
        environment = services[name]["environment"]
        has_queue = name in ("scheduler", "worker")
        assert ("AIRFLOW_BROKER_URL" in environment) == has_queue, name
        results = environment.get("AIRFLOW__CELERY__RESULT_BACKEND")
        assert results == ("db+postgresql+psycopg2://results@postgres/results" if has_queue else None), name


# A task's process, without an api-server.
READ = "from airflow.sdk import Connection; print(Connection.get('tipcflow_node_2').extra_dejson['private_key'])"


@pytest.mark.parametrize("service", ["triggerer", "worker"])
def test_connections_of_nodes_are_read_from_their_file(
    services: Mapping[str, Any], entrypoint: ModuleType, env: Mapping[str, str], tmp_path: Path, service: str
) -> None:
    environment = services[service]["environment"]
    file = environment["TIPCFLOW_CONNECTIONS_FILE"]
    assert any(file.startswith(each.partition(":")[0]) for each in services[service]["tmpfs"])
    given = {name: value for name, value in environment.items() if name.startswith("AIRFLOW__WORKERS__")}
    given |= {"AIRFLOW_HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    given["TIPCFLOW_CONNECTIONS_FILE"] = str(tmp_path / Path(file).name)
    names = ("NODE_LOGIN_KEY", "NODE_1_HOST_KEY_PUB", "NODE_2_HOST_KEY_PUB")
    entrypoint.prepare({name: env[name] for name in names}, tmp_path, tmp_path / "none")
    done = subprocess.run([sys.executable, "-c", READ], env=given, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == env["NODE_LOGIN_KEY"].strip()


def test_hosts_of_wheels_come_from_the_settings(
    root: Path, services: Mapping[str, Any], env_file: Path, tmp_path: Path
) -> None:
    name = "TIPCFLOW_WHEEL_HOSTS"
    assert {service["environment"].get(name) for key, service in services.items() if key in AIRFLOW} == {""}
    chosen = tmp_path / "env"
    chosen.write_text(f"{env_file.read_text()}\n{name}=wheels.example.com\n")
    shown = compose(root, chosen, "config").stdout
    assert shown.count(f"{name}: wheels.example.com") == len(AIRFLOW)


def test_nodes_reach_no_database_and_no_api(services: Mapping[str, Any]) -> None:
    in_control = {
        name for name, service in services.items() if "default" in service.get("networks", {"default": None})
    }
    assert in_control == {*SERVERS}
    with_nodes = {name for name, service in services.items() if "nodes" in service.get("networks", {})}
    assert with_nodes == {"triggerer", "worker", *NODES}


def test_no_init_of_docker_keeps_the_secrets_of_airflow(services: Mapping[str, Any], root: Path) -> None:
    for name in AIRFLOW:
        assert not services[name].get("init"), name
    assert " tini " in (root / "docker/airflow.Dockerfile").read_text()


def test_containers_have_few_rights_and_limits(services: Mapping[str, Any]) -> None:
    assert {*services} == {*SERVERS, *NODES}
    for name, service in services.items():
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["cap_drop"] == ["ALL"], name
        assert {*service.get("cap_add", ())} == CAPABILITIES.get(name, set()), name
        assert service["mem_limit"], name
        assert service["pids_limit"], name
        # Suites install packages on nodes.
        assert service.get("read_only", False) is (name not in CAPABILITIES), name
    assert services["redis"]["user"] == "redis"


def test_airflow_writes_only_to_volumes_and_memory(services: Mapping[str, Any], root: Path) -> None:
    user = re.search(r"--uid (\d+)", (root / "docker/airflow.Dockerfile").read_text())
    assert user
    for name in AIRFLOW:
        assert services[name]["tmpfs"] == [
            "/tmp:exec",
            f"/var/lib/airflow:mode=0700,uid={user[1]},gid={user[1]}",
        ]


def step_after(dockerfile: str, argument: str) -> str:
    """The shell command of the first RUN that has the build argument in its environment."""
    _, _, rest = dockerfile.partition(f"\nARG {argument}\n")
    found = re.search(r"(?m)^RUN ((?:.*\\\n)*.*)$", rest)
    assert found
    return found[1]


@pytest.mark.parametrize("argument", ["APT_MIRROR", "PIP_INDEX_URL"])
@pytest.mark.parametrize("image", ["airflow", "node"])
def test_build_argument_with_a_login_is_refused(root: Path, tmp_path: Path, image: str, argument: str) -> None:
    step = step_after((root / f"docker/{image}.Dockerfile").read_text(), argument)

    def run(address: str) -> "subprocess.CompletedProcess[str]":
        # No program is found: the step neither installs nor changes anything on this machine.
        env = {"PATH": str(tmp_path), argument: address}
        return subprocess.run(["/bin/sh", "-c", step], env=env, capture_output=True, text=True, timeout=20)

    for address in ("https://bot:word@pypi.example.com/simple", "http://word@192.0.2.1:8080"):
        refused = run(address)
        assert refused.returncode == 2
        assert refused.stderr.startswith(f"error: {argument} contains a login")
        assert "word" not in refused.stderr
    for address in ("", "https://pypi.example.com/simple", "https://pypi.example.com/@team/simple"):
        assert "login" not in run(address).stderr
