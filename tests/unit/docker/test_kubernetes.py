"""The files for Kubernetes: their fields exist, and they agree with the settings of other installations.

No test has a Kubernetes cluster, and most machines have no Helm (test_helm.py). `kubernetes_fields.json` has what
the schemas of Kubernetes 1.37, Volcano, JobSet and Airflow's chart 1.22 say about the fields that are used
(tools/kubernetes_fields.py).
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from tipcflow.config.settings import Settings
from tipcflow.domain import KubernetesExec, Node

ROOT = Path(__file__).parents[3]
MANIFESTS = ROOT / "docker" / "kubernetes"
FIELDS = json.loads(Path(__file__).with_name("kubernetes_fields.json").read_text())
TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((MANIFESTS / name).read_text()))


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield from leaves(below, f"{path}.{key}")
    elif isinstance(value, list):
        for below in value:
            yield from leaves(below, f"{path}.*")
    else:
        yield path, value


@pytest.mark.parametrize("name", sorted(path.name for path in MANIFESTS.glob("*.yaml")))
def test_fields_have_the_types_of_the_schemas(name: str) -> None:
    for document in documents(name):
        kind = f"{document['apiVersion']} {document['kind']}" if "apiVersion" in document else "values"
        for path, value in leaves(document):
            assert TYPES[type(value)] in FIELDS[kind].get(path, ()), f"{kind}{path}: {value!r}"


def test_chart_has_the_settings_of_other_installations() -> None:
    config = documents("values.yaml")[0]["config"]
    lines = (ROOT / "configs" / "airflow.env").read_text().splitlines()
    for line in lines:
        if not line.startswith("AIRFLOW__"):
            continue
        name, _, value = line.partition("=")
        section, option = name.removeprefix("AIRFLOW__").lower().split("__")
        if option not in {"executor", "parallelism"}:
            assert config[section][option] == value, name


def test_provider_is_pinned_without_changing_the_packages_of_the_image() -> None:
    def pins(name: str) -> set[str]:
        return set(re.findall(r"(?m)^([\w.-]+)==", (ROOT / "requirements" / f"{name}.txt").read_text()))

    assert "apache-airflow-providers-cncf-kubernetes" in pins("kubernetes")
    assert not pins("kubernetes") & pins("scheduler")
    page = (ROOT / "docs/tutorial/kubernetes.md").read_text()
    assert "--no-deps --require-hashes -r requirements/kubernetes.txt" in page


def test_no_file_contains_a_secret() -> None:
    values = documents("values.yaml")[0]
    assert not {"fernetKey", "jwtSecret", "apiSecretKey", "webserverSecretKey"} & values.keys()
    assert all(name.endswith("SecretName") for name in values["data"])
    kinds = {document["kind"] for path in MANIFESTS.glob("[!v]*.yaml") for document in documents(path.name)}
    assert "Secret" not in kinds


def references(value: Any) -> Iterator[tuple[str, str]]:
    """Names of Secrets in the values, and keys."""
    if isinstance(value, dict):
        if "secretKeyRef" in value:
            yield value["secretKeyRef"]["name"], value["secretKeyRef"]["key"]
        if "secretName" in value:
            yield value["secretName"], ""
        for below in value.values():
            yield from references(below)
    elif isinstance(value, list):
        for below in value:
            yield from references(below)


def test_page_creates_every_secret_of_the_values() -> None:
    page = (ROOT / "docs/tutorial/kubernetes.md").read_text().replace("\\\n", " ")
    made = {line.split()[1]: line for line in page.splitlines() if line.startswith("secret ")}
    used = set(references(documents("values.yaml")[0]))
    assert {name for name, _ in used} == made.keys()
    for name, key in used:
        assert not key or f"--from-literal={key}=" in made[name], (name, key)


def test_pods_share_an_object_store_and_no_folder() -> None:
    values = documents("values.yaml")[0]
    env = {setting["name"]: setting["value"] for setting in values["env"]}
    assert Settings(store=env["TIPCFLOW_STORE"]).store == env["TIPCFLOW_STORE"]
    mounts = {mount["mountPath"]: mount["name"] for mount in values["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in values["volumes"]}
    assert "emptyDir" in volumes[mounts[env["TIPCFLOW_HOME"]]]
    assert "secret" in volumes[mounts[str(Path(env["AWS_CONFIG_FILE"]).parent)]]
    # The same settings as in docker-compose.yaml, except for those that are the default unless .env has them.
    objects = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())["x-objects"]
    assert {name for name, value in objects.items() if not value.endswith(":-}")} <= env.keys()


# Component of the chart -> service of docker-compose.yaml.
SERVICES = {
    "apiServer": "api-server",
    "dagProcessor": "dag-processor",
    "migrateDatabaseJob": "init",
    "scheduler": "scheduler",
    "triggerer": "triggerer",
    "workers": "worker",
}
# Secret file of docker-compose.yaml -> variable of the chart; the others are files here, too.
VARIABLES = {
    "airflow_db_password": "AIRFLOW_DB_URL",
    "airflow_fernet_key": "AIRFLOW_FERNET_KEY",
    "airflow_jwt_secret": "AIRFLOW_JWT_SECRET",
    "airflow_secret_key": "AIRFLOW_SECRET_KEY",
    "metrics_db_password": "METRICS_DB_PASSWORD",
    "metrics_reader_password": "METRICS_READER_PASSWORD",
    "redis_password": "AIRFLOW_BROKER_URL",
    "results_db_password": "AIRFLOW_RESULTS_URL",
}


@pytest.mark.parametrize("part", SERVICES)
def test_components_have_the_secrets_of_docker_compose(part: str) -> None:
    service = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())["services"][SERVICES[part]]
    given = {each["name"] for each in documents("values.yaml")[0][part]["env"] if "valueFrom" in each}
    assert given == {VARIABLES[name] for name in service["secrets"] if name in VARIABLES}


@pytest.mark.parametrize("part", [*SERVICES, "databaseCleanup"])
def test_environment_of_a_component_has_no_secret(part: str, entrypoint: ModuleType, tmp_path: Path) -> None:
    """A task can read the environment of its component, and of the first process of the container."""
    values = documents("values.yaml")[0]
    environ = {each["name"]: each["value"] for each in values["env"]}
    home = environ.pop("PGPASSFILE")
    assert home == f"{values['airflowHome']}/{entrypoint.POSTGRES_FILE}"
    environ |= {each["name"]: each.get("value", f"word of {each['name']}") for each in values[part]["env"]}
    url = environ.get("TIPCFLOW_DATABASE_URL", "")
    entrypoint.prepare(environ, tmp_path, tmp_path / "none")
    assert not [name for name, value in environ.items() if value.startswith("word of ")]
    assert urlsplit(url).password is None
    if any(each["name"].startswith("METRICS_") for each in values[part]["env"]):
        role = urlsplit(url).username
        variable = entrypoint.ROLES[role]
        assert (tmp_path / "pgpass").read_text() == f"*:*:*:{role}:word of {variable}\n"


def test_only_workers_have_the_signing_key() -> None:
    values = documents("values.yaml")[0]
    (key,) = [each["value"] for each in values["workers"]["env"] if each["name"] == "TIPCFLOW_SIGNING_KEY"]
    mounts = {mount["mountPath"]: mount["name"] for mount in values["workers"]["extraVolumeMounts"]}
    volumes = {volume["name"]: volume["secret"]["secretName"] for volume in values["workers"]["extraVolumes"]}
    assert volumes[mounts[str(Path(key).parent)]] == "tipcflow-signing-key"
    others = {name: each for name, each in values.items() if name != "workers"}
    assert "signing" not in json.dumps(others)
    page = (ROOT / "docs/tutorial/kubernetes.md").read_text()
    assert f"--from-file={Path(key).name}=" in page


# The requests of `kubectl exec` as (API group, resource, verb): GET for WebSockets, POST for SPDY.
EXEC_OF_A_POD = {("", "pods", "get"), ("", "pods/exec", "get"), ("", "pods/exec", "create")}
EXEC_OF_A_JOB = {("batch", "jobs", "get"), ("", "pods", "list"), *EXEC_OF_A_POD}


def test_workers_may_run_commands_in_pods_of_nodes_only() -> None:
    by_kind = {document["kind"]: document for document in documents("access.yaml")}
    permitted = {
        (group, resource, verb)
        for rule in by_kind["Role"]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert permitted == EXEC_OF_A_POD | EXEC_OF_A_JOB
    account = by_kind["RoleBinding"]["subjects"][0]["name"]
    values = documents("values.yaml")[0]
    assert {values[part]["serviceAccount"]["name"] for part in ("workers", "triggerer")} == {account}


def pods(document: Any) -> dict[str, Any]:
    """kubectl's name of each pod -> its template."""
    spec, name = document["spec"], document["metadata"]["name"]
    if document["kind"] == "StatefulSet":
        return {f"{name}-{number}": spec["template"] for number in range(spec["replicas"])}
    if document["kind"] == "JobSet":
        return {
            f"job/{name}-{job['name']}-{number}": job["template"]["spec"]["template"]
            for job in spec["replicatedJobs"]
            for number in range(job["replicas"])
        }
    return {
        f"{name}-{task['name']}-{number}": task["template"]
        for task in spec["tasks"]
        for number in range(task["replicas"])
    }


DOCKERFILE = (ROOT / "docker" / "node.Dockerfile").read_text()


def test_image_of_nodes_has_the_program_of_the_manifests() -> None:
    (packages,) = re.findall(r"apt-get install [^&]*", DOCKERFILE.replace("\\\n", " "))
    assert "tini" in packages.split()


@pytest.mark.parametrize("name", ["nodes.yaml", "nodes-volcano.yaml", "nodes-jobset.yaml"])
def test_nodes_are_two_pods_that_adopt_jobs_and_hold_no_credentials(name: str) -> None:
    made = pods(documents(name)[-1])
    assert len(made) == 2
    for pod, template in made.items():
        spec = template["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["containers"][0]["command"][0] == "tini"
        # Two nodes on a host would share its address and ports.
        (rule,) = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert rule["topologyKey"] == "kubernetes.io/hostname"
        assert rule["labelSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
        assert spec["hostNetwork"]
        # The rights of the nodes of docker-compose.yaml, without those of their sshd.
        container = spec["containers"][0]["securityContext"]
        assert container == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": ["NET_RAW"]},
        }
        user = spec["securityContext"]
        assert user["runAsNonRoot"]
        assert f"|| echo --uid {user['runAsUser']}) --user-group" in DOCKERFILE
        assert user["runAsUser"] == user["runAsGroup"] == user["fsGroup"]
        target = KubernetesExec(kind="kubernetes", pod=pod, namespace="tipcflow-nodes", container="node")
        workspace = spec["containers"][0]["volumeMounts"][0]["mountPath"]
        Node(name="a", address="10.0.0.1", python="/usr/bin/python3", workspace=workspace, exec=target)
