"""Alerts, the runs that were judged, and decisions about baselines, on both databases."""

from collections.abc import Callable

import pytest
from tests.support.stories import T0, TRAIN, a_run

from tipcflow.domain import CheckResult, Status
from tipcflow.store import Store
from tipcflow.store.baselines import Baseline

DAY = 86_400


def put(store: Store, day: int, status: Status, *checks: CheckResult, **fields: object) -> str:
    known = {"chain": "s/alpha/a", "created_at": T0 + day * DAY, "ended_at": T0 + day * DAY + 9}
    run = a_run(f"r{day:02}", status=status, **(known | fields))
    store.runs.create(run)
    store.checks.replace(run.id, checks)
    return run.id


def about(metric: str, status: Status, **values: object) -> CheckResult:
    return CheckResult(check=f"speed.{metric}", status=status, reason="x" * 500, metric=metric, values=values)


def test_alerts_are_changed_metrics_of_runs_since(store: Store) -> None:
    slow = about("batch_cost", Status.REGRESSION, ratio=1.25)
    put(store, 1, Status.REGRESSION, slow)
    put(
        store, 2, Status.REGRESSION, slow, about("ips", Status.IMPROVEMENT, ratio="unknown"),
        about("loss", Status.PASS), about("", Status.REGRESSION),
    )  # fmt: skip
    put(store, 3, Status.FAILED, about("top1", Status.UNCONFIRMED))
    put(store, 4, Status.REGRESSION, slow, trigger="confirm")
    found = store.alerts.since(T0 + 2 * DAY)
    assert [(alert.run, alert.metric, alert.status, alert.ratio) for alert in found] == [
        ("r02", "batch_cost", Status.REGRESSION, 1.25),
        ("r02", "ips", Status.IMPROVEMENT, None),
        ("r03", "top1", Status.UNCONFIRMED, None),
    ]
    assert {len(alert.reason) for alert in found} == {400}


@pytest.mark.parametrize("kind", ["sqlite"])
def test_alerts_are_searched_in_the_index_of_runs_that_may_have_one(
    store: Store, plan_of: Callable[[Callable[[], object]], list[str]]
) -> None:
    plan = plan_of(lambda: store.alerts.since(T0))
    assert "SEARCH runs USING INDEX ix_runs_may_alert (created_at>?)" in plan


@pytest.mark.parametrize(
    ("status", "is_judged"),
    [
        (Status.PASS, True),
        (Status.FAILED, True),
        (Status.UNCONFIRMED, True),
        (Status.INFRA_FAILURE, False),
        (Status.CANCELLED, False),
        (Status.CONFIG_ERROR, False),
    ],
)
def test_only_judged_runs_are_listed(store: Store, status: Status, is_judged: bool) -> None:
    put(store, 1, Status.PASS)
    put(store, 3, status)
    put(store, 2, Status.PASS, chain="s/beta/a")
    expected = ["r02", "r03"] if is_judged else ["r02"]
    assert [run.id for run in store.alerts.judged(["s/alpha/a", "s/beta/a"], T0 + 2 * DAY)] == expected
    assert [run.id for run in store.alerts.judged(["s/beta/a"], T0)] == ["r02"]
    assert store.alerts.judged([], T0) == []
    assert store.alerts.chains_of(["r01", "r02", "r99"]) == {"r01": "s/alpha/a", "r02": "s/beta/a"}


def test_baseline_decisions_are_listed(store: Store) -> None:
    run = put(store, 1, Status.PASS)
    for day in (1, 3):
        store.baselines.accept_one(
            Baseline(
                chain="s/alpha/a", mode="m", step=TRAIN, metric="ips", environment="", value=1.0, run=run,
                who="eva", why=f"day {day}", accepted_at=T0 + day * DAY,
            )
        )  # fmt: skip
    assert [(each.metric, each.why) for each in store.alerts.decisions(T0 + 2 * DAY)] == [("ips", "day 3")]
