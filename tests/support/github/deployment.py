"""A real Airflow on local nodes that certifies the pull requests of a stand-in for GitHub."""

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml
from tests.support.certify import PARAMS, ROOT, Site, wait_for
from tests.support.github.api import GitHub, serving
from tests.support.github.tls import make_certificate
from tests.support.github.world import commit, make_repository
from tests.support.scheduler import DAG, Scheduler, make_catalog

from devcluster.airflow.stack import starting_airflow
from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.airflow_api.node_connections import connections_env
from tipcflow.domain import Status
from tipcflow.github.flow.waiting import work_waits
from tipcflow.github.webhook.delivery import signature

SECRET = "secret"
SLOW = ("norm_train:train.py", "norm_train:train.py --step-time 3")
RUN_S = 400.0


@dataclass
class Deployment:
    """Airflow, its nodes, the stand-in, and a pull request 7."""

    scheduler: Scheduler
    github: GitHub
    base: str

    @property
    def site(self) -> Site:
        return self.scheduler.site

    def push(self, *, slow: bool = False, fork: bool = False) -> str:
        """A new head of the pull request; returns its hash."""
        text = (self.site.suite / PARAMS).read_text()
        fast = text.replace(SLOW[1], SLOW[0])
        note = f"# {uuid.uuid4()}\n"
        sha = commit(
            self.site.suite, {PARAMS: fast.replace(*SLOW, 1) if slow else fast, "train.py": self._train() + note}
        )
        self.github.files = [{"filename": "train.py"}, {"filename": PARAMS}]
        self.github.pull = {
            "number": 7,
            "state": "open",
            "draft": False,
            "changed_files": 2,
            "user": {"login": "author"},
            "labels": [],
            "head": {"sha": sha, "repo": {"full_name": "fork/r" if fork else "o/r"}},
            "base": {"ref": "main", "sha": self.base},
        }
        return sha

    def _train(self) -> str:
        return (self.site.suite / "train.py").read_text()

    def send(self, event: str, body: bytes, *, secret: str = SECRET, **headers: str) -> httpx.Response:
        """Bytes to the real webhook, signed with a secret; `headers` replace those of GitHub, '' removes one."""
        own = {
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": str(uuid.uuid4()),
            "X-Hub-Signature-256": signature(secret.encode(), body),
            "Content-Type": "application/json",
        }
        url = f"{self.scheduler.stack.url}/certification/webhook/github"
        sent = {name: value for name, value in {**own, **headers}.items() if value}
        return httpx.post(url, content=body, headers=sent, timeout=60)

    def body(self, **payload: Any) -> bytes:
        """A payload of the repository."""
        # The same bytes would be a replay, which the webhook does not store.
        unique = {"unused": str(uuid.uuid4()), "repository": {"full_name": "o/r"}}
        return json.dumps({**unique, **payload}).encode()

    def post(self, event: str, **payload: Any) -> None:
        """A signed delivery to the real webhook."""
        body, delivery = self.body(**payload), str(uuid.uuid4())
        answers: list[httpx.Response] = []

        def is_stored() -> bool:
            # While another process writes to SQLite, the webhook returns 503 and GitHub's user delivers again.
            answers.append(self.send(event, body, **{"X-GitHub-Delivery": delivery}))
            assert answers[-1].status_code in (202, 503), answers[-1].text
            return answers[-1].status_code == 202

        wait_for(is_stored, what="the webhook to store the delivery", seconds=60)

    def pull_request(self, action: str) -> None:
        self.post("pull_request", action=action, pull_request=self.github.pull, sender=user("author"))

    def merge_group(self, base: str, head: str) -> None:
        """A merge queue requests the checks of its temporary commit."""
        group = {"head_sha": head, "base_sha": base, "base_ref": "refs/heads/main"}
        ref = f"refs/heads/gh-readonly-queue/main/pr-7-{base}"
        self.post(
            "merge_group",
            action="checks_requested",
            merge_group={**group, "head_ref": ref},
            sender=user("github-merge-queue"),
        )

    def comment(self, text: str) -> None:
        issue = {"number": 7, "pull_request": {"url": "u"}, "user": user("author"), "state": "open"}
        self.post(
            "issue_comment",
            action="created",
            issue=issue,
            comment={"id": len(self.github.log) + 10_000, "body": text},
            sender=user("maintainer"),
        )

    def check(self, sha: str) -> dict[str, Any]:
        """The check run of a commit, {} before it exists; there is never a second one."""
        mine = [one for one in self.github.checks if one["head_sha"] == sha]
        assert len(mine) <= 1, [one["external_id"] for one in mine]
        return mine[0] if mine else {}

    def until(self, sha: str, when: Callable[[dict[str, Any]], bool], what: str, seconds: float = RUN_S) -> None:
        wait_for(lambda: when(self.check(sha)), what=f"{what}: {self.check(sha)}", seconds=seconds)

    def status(self, sha: str) -> Status | None:
        """The status of the chain's run of a commit."""
        with self.site.store() as store:
            found = store.pulls.get(("o/r", 7, sha, 1))
            assert found
            return store.runs.get(found.chains[0].run).status

    def left_of(self, sha: str) -> list[str]:
        """Processes and leases of the slow training of a commit."""
        with self.site.store() as store:
            found = store.pulls.get(("o/r", 7, sha, 1))
            assert found
            run = found.chains[0].run
            left = [f"lease {lease.node}/{lease.slot}" for lease in store.leases.all() if lease.run == run]
        for node in self.site.nodes.cluster.nodes:
            commands = [process.cmdline for process in self.site.nodes.processes(node.name)]
            left += [f"{node.name}: {line}" for line in commands if "--step-time" in line or run in line]
        return left

    def logged(self) -> str:
        """What the api-server logged."""
        return self.scheduler.stack.components["api-server"].read_text(errors="replace")

    def is_quiet(self) -> bool:
        """Whether no delivery and no message waits."""
        with self.site.store() as store:
            return not work_waits(store)

    def dag_runs(self) -> set[str]:
        """The DAG runs of the chain that pull requests started."""
        runs = self.scheduler.call("GET", f"/api/v2/dags/{DAG}/dagRuns").json()["dag_runs"]
        return {one["dag_run_id"] for one in runs if one["dag_run_id"].startswith("github__")}


def user(login: str) -> dict[str, str]:
    return {"login": login, "type": "User"}


@contextmanager
def deploying(folder: Path, nodes: LocalNodes) -> Iterator[Deployment]:
    """The deployment in an empty folder; stops at the end, and fails if anything remains on the nodes."""
    site = Site(folder, nodes)
    dags = make_catalog(site)
    base = make_repository(site.suite)
    (site.configs / "airflow.env").write_bytes((ROOT / "configs" / "airflow.env").read_bytes())
    certificate, key, pem = make_certificate(folder)
    github = GitHub()
    github.roles = {"maintainer": "write", "author": "read"}
    with serving(github, certificate=(certificate, key)) as url:
        own = {"name": "o/r", "connection": "app", "suite": "toy", "cluster": "local", "comment": "always"}
        (site.configs / "repositories").mkdir()
        (site.configs / "repositories" / "r.yaml").write_text(yaml.safe_dump({**own, "api_url": url}))
        env = {"REQUESTS_CA_BUNDLE": str(certificate)}
        with starting_airflow(
            site.home, dags=dags, plugins=ROOT / "plugins", configs=site.configs, env=env
        ) as stack:
            address = httpx.URL(stack.url)
            app = {"conn_type": "generic", "login": "1", "password": SECRET, "extra": {"private_key": pem}}
            rest = {
                "conn_type": "http",
                "host": address.host,
                "port": address.port,
                "login": stack.user,
                "password": stack.password,
            }
            stack.start(
                {
                    **connections_env(nodes.cluster),
                    "AIRFLOW_CONN_APP": json.dumps(app),
                    "AIRFLOW_CONN_TIPCFLOW_AIRFLOW_API": json.dumps(rest),
                }
            )
            stack.wait_ready(deadline_s=600)
            scheduler = Scheduler(site, stack)
            scheduler.wait_for_dags(DAG, "certify", "confirm", "pull_request")
            yield Deployment(scheduler, github, base)
    assert site.left_behind() == []
