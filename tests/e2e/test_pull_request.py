"""Pull requests through a real Airflow on two nodes, and a stand-in for GitHub: webhook, runs, reports."""

from collections.abc import Iterator

import pytest
from tests.support.certify import wait_for
from tests.support.github.deployment import RUN_S, Deployment, deploying, user
from tests.support.scheduler import CHAIN

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import Status
from tipcflow.github.trust import RunKey

# After a newer push, the nodes of the older run are clean within this time.
CLEAN_S = 30.0
pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def deployment(nodes: LocalNodes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deploying(tmp_path_factory.mktemp("pull-requests"), nodes) as deployed:
        yield deployed


def test_push_cancels_the_run_and_certifies_the_new_commit(deployment: Deployment) -> None:
    old = deployment.push(slow=True)
    deployment.pull_request("opened")
    deployment.pull_request("opened")
    wait_for(lambda: deployment.site.training_runs_on("b"), what="the training", seconds=RUN_S)
    deployment.until(old, lambda check: check.get("status") == "in_progress", "the check in progress")
    new = deployment.push()
    deployment.pull_request("synchronize")
    wait_for(lambda: not deployment.left_of(old), what="the nodes to be clean of the older run", seconds=CLEAN_S)
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


def test_refused_deliveries_start_nothing_and_are_logged_without_their_body(deployment: Deployment) -> None:
    before = deployment.dag_runs()
    deployment.push()
    pull = {
        "action": "opened",
        "pull_request": deployment.github.pull,
        "sender": user("author"),
        "title": "hunter2",
    }
    body = deployment.body(**pull)
    other = deployment.body(**{**pull, "repository": {"full_name": "o/unknown"}})
    no_signature = {"X-Hub-Signature-256": ""}
    assert deployment.send("pull_request", body, **no_signature).json()["cause"] == "signature"
    assert deployment.send("pull_request", body, secret="other").json()["cause"] == "signature"
    assert deployment.send("pull_request", other).json()["cause"] == "repository"
    assert deployment.send("pull_request", b"y" * 27_000_000).json()["cause"] == "too_large"
    ping = deployment.body(zen="hunter2", hook_id=1)
    assert deployment.send("ping", ping).json() == {"outcome": "stored"}
    assert deployment.send("ping", ping).json() == {"outcome": "duplicate"}
    wait_for(deployment.is_quiet, what="the queue of deliveries to be empty", seconds=RUN_S)
    assert deployment.dag_runs() == before
    log = deployment.logged()
    for cause in ("signature", "repository", "too_large", "duplicate"):
        assert cause in log, cause
    assert "hunter2" not in log
    assert "yyyy" not in log


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
