"""The steps of docs/operations.md that concern Airflow work in a real one, as they are written there."""

import json
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.support.certify import ROOT, Site, wait_for
from tests.support.installed.operations_page import blocks, commands, shell
from tests.support.scheduler import Scheduler
from tests.support.stories import a_run, record_run

from devcluster.airflow.stack import airflow_stack
from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.github.webhook.delivery import signature

pytestmark = [pytest.mark.e2e, pytest.mark.full]
# Of a changed secret, as the page states.
IN_FORCE_S = 15.0


class Deployment:
    """A running Airflow, and shells with the environment of its components."""

    def __init__(self, scheduler: Scheduler, folder: Path) -> None:
        self.scheduler = scheduler
        self.folder = folder
        entries = Path(f"/proc/{scheduler.stack.pids['scheduler']}/environ").read_bytes().split(b"\0")
        self.env = dict(entry.decode().split("=", 1) for entry in entries if b"=" in entry)

    def run(self, text: str, **env: str) -> str:
        return shell(text.replace("/srv/backup", str(self.folder)), {**self.env, **env}, cwd=self.folder)


@pytest.fixture(scope="module")
def deployment(nodes: LocalNodes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("operated")
    site = Site(folder, nodes)
    (site.configs / "airflow.env").write_bytes((ROOT / "configs" / "airflow.env").read_bytes())
    with airflow_stack(site.home, dags=ROOT / "dags", plugins=ROOT / "plugins", configs=site.configs) as stack:
        scheduler = Scheduler(site, stack)
        scheduler.wait_for_dags("weekly", "maintenance")
        with site.store() as store:
            record_run(store)
        made = folder / "backup"
        made.mkdir()
        yield Deployment(scheduler, made)


def test_components_are_checked_and_new_work_is_stopped(deployment: Deployment) -> None:
    checks, pause = blocks("The queue grows")
    assert deployment.run(checks).count("Found") == 2
    stop, start = pause.splitlines()
    for command, paused in ((stop, True), (start, False)):
        deployment.run(command)
        assert deployment.scheduler.api.dag("weekly").is_paused is paused


def test_metrics_require_the_token_that_was_added(deployment: Deployment) -> None:
    steps = blocks("Metrics and alerts")[0].replace("http://localhost:8080", deployment.scheduler.stack.url)
    assert "tipcflow_queue_length 0.0" in deployment.run(steps)
    refused = httpx.get(f"{deployment.scheduler.stack.url}/certification/metrics", timeout=30)
    assert refused.status_code == 401


def ping(deployment: Deployment, secret: str) -> int:
    """The status of a delivery of GitHub that is signed with a secret."""
    body = f'{{"zen": "{uuid.uuid4()}", "hook_id": 1}}'.encode()
    headers = {
        "X-GitHub-Event": "ping",
        "X-GitHub-Delivery": str(uuid.uuid4()),
        "X-Hub-Signature-256": signature(secret.encode(), body),
        "Content-Type": "application/json",
    }
    url = f"{deployment.scheduler.stack.url}/certification/webhook/github"
    return httpx.post(url, content=body, headers=headers, timeout=60).status_code


def test_new_secret_of_the_webhook_replaces_the_old_one(deployment: Deployment) -> None:
    """A new password in the connection, as the page of connections sends it; no component is started again."""
    repository = deployment.scheduler.site.configs / "repositories" / "hello.yaml"
    repository.parent.mkdir()
    repository.write_text("name: octocat/hello\nconnection: hello_app\nsuite: toy\ncluster: local\n")
    extra = json.dumps({"private_key": "kept-key"})
    deployment.run(
        f"airflow connections add hello_app --conn-type generic --conn-password old --conn-extra '{extra}'"
    )
    try:
        wait_for(lambda: ping(deployment, "old") == 202, what="the connection", seconds=30)
        fields = {"connection_id": "hello_app", "conn_type": "generic", "password": "new"}
        path = "/api/v2/connections/hello_app?update_mask=password"
        deployment.scheduler.call("PATCH", path, json=fields)
        wait_for(lambda: ping(deployment, "new") == 202, what="the new secret", seconds=IN_FORCE_S + 5)
        assert ping(deployment, "old") == 401
        assert "kept-key" in deployment.run("airflow connections get hello_app --output json")
    finally:
        repository.unlink()


def test_connections_are_readable_after_the_rotation_of_the_fernet_key(deployment: Deployment) -> None:
    deployment.run("airflow connections add kept --conn-type generic --conn-password kept-word")
    old = deployment.run("airflow config get-value core fernet_key").split()[-1]
    rotate = blocks("Fernet key")[0]
    new = deployment.run(f'{rotate}\necho "$new"', old=old).split()[-1]
    read = "airflow connections get kept --output json"
    assert "kept-word" in deployment.run(read, AIRFLOW__CORE__FERNET_KEY=new)
    # Back, for the other tests.
    deployment.run("airflow rotate-fernet-key", AIRFLOW__CORE__FERNET_KEY=f"{old},{new}")
    assert "kept-word" in deployment.run(read)


def test_backup_is_restored_over_newer_data(deployment: Deployment) -> None:
    home = deployment.scheduler.site.home
    (home / "runs" / "20261121t000000-toy-0a1b").mkdir(parents=True)
    (home / "runs" / "20261121t000000-toy-0a1b" / "main.log").write_text("loss: 1\n")
    saved = commands("Back up and restore", "tipcflow db backup") + commands("Back up and restore", "tar --create")
    deployment.run("\n".join(saved))
    with deployment.scheduler.site.store() as store:
        before = store.runs.newest()
    (copy,) = deployment.folder.glob("metrics-*.backup")
    (archive,) = deployment.folder.glob("runs-*.tar.gz")
    shutil.rmtree(home / "runs" / "20261121t000000-toy-0a1b")
    (extract,) = commands("Back up and restore", "tar --extract")
    deployment.run(extract.replace("/srv/backup/runs-2026-11-23.tar.gz", str(archive)))
    assert (home / "runs" / "20261121t000000-toy-0a1b" / "main.log").read_text() == "loss: 1\n"
    restore = next(line.strip() for line in blocks("Back up and restore")[2].splitlines() if "db restore" in line)
    deployment.run(restore.replace("/srv/backup/metrics-2026-11-23.backup", str(copy)))
    with deployment.scheduler.site.store() as store:
        assert store.runs.newest() == before


def test_old_rows_and_logs_are_removed(deployment: Deployment) -> None:
    home = deployment.scheduler.site.home
    with deployment.scheduler.site.store() as store:
        ended = record_run(store, a_run("20250101t000000-toy-0a1b", created_at=store.now() - 500 * 86_400.0))
    old, new = home / "runs" / ended.id, home / "runs" / "unknown"
    logs = Path(deployment.env["AIRFLOW_HOME"]) / "logs" / "dag_id=toy"
    for folder in (old, new, logs):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "main.log").write_text("x")
    deployment.run(f"touch --date='-500 days' {new} {logs}/main.log")
    deployment.run(blocks("Retention")[0])
    assert [path.exists() for path in (old, new, logs / "main.log")] == [False, True, False]
