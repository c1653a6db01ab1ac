"""Issues about alerts as part of a pass of the DAG `pull_request`."""

from importlib import import_module

import pytest
from tests.support.github.world import CHAIN, World
from tests.support.stories import a_run

from tipcflow.domain import CheckResult, Status
from tipcflow.execute.alerts.track import track_alerts

pytestmark = pytest.mark.slow


def regress(world: World) -> None:
    """A confirmed regression of the world's chain opens an alert."""
    world.repository = world.repository.model_copy(update={"alerts": "issues"})
    run = a_run("r-1", chain=CHAIN, suite="toy", status=Status.REGRESSION, ended_at=world.store.now())
    world.store.runs.create(run)
    result = CheckResult(
        check="speed.ips", status=Status.REGRESSION, reason="slower", step="v/train", metric="ips"
    )
    track_alerts(world.store, run, [result])


def test_pass_opens_the_issue_of_an_alert(world: World) -> None:
    regress(world)
    assert world.work()["issues"] == 1
    (issue,) = world.github.issues
    assert "(https://airflow.test/certification/runs/r-1)" in issue["body"]
    assert "issues" not in world.work()


def test_defect_of_an_issue_does_not_stop_the_pass(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> int:
        raise ZeroDivisionError

    regress(world)
    monkeypatch.setattr(import_module("tipcflow_operators.pull_request.work"), "write_issues", fails)
    world.pull_request("opened")
    world.work()
    assert "issues of o/r: internal error: ZeroDivisionError()" in world.lines
    assert world.check()["status"] == "queued"
