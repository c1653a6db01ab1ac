"""Secrets of a deployment, and planted ones, are in no log, table, queue, volume, image, process or page."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

import pytest
from tests.support.compose.deployment import AIRFLOW, FAST, LAB, LAB_CONNECTION, Deployment
from tests.support.compose.search import Search, namespaces, processes, secrets_of
from tests.support.page_routes import filled, get_templates

SERVICES = (*AIRFLOW, "postgres", "redis", "node-1", "node-2")
DATABASES = ("airflow", "results", "tipcflow")
# What the entrypoint writes to memory with mode 0600, because the components need it.
PRIVATE = {"airflow.cfg", "connections.json", "pgpass"}
CONTROLS = {"run", "dag"}


class Used:
    """A deployment in which a chain ran with planted secrets.

    Attributes:
        search: of the secrets, and of `run`, its ID, and `dag`, its DAG, which show that a search reads what it
            should.
        in_processes: processes of the time of the chain that had a secret.
    """

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        planted = {name: token_hex(16) for name in ("password", "extra", "url")}
        extra = {"api_key": planted["extra"], "secret_url": f"https://bot:{planted['url']}@git.example.com/a"}
        fields = {"connection_id": "planted", "conn_type": "generic", "password": planted["password"]}
        with deployment.api("admin") as client:
            client.post("/api/v2/connections", json={**fields, "extra": json.dumps(extra)}).raise_for_status()
        # The key of these nodes is in Airflow's database.
        deployment.add_connections(f"{LAB_CONNECTION}1", f"{LAB_CONNECTION}2")
        self.secrets = {**secrets_of(deployment), **{f"planted {name}": word for name, word in planted.items()}}
        assert not [name for name, word in self.secrets.items() if len(word) < 20]
        search, started = Search(self.secrets), deployment.trigger(FAST, cluster=LAB)
        self._namespaces = namespaces(deployment, SERVICES)
        self.in_processes: dict[str, set[str]] = {}
        self.seen: set[str] = set()
        try:
            deployment.until(lambda: started.poll() is not None or self._look(search), "the end of a chain", 400)
        finally:
            if started.poll() is None:
                started.kill()
        self.run = deployment.passed(started)
        self.search = Search({**self.secrets, "run": self.run, "dag": deployment.dag(FAST)})

    def _look(self, search: Search) -> None:
        for name, text in processes(self._namespaces):
            self.seen.add(name)
            if found := search.blocks([text]):
                self.in_processes.setdefault(name, set()).update(found)

    @property
    def volumes(self) -> dict[str, Path]:
        """Folders on this machine, by volume."""
        found = {}
        for container in self.deployment.containers():
            mounts = json.loads(self.deployment.engine.run("inspect", "--format", "{{json .Mounts}}", container))
            found |= {one["Name"]: Path(one["Source"]) for one in mounts if one["Type"] == "volume"}
        return found


@contextmanager
def _without_planted(deployment: Deployment) -> Iterator[None]:
    try:
        yield
    finally:
        with deployment.api("admin") as client:
            client.delete("/api/v2/connections/planted")


@pytest.fixture(scope="module")
def used(deployment: Deployment) -> Iterator[Used]:
    with _without_planted(deployment):
        yield Used(deployment)


def _leaks(found: dict[str, set[str]]) -> dict[str, set[str]]:
    return {place: names - CONTROLS for place, names in found.items() if names - CONTROLS}


def _seen(found: dict[str, set[str]]) -> set[str]:
    return {place for place, names in found.items() if names & CONTROLS}


def test_no_secret_is_in_a_process(used: Used) -> None:
    assert {name.partition(":")[0] for name in used.seen} == set(SERVICES)
    assert used.in_processes == {}


def test_no_secret_is_in_logs_of_containers(used: Used) -> None:
    found = {
        f"{service} {container[:12]}": used.search.output(used.deployment, "logs", container)
        for service in (*SERVICES, "init")
        for container in used.deployment.containers(service)
    }
    assert _leaks(found) == {}
    assert "worker" in {place.split()[0] for place in _seen(found)}


def test_no_secret_is_in_a_database(used: Used) -> None:
    (container,) = used.deployment.containers("postgres")
    dump = ("exec", container, "pg_dump", "--username=postgres", "--dbname")
    found = {name: used.search.output(used.deployment, *dump, name) for name in DATABASES}
    roles = ("exec", container, "pg_dumpall", "--username=postgres", "--globals-only")
    found["roles"] = used.search.output(used.deployment, *roles)
    assert _leaks(found) == {}
    assert _seen(found) >= {"airflow", "tipcflow"}


def test_no_secret_is_in_a_volume(used: Used) -> None:
    """Among them Redis' file of messages, PostgreSQL's own files, logs, objects, and runs on nodes."""
    volumes = used.volumes
    named = {f"{used.deployment.project}_{name}" for name in ("database", "logs", "objects", "queue")}
    assert set(volumes) > named | {f"{used.deployment.project}_node-{number}" for number in (1, 2)}
    found = {
        f"{name} {path}": names
        for name, folder in volumes.items()
        for path, names in used.search.folder(folder).items()
    }
    assert _leaks(found) == {}
    assert {place.split()[0] for place in _seen(found)} >= {f"{used.deployment.project}_database"}


def test_secrets_in_memory_are_in_private_files(used: Used) -> None:
    found, engine = {}, used.deployment.engine
    for service in AIRFLOW:
        for container in used.deployment.containers(service):
            root = Path("/proc", engine.run("inspect", "--format", "{{.State.Pid}}", container), "root")
            found |= used.search.folder(root / "tmp")
            # `logs` is a volume.
            found |= used.search.folder(root / "var/lib/airflow", leave_out="logs")
    files = [Path(place) for place in _leaks(found)]
    assert {path.name for path in files} == PRIVATE
    assert {oct(path.stat().st_mode & 0o777) for path in files} == {"0o600"}


def test_no_secret_is_in_the_settings_of_containers_and_images(used: Used) -> None:
    engine, found = used.deployment.engine, {}
    for container in used.deployment.containers():
        found[container] = used.search.blocks([engine.run("inspect", container).encode()])
    for image in map(used.deployment.image, ("tipcflow-airflow", "tipcflow-node")):
        shown = engine.run("history", "--no-trunc", image) + engine.run("image", "inspect", image)
        assert "airflow_entrypoint" in shown or "node_entrypoint" in shown
        found[image] = used.search.blocks([shown.encode()])
    assert _leaks(found) == {}


def test_no_secret_is_in_a_page(used: Used, tmp_path: Path) -> None:
    """All GET routes of the pages whose paths need only a run and a chain, as a user who may read."""
    known, found = {"run_id": used.run, "chain": f"toy/toy/{FAST}"}, {}
    with used.deployment.api("ci") as client:
        for template in get_templates(tmp_path):
            try:
                path = filled(template, known)
            except KeyError:
                continue
            response = client.get(f"/certification{path}", follow_redirects=True)
            found[template] = used.search.blocks([f"{response.headers}\n{response.text}".encode()])
        logs = f"/api/v2/dags/{used.deployment.dag(FAST)}/dagRuns"
        found[logs] = used.search.blocks([client.get(logs).content])
    assert _leaks(found) == {}
    assert len(_seen(found)) > 5
