"""Pull requests through a real Airflow on two nodes, and a stand-in for GitHub: webhook, runs, reports."""

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import yaml
from tests.support.certify import PARAMS, ROOT, Site, wait_for
from tests.support.github.api import GitHub, serving
from tests.support.github.tls import make_certificate
from tests.support.github.world import commit, make_repository
from tests.support.scheduler import CHAIN, DAG, Scheduler, make_catalog

from devcluster.airflow.stack import starting_airflow
from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.airflow_api.node_connections import connections_env
from tipcflow.domain import Status
from tipcflow.github.flow.waiting import work_waits
from tipcflow.github.trust import RunKey
from tipcflow.github.webhook.delivery import signature

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(900)]
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

    def post(self, event: str, **payload: Any) -> None:
        """A signed delivery to the real webhook."""
        # The same bytes would be a replay, which the webhook does not store.
        unique = {"unused": str(uuid.uuid4()), "repository": {"full_name": "o/r"}}
        body = json.dumps({**unique, **payload}).encode()
        headers = {
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": str(uuid.uuid4()),
            "X-Hub-Signature-256": signature(SECRET.encode(), body),
            "Content-Type": "application/json",
        }
        url = f"{self.scheduler.stack.url}/certification/webhook/github"
        answers: list[httpx.Response] = []

        def is_stored() -> bool:
            # While another process writes to SQLite, the webhook returns 503 and GitHub's user delivers again.
            answers.append(httpx.post(url, content=body, headers=headers, timeout=60))
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


@pytest.fixture(scope="module")
def deployment(nodes: LocalNodes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("pull-requests")
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


def test_push_cancels_the_run_and_certifies_the_new_commit(deployment: Deployment) -> None:
    old = deployment.push(slow=True)
    deployment.pull_request("opened")
    deployment.pull_request("opened")
    wait_for(lambda: deployment.site.training_runs_on("b"), what="the training", seconds=RUN_S)
    deployment.until(old, lambda check: check.get("status") == "in_progress", "the check in progress")
    new = deployment.push()
    deployment.pull_request("synchronize")
    wait_for(lambda: deployment.check(old).get("conclusion") == "cancelled", what="the old check", seconds=RUN_S)
    assert deployment.status(old) is Status.CANCELLED
    deployment.until(new, lambda check: check.get("status") == "completed", "the verdict")
    assert deployment.check(new)["conclusion"] == "success", deployment.check(new)
    assert deployment.status(new) is Status.PASS
    assert deployment.dag_runs() == {RunKey("o/r", 7, sha, 1).run_id for sha in (old, new)}
    wait_for(lambda: any(new[:8] in one["body"] for one in deployment.github.comments), what="the comment")
    assert len(deployment.github.comments) == 1
    assert CHAIN in deployment.check(new)["output"]["summary"]


def test_the_code_of_a_fork_runs_after_the_approval(deployment: Deployment) -> None:
    before = deployment.dag_runs()
    sha = deployment.push(fork=True)
    deployment.pull_request("synchronize")
    deployment.until(sha, lambda check: check.get("conclusion") == "action_required", "the waiting check")
    assert deployment.dag_runs() == before
    deployment.comment(f"/tipc approve {sha}")
    deployment.until(sha, lambda check: check.get("conclusion") == "success", "the verdict")
    assert len(deployment.dag_runs() - before) == 1
    assert "+1" in {content for _, content in deployment.github.reactions}


def test_a_merge_group_is_certified_although_a_newer_one_follows(deployment: Deployment) -> None:
    before = deployment.dag_runs()
    first = deployment.push(slow=True)
    deployment.merge_group(deployment.base, first)
    deployment.until(first, lambda check: check.get("status") == "in_progress", "the first group's check")
    wait_for(lambda: deployment.site.training_runs_on("b"), what="the training", seconds=RUN_S)
    second = deployment.push()
    deployment.merge_group(first, second)
    deployment.until(second, lambda check: bool(check), "the second group's check")
    for sha in (first, second):
        deployment.until(sha, lambda check: check.get("status") == "completed", "the verdict")
        assert deployment.check(sha)["conclusion"] == "success", deployment.check(sha)
        # A merge queue waits for the name that the branch requires for pull requests.
        assert deployment.check(sha)["name"] == "tipcflow"
    assert deployment.dag_runs() - before == {RunKey("o/r", 0, sha, 1).run_id for sha in (first, second)}


def test_reports_of_a_run_during_an_outage_are_sent_later_and_once(deployment: Deployment) -> None:
    github = deployment.github
    sha = deployment.push(slow=True)
    deployment.pull_request("synchronize")
    wait_for(lambda: deployment.site.training_runs_on("b"), what="the training", seconds=RUN_S)
    deployment.until(sha, lambda check: check.get("status") == "in_progress", "the check in progress")
    github.away = True
    seen, comments = len(github.log), len(github.comments)
    deployment.comment("/tipc help")
    wait_for(lambda: deployment.status(sha) is Status.PASS, what="the verdict in the database", seconds=RUN_S)
    wait_for(lambda: github.lost > 8, what="repeated requests", seconds=RUN_S)
    assert len(github.log) == seen
    assert deployment.check(sha)["status"] == "in_progress"
    github.away = False
    deployment.until(sha, lambda check: check.get("status") == "completed", "the late verdict")
    assert deployment.check(sha)["conclusion"] == "success", deployment.check(sha)
    wait_for(lambda: len(github.comments) > comments, what="the late reply", seconds=RUN_S)
    wait_for(lambda: any(sha[:8] in one["body"] for one in github.comments), what="the late comment")
    # All messages are sent: what a doubled one would add has arrived.
    wait_for(lambda: deployment.is_quiet(), what="the queue of messages to be empty", seconds=RUN_S)
    assert [one["body"].count("/tipc cancel") > 0 for one in github.comments[comments:]] == [True]
    sent = [
        body.get("conclusion")
        for verb, path, body in github.log[seen:]
        if verb == "PATCH" and "check-runs" in path
    ]
    # The update that the outage interrupted may be sent before the final report, never after it.
    assert sent in (["success"], [None, "success"]), sent
