"""docker-compose.yaml agrees with the code, with Airflow's settings and with the files that it names."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from opentelemetry.sdk.trace import TracerProvider
from tests.unit.docker.conftest import AIRFLOW, compose
from typer.main import get_command

from tipcflow.cli.main import app
from tipcflow.config.access.users import load_users
from tipcflow.config.cluster import load_cluster
from tipcflow.config.settings import Settings

pytestmark = pytest.mark.process

# Shipped settings that are others here, each with its reason in the file.
OWN = {"AIRFLOW__CORE__EXECUTOR", "AIRFLOW__CORE__PARALLELISM"}
# Airflow reads it, but does not document it.
UNDOCUMENTED = {("scheduler", "num_stuck_in_queued_retries")}
SETTING = re.compile(r"^AIRFLOW__([A-Z_]+?)__([A-Z0-9_]+)$")
SECRET = re.compile(r"PASSWORD|SECRET|KEY")
# Variables of docs/reference/configuration.md that .env does not set, each with its reason.
NOT_IN_ENV = {
    "TIPCFLOW_HOME": "a folder of the image, where volumes are mounted",
    "TIPCFLOW_CONFIG_DIR": "a folder of the image, where configs/ is mounted",
    "TIPCFLOW_DATABASE_URL": "the service postgres, with the role of the component",
    "TIPCFLOW_ROLES": "a file of ACCESS_FOLDER, in init alone",
    "TIPCFLOW_SIGNING_KEY": "a secret of workers",
    "TIPCFLOW_CONNECTIONS_FILE": "written by the entrypoint, in memory",
    "TIPCFLOW_JSON_LOGS": "of the CLI; JSON_LOGS is the switch of containers",
    "TIPCFLOW_AIRFLOW_URL": "of a CI host's CLI",
    "TIPCFLOW_AIRFLOW_USER": "of a CI host's CLI",
    "TIPCFLOW_AIRFLOW_PASSWORD": "of a CI host's CLI",
    "TIPCFLOW_AIRFLOW_TOKEN": "of a CI host's CLI",
    "TIPCFLOW_WHEEL_URL": "of environments that tipcflow installs on nodes of this machine",
}
OF_OBJECTS = {"TIPCFLOW_STORE", "TIPCFLOW_STORE_CACHE_MB"}
SAMPLER = ("OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG")


def _folder_of(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


@pytest.fixture(scope="session")
def text(root: Path) -> str:
    return (root / "docker-compose.yaml").read_text()


@pytest.fixture(scope="session")
def options() -> set[tuple[str, str]]:
    """(section, option) of Airflow and of its Celery provider, from the files that Airflow itself reads."""
    # 4,000 lines: with the loader in C, where there is one.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    known = yaml.load((_folder_of("airflow") / "config_templates/config.yml").read_text(), Loader=loader)
    provider = _folder_of("airflow.providers.celery") / "get_provider_info.py"
    scope: dict[str, Any] = {}
    exec(provider.read_text(), scope)
    sections = known | scope["get_provider_info"]()["config"]
    return {(name, option) for name, section in sections.items() for option in section["options"]}


@pytest.mark.parametrize("name", ["TIPCFLOW_SECRETS", "NODE_LOGIN_KEY_PUB", "NODE_2_HOST_KEY_PUB"])
def test_missing_secret_is_named_with_a_remedy(root: Path, env_file: Path, tmp_path: Path, name: str) -> None:
    rest = tmp_path / "env"
    rest.write_text(re.sub(rf"(?m)^{name}=.*\n", "", env_file.read_text()))
    result = compose(root, rest, "config", "--quiet")
    assert result.returncode != 0
    assert name in result.stderr
    assert "run docker/env.sh" in result.stderr


def test_all_generated_secrets_are_declared(config: Mapping[str, Any], secrets: Path) -> None:
    assert {name: entry["file"] for name, entry in config["secrets"].items()} == {
        path.name: str(path) for path in secrets.iterdir()
    }


def test_no_secret_is_in_the_environment(
    services: Mapping[str, Any], secrets: Path, entrypoint: ModuleType
) -> None:
    words = [path.read_text().strip() for path in secrets.iterdir()]
    for name, service in services.items():
        environment = service.get("environment", {})
        for variable, value in environment.items():
            assert not [word for word in words if word in str(value)], f"{name}: {variable}"
        # Files that the entrypoint or a script of the image reads.
        mounted = {f"/run/secrets/{secret['source']}" for secret in service.get("secrets", ())}
        mounted |= {secret.get("target", "") for secret in service.get("secrets", ())}
        written = set()
        if name in AIRFLOW and "/run/secrets/node_login_key" in mounted:
            written.add(f"/var/lib/airflow/{entrypoint.CONNECTIONS_FILE}")
        assert {environment[key] for key in environment if key.endswith("_FILE")} - mounted == written
    assert Path("/run/secrets") == entrypoint.SECRETS_DIR


def test_no_secret_has_a_default_and_no_variable_is_taken_silently(text: str, env_file: Path) -> None:
    used = re.findall(r"(?<!\$)\$\{([A-Z0-9_]+)([^}]*)\}", text)
    made = {line.split("=")[0] for line in env_file.read_text().splitlines()}
    assert {name for name, _ in used if SECRET.search(name)} == made - {"TIPCFLOW_TAG"}
    for name, rest in used:
        assert rest == ":?run docker/env.sh" if SECRET.search(name) else rest.startswith(":-"), name


def test_nothing_that_compose_1_29_does_not_know(text: str) -> None:
    written = yaml.safe_load(text)
    assert {key for key in written if not key.startswith("x-")} == {
        "services",
        "networks",
        "volumes",
        "secrets",
    }
    assert not re.search(r"^\s*(required|gpus|develop|include|pull_policy):", text, re.MULTILINE)
    # A second `<<` in one mapping silently replaces the first, or is an error.
    for block in re.split(r"\n(?=\s*\w[\w-]*:\s*\n)", text):
        assert block.count("<<:") <= 1


def test_images_come_from_the_default_registry(root: Path, services: Mapping[str, Any]) -> None:
    images = [service["image"] for service in services.values()]
    for path in sorted(root.glob("docker/*.Dockerfile")):
        images += re.findall(r"^ARG PYTHON_IMAGE=(\S+)", path.read_text(), re.MULTILINE)
    assert len(images) == len(services) + 2
    assert not [image for image in images if "/" in image]


def test_mounted_built_and_copied_files_exist(root: Path, services: Mapping[str, Any]) -> None:
    for service in services.values():
        for volume in service.get("volumes", ()):
            source, _, target = str(volume).partition(":")
            # A path without a source is a volume of the container.
            if target.startswith("/") and source.startswith("/"):
                assert Path(source).exists(), source
    ignored = [line.rstrip("/") for line in (root / ".dockerignore").read_text().splitlines()]
    for service in services.values():
        if "build" not in service:
            continue
        dockerfile = root / service["build"]["dockerfile"]
        for line in re.findall(r"^COPY (.+)$", dockerfile.read_text(), re.MULTILINE):
            for source in line.split()[:-1]:
                assert (root / source).exists(), f"{dockerfile.name}: {source}"
                assert Path(source).parts[0] not in ignored


def test_images_exclude_secrets_and_data_of_runs(root: Path) -> None:
    ignored = set((root / ".dockerignore").read_text().splitlines())
    assert {".env", ".git", ".tipcflow"} <= ignored
    assert ".env" in (root / ".gitignore").read_text().splitlines()


def test_every_setting_is_one_of_airflows(
    root: Path, services: Mapping[str, Any], options: set[tuple[str, str]], entrypoint: ModuleType
) -> None:
    named = {name for service in services.values() for name in service.get("environment", ())}
    named |= set(re.findall(r"\b(AIRFLOW__\w+)=", (root / "docker/airflow.Dockerfile").read_text()))
    found = {match.groups() for match in map(SETTING.match, sorted(named)) if match}
    wanted = {(section.lower(), option.lower()) for section, option in found}
    assert len(wanted) > 10
    assert wanted | set(entrypoint.SECRETS.values()) <= options | UNDOCUMENTED


def test_every_component_has_the_shared_settings_and_the_same_executor(
    root: Path, services: Mapping[str, Any]
) -> None:
    shipped = dict(
        line.split("=", 1)
        for line in (root / "configs/airflow.env").read_text().splitlines()
        if line and not line.startswith("#")
    )
    for name in AIRFLOW:
        environment = services[name]["environment"]
        assert {key for key in shipped if shipped[key] != environment[key]} == OWN, name
        assert environment["AIRFLOW__CORE__EXECUTOR"] == "CeleryExecutor"


@pytest.fixture
def from_env(root: Path, env_file: Path, tmp_path: Path) -> Callable[[Mapping[str, str]], dict[str, Any]]:
    """Environments of Airflow's services and of a worker on another machine, with these lines in .env."""

    def from_env(lines: Mapping[str, str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        chosen = tmp_path / "env"
        more = {"MAIN_HOST": "main", "WORKER_HOST": "gpu-1", **lines}
        chosen.write_text(env_file.read_text() + "".join(f"{name}={value}\n" for name, value in more.items()))
        for file in ("docker-compose.yaml", "compose.worker.yaml"):
            done = compose(root, None, "--env-file", str(chosen), "--file", file, "config")
            assert done.returncode == 0, done.stderr
            services = yaml.safe_load(done.stdout)["services"]
            found |= {f"{file} {name}": services[name]["environment"] for name in services if name in AIRFLOW}
        assert len(found) == len(AIRFLOW) + 1
        return found

    return from_env


def test_env_sets_every_setting(root: Path, from_env: Callable[[Mapping[str, str]], dict[str, Any]]) -> None:
    page = (root / "docs/reference/configuration.md").read_text()
    documented = {
        name for row in re.findall("(?m)^[|]([^|]+)[|]", page) for name in re.findall(r"`(TIPCFLOW_\w+)`", row)
    }
    known = {f"TIPCFLOW_{field.upper()}" for field in Settings.model_fields}
    assert known <= documented
    assert NOT_IN_ENV.keys() <= documented
    # With spaces, as in a schedule.
    chosen = {name: f"0 20 * * 6 {name}" for name in {*documented, *SAMPLER} - NOT_IN_ENV.keys()}
    for place, environment in from_env(chosen).items():
        has_objects = "AWS_CONFIG_FILE" in environment
        expected = {name: value for name, value in chosen.items() if has_objects or name not in OF_OBJECTS}
        assert {name: environment[name] for name in chosen if name in environment} == expected, place


def test_env_without_settings_keeps_the_defaults(
    from_env: Callable[[Mapping[str, str]], dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("TIPCFLOW_", "OTEL_"))]:
        monkeypatch.delenv(name)
    defaults, sampler = Settings(), TracerProvider().sampler.get_description()
    names = {f"TIPCFLOW_{field.upper()}" for field in Settings.model_fields} - {"TIPCFLOW_STORE"}
    for place, environment in from_env({}).items():
        for name in {*names, *SAMPLER} & environment.keys() - NOT_IN_ENV.keys():
            monkeypatch.setenv(name, environment[name])
        assert Settings() == defaults, place
        assert TracerProvider().sampler.get_description() == sampler, place


def test_number_of_tasks_and_share_of_traces_are_settings(
    from_env: Callable[[Mapping[str, str]], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = {"AIRFLOW_PARALLELISM": "200", SAMPLER[0]: "parentbased_traceidratio", SAMPLER[1]: "0.25"}
    for place, environment in from_env(lines).items():
        for name in SAMPLER:
            monkeypatch.setenv(name, environment[name])
        assert "TraceIdRatioBased{0.25}" in TracerProvider().sampler.get_description(), place
        # The scheduler's limit; a worker has WORKER_CONCURRENCY.
        if place.startswith("docker-compose.yaml"):
            assert environment["AIRFLOW__CORE__PARALLELISM"] == "200", place


def test_users_come_from_a_folder_that_init_mounts(services: Mapping[str, Any], root: Path) -> None:
    init = services["init"]
    file = Path(init["environment"]["TIPCFLOW_ROLES"])
    assert f"{root}/docker/access:{file.parent}:ro" in init["volumes"]
    users = load_users(root / "docker/access" / file.name).users
    assert {name: list(user.roles) for name, user in users.items()} == {"admin": ["admin"], "ci": ["ci"]}
    mounted = {f"/run/secrets/{secret['source']}" for secret in init["secrets"]}
    assert {str(user.password_file) for user in users.values()} <= mounted
    assert init["command"][-1].endswith("tipcflow access apply")


def test_services_share_objects_that_pages_cannot_write_and_no_home(
    services: Mapping[str, Any], root: Path
) -> None:
    folder = "/var/lib/tipcflow-objects"
    for name in ("worker", "triggerer"):
        assert f"objects:{folder}:rw" in services[name]["volumes"]
        assert services[name]["environment"]["TIPCFLOW_DATABASE_URL"].startswith("postgresql://tipcflow@")
    assert f"objects:{folder}:ro" in services["api-server"]["volumes"]
    assert folder in (root / "docker/airflow.Dockerfile").read_text()
    for name in AIRFLOW:
        with_objects = name in ("api-server", "triggerer", "worker")
        environment = services[name]["environment"]
        assert environment.get("TIPCFLOW_STORE") == (f"file://{folder}" if with_objects else None), name
        assert ("AWS_CONFIG_FILE" in environment) == with_objects
        homes = [volume for volume in services[name].get("volumes", ()) if ":/var/lib/tipcflow:" in volume]
        assert not homes, name
        # A path without a source is a volume of each container.
        assert any(
            str(volume).startswith("/var/lib/tipcflow") for volume in services[name].get("volumes", ())
        ) == (with_objects)
    reader = services["api-server"]["environment"]["TIPCFLOW_DATABASE_URL"]
    assert reader.startswith("postgresql://tipcflow_reader@")


def test_nodes_match_the_cluster_file_and_the_connections(
    root: Path, services: Mapping[str, Any], entrypoint: ModuleType
) -> None:
    cluster = load_cluster("compose", root / "configs")
    for node in cluster.nodes:
        service = services[node.name]
        assert service["networks"] == {"nodes": {"ipv4_address": node.address}}
        assert service["profiles"] == ["demo"]
        assert f"{node.name}:{node.workspace}:rw" in service["volumes"]
        host, host_key = entrypoint.NODES[node.connection.removeprefix("tipcflow_")]
        assert entrypoint.NETWORK + host == node.address
        assert host_key.replace("_PUB", "") == f"{node.name.upper().replace('-', '_')}_HOST_KEY"
    assert len(cluster.nodes) == len(entrypoint.NODES) == 2
    made = f"python -m venv {Path(cluster.nodes[0].python).parents[1]} "
    assert made in (root / "docker/node.Dockerfile").read_text()


def test_logs_of_containers_are_rotated(services: Mapping[str, Any]) -> None:
    for name, service in services.items():
        assert service["logging"]["options"] == {"max-file": "5", "max-size": "20m"}, name


def test_messages_of_the_queue_are_in_a_volume(services: Mapping[str, Any], root: Path) -> None:
    assert "queue:/data:rw" in services["redis"]["volumes"]
    assert "appendfsync always" in (root / "docker/redis.sh").read_text()


def test_the_images_of_a_version_can_be_kept(root: Path, env_file: Path, tmp_path: Path) -> None:
    tagged = tmp_path / "env"
    tagged.write_text(re.sub("(?m)^TIPCFLOW_TAG=.*$", "TIPCFLOW_TAG=1.2.3", env_file.read_text()))
    services = yaml.safe_load(compose(root, tagged, "config").stdout)["services"]
    images = {service["image"] for service in services.values() if service["image"].startswith("tipcflow-")}
    assert images == {"tipcflow-airflow:1.2.3", "tipcflow-node:1.2.3"}


def test_every_service_has_a_health_check_and_dependencies(services: Mapping[str, Any]) -> None:
    assert [name for name, service in services.items() if "healthcheck" not in service] == ["init"]
    for name, service in services.items():
        for needed, how in service.get("depends_on", {}).items():
            ends = needed == "init"
            expected = "service_completed_successfully" if ends else "service_healthy"
            assert how == {"condition": expected}, name


def test_health_is_queried_of_existing_components(services: Mapping[str, Any], health: ModuleType) -> None:
    for name in AIRFLOW[1:]:
        *_, script, component = services[name]["healthcheck"]["test"]
        assert script == "/opt/tipcflow/docker/health.py"
        assert component == name.replace("-", "_")
        assert component in {*health.OWN, *health.JOBS, "worker"}
    assert services["scheduler"]["environment"]["AIRFLOW__SCHEDULER__ENABLE_HEALTH_CHECK"] == "True"


def test_workers_start_when_all_dag_files_are_parsed(services: Mapping[str, Any]) -> None:
    # With docker-compose 1.29, `up --detach` returns then.
    needed = set(services["worker"]["depends_on"])
    assert needed == {*AIRFLOW[1:], "redis"} - {"worker"}


def test_network_and_ports_are_settings(root: Path, env_file: Path, tmp_path: Path) -> None:
    other = tmp_path / "env"
    other.write_text(f"{env_file.read_text()}\nNODE_NETWORK=10.9.8\nAIRFLOW_PORT=8081\n")
    config = yaml.safe_load(compose(root, other, "config").stdout)
    assert config["networks"]["nodes"]["ipam"]["config"] == [{"subnet": "10.9.8.0/24"}]
    addresses = [config["services"][f"node-{n}"]["networks"]["nodes"]["ipv4_address"] for n in (1, 2)]
    assert addresses == ["10.9.8.11", "10.9.8.12"]
    assert {config["services"][name]["environment"]["NODE_NETWORK"] for name in AIRFLOW} == {"10.9.8"}
    assert "127.0.0.1:8081:8080" in str(config["services"]["api-server"]["ports"])


def test_trusted_proxies_are_settings(root: Path, env_file: Path, tmp_path: Path) -> None:
    other = tmp_path / "env"
    other.write_text(f"{env_file.read_text()}\nAIRFLOW_PROXIES=172.18.0.1\n")
    server = yaml.safe_load(compose(root, other, "config").stdout)["services"]["api-server"]
    assert server["environment"]["FORWARDED_ALLOW_IPS"] == "172.18.0.1"
    assert "--proxy-headers" in server["command"]


def test_images_take_all_build_arguments(root: Path, services: Mapping[str, Any]) -> None:
    # Docker knows the proxies without a declaration.
    given = set(services["worker"]["build"]["args"]) - {"http_proxy", "https_proxy", "no_proxy"}
    for path in root.glob("docker/*.Dockerfile"):
        assert set(re.findall(r"(?m)^ARG (\w+)", path.read_text())) == given, path.name


def test_commands_of_tipcflow_exist(services: Mapping[str, Any]) -> None:
    commands = services["init"]["command"][-1].split(" && ")
    upgrade = commands.index("tipcflow db upgrade")
    # A table that the upgrade creates has no rights yet.
    assert commands[upgrade + 1] == "tipcflow db grant tipcflow_reader"
    group = get_command(app).commands["db"]  # type: ignore[attr-defined]
    assert {"upgrade", "grant"} <= set(group.commands)


def test_commands_of_airflow_exist(services: Mapping[str, Any], tmp_path: Path) -> None:
    commands = [service["command"][1:] for name, service in services.items() if name in AIRFLOW[1:]]
    commands.append(["db", "migrate"])
    # One process for all: each start of Airflow costs seconds.
    program = (
        "import sys, json; from airflow.cli.cli_parser import get_parser\n"
        "for words in json.loads(sys.argv[1]): get_parser().parse_args(words)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, json.dumps(commands)],
        env={**os.environ, "AIRFLOW_HOME": str(tmp_path), "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr[-2000:]
