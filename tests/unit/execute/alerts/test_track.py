"""Alerts follow judged runs: opened, attached, ended, reopened, grouped; and runs that never touch an alert."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import T0, a_run, open_store

from tipcflow.domain import CheckResult, InfraError, Status
from tipcflow.domain.alert.entry import Alert, AlertEvent, AlertState, EventKind
from tipcflow.domain.run_documents import MergeBaseDocument
from tipcflow.execute.alerts import track
from tipcflow.execute.alerts.decide import alerts_named, assign, comment, set_state
from tipcflow.execute.alerts.track import track_alerts, track_alone
from tipcflow.store import Baseline, Store

DAY = 86_400.0
WORSE, SLOW, GREEN = Status.REGRESSION, Status.UNCONFIRMED, Status.PASS


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "tipcflow.db") as opened:
        yield opened


def judged(store: Store, day: int, metrics: dict[str, Status | float], **fields: Any) -> list[Alert]:
    """A run whose metrics have these statuses, or are regressions by this ratio; the alerts that it reports."""
    results = [
        CheckResult(
            check=f"speed.{name}",
            status=WORSE if isinstance(value, float) else value,
            reason=f"{name} on day {day}",
            step="v_repeat_1/train" if day % 2 else "v/train",
            metric=name,
            values={"ratio": value if isinstance(value, float) else 1.2},
        )
        for name, value in metrics.items()
    ]
    worst = max((result.status for result in results), key=lambda status: status.severity, default=GREEN)
    worst = GREEN if worst is Status.INSUFFICIENT_DATA else worst
    known = {"environment": "cpu", "framework": f"paddle 3.{day}", "suite_commit": "c" * 40, "status": worst}
    chain = fields.setdefault("chain", "sample/a/train")
    known["ended_at"] = T0 + day * DAY + 60
    run = a_run(f"{chain.split('/')[1]}-{day:02}", created_at=T0 + day * DAY, **(known | fields))
    store.runs.create(run)
    store.checks.replace(run.id, results)
    return track_alerts(store, run, results)


def kinds(store: Store, number: int = 1) -> list[str]:
    return [event.kind.value for event in store.tracked_alerts.events(number)]


def test_metrics_that_moved_together_are_one_alert_with_its_suspects(store: Store) -> None:
    assert judged(store, 1, {"batch_cost": GREEN, "ips": GREEN}) == []
    (made,) = judged(store, 2, {"batch_cost": 1.25, "ips": 0.8, "peak_rss": GREEN})
    assert (made.number, made.group, made.state, made.first, made.last_good) == (1, 1, "new", "a-02", "a-01")
    assert made.suspects == ("framework 3.1 -> 3.2",)
    assert [(each.step, each.metric, each.percent) for each in made.metrics] == [
        ("v/train", "batch_cost", 25.0),
        ("v/train", "ips", pytest.approx(-20)),
    ]
    assert made.about == "batch_cost +25.0 %, ips -20.0 %"
    assert store.tracked_alerts.get(1) == made
    (event,) = store.tracked_alerts.events(1)
    assert (event.kind, event.who, event.run) == (EventKind.OPENED, "tipcflow", "a-02")
    assert event.text == "speed.batch_cost: batch_cost on day 2; 1 more metrics"


def test_later_runs_attach_and_are_counted_once(store: Store) -> None:
    judged(store, 2, {"batch_cost": 1.2})
    (again,) = judged(store, 3, {"batch_cost": 1.3, "ips": 0.7})
    assert (again.number, again.runs, again.newest) == (1, 2, "a-03")
    assert again.about == "batch_cost +30.0 %, ips -30.0 %"
    assert [each.first for each in again.metrics] == ["a-02", "a-03"]
    run = store.runs.get("a-03")
    assert track_alerts(store, run, store.checks.results(run.id)) == [again]
    assert kinds(store) == ["opened", "seen"]
    assert [alert.number for alert in store.tracked_alerts.of_run("a-03")] == [1]


def test_another_metric_on_other_code_is_another_alert(store: Store) -> None:
    judged(store, 2, {"batch_cost": 1.2})
    judged(store, 3, {"batch_cost": 1.2, "peak_rss": 1.4})
    assert [alert.about for alert in store.tracked_alerts.all()] == ["peak_rss +40.0 %", "batch_cost +20.0 %"]
    judged(store, 4, {"batch_cost": 1.2, "peak_rss": 1.4, "top1": 0.9}, framework="paddle 3.3")
    assert store.tracked_alerts.get(2).about == "peak_rss +40.0 %, top1 -10.0 %"


@pytest.mark.parametrize("missing", [{}, {"batch_cost": SLOW}, {"batch_cost": Status.INSUFFICIENT_DATA}])
def test_a_run_that_does_not_prove_the_level_ends_nothing(store: Store, missing: dict[str, Any]) -> None:
    judged(store, 2, {"batch_cost": 1.2})
    assert judged(store, 3, {"ips": GREEN, **missing}) == []
    judged(store, 4, {"batch_cost": GREEN}, status=Status.FAILED)
    judged(store, 1, {"batch_cost": GREEN})
    assert store.tracked_alerts.get(1).is_present
    assert kinds(store) == ["opened"]


def test_alert_ends_when_the_level_returns_and_reopens(store: Store) -> None:
    judged(store, 2, {"batch_cost": 1.2, "ips": 0.8})
    judged(store, 3, {"batch_cost": GREEN, "ips": 0.8})
    assert store.tracked_alerts.get(1).is_present
    judged(store, 4, {"batch_cost": GREEN, "ips": Status.IMPROVEMENT})
    ended = store.tracked_alerts.get(1)
    assert (ended.state, ended.gone, ended.is_present) == (AlertState.FIXED, "a-04", False)
    (back,) = judged(store, 5, {"ips": 0.8})
    assert (back.number, back.state, back.gone, back.gone_at, back.runs) == (1, AlertState.NEW, "", None, 3)
    assert kinds(store) == ["opened", "seen", "gone", "reopened"]


def test_regression_long_after_an_alert_opens_another_alert(store: Store) -> None:
    judged(store, 2, {"batch_cost": 1.2})
    judged(store, 3, {"batch_cost": GREEN})
    assert judged(store, 34, {"batch_cost": 1.2})[0].number == 2


def test_accepted_baseline_makes_the_alert_expected(store: Store) -> None:
    judged(store, 2, {"batch_cost": 1.2})
    line = {"chain": "sample/a/train", "mode": a_run().mode, "environment": "cpu", "run": "a-02"}
    value = {"step": "v/train", "leg": "", "metric": "batch_cost", "value": 1.2, "unit": "s"}
    made = Baseline(**line, **value, who="mia", why="new kernel", accepted_at=T0 + 2.5 * DAY)
    store.baselines.accept_one(made)
    judged(store, 3, {"batch_cost": GREEN})
    assert store.tracked_alerts.get(1).state is AlertState.EXPECTED
    event = store.tracked_alerts.events(1)[-1]
    assert (event.kind, event.who, event.text) == (EventKind.GONE, "mia", "baseline accepted: new kernel")


def test_decisions_of_users_are_stored_as_events(store: Store) -> None:
    judged(store, 2, {"batch_cost": 1.2})
    named = alerts_named(store, 1, group=False)
    (own,) = set_state(store, named, AlertState.ACKNOWLEDGED, who="mia", why="on it", owner="kernels")
    assign(store, [own], "tom", who="mia")
    comment(store, [own], "bisect runs", who="tom")
    stored = store.tracked_alerts.get(1)
    assert (stored.state, stored.owner) == (AlertState.ACKNOWLEDGED, "tom")
    assert [(event.who, event.text) for event in store.tracked_alerts.events(1)[1:]] == [
        ("mia", "acknowledged: on it"),
        ("mia", "kernels"),
        ("mia", "tom"),
        ("tom", "bisect runs"),
    ]


def test_fixed_alert_reopens_only_by_newer_runs(store: Store) -> None:
    judged(store, 2, {"batch_cost": 1.2})
    event = AlertEvent(alert=1, at=T0, who="mia", kind=EventKind.STATE, text="fixed")
    store.tracked_alerts.change(event, state=AlertState.FIXED, state_at=T0 + 3.5 * DAY)
    assert judged(store, 3, {"batch_cost": 1.2})[0].state is AlertState.FIXED
    assert judged(store, 4, {"batch_cost": 1.2})[0].state is AlertState.NEW
    assert kinds(store) == ["opened", "state", "seen", "reopened"]


@pytest.mark.parametrize("state", [AlertState.EXPECTED, AlertState.INVALID])
def test_a_settled_alert_covers_its_size_only(store: Store, state: AlertState) -> None:
    judged(store, 2, {"batch_cost": 1.1})
    set_state(store, alerts_named(store, 1, group=False), state, who="mia", why="")
    assert judged(store, 3, {"batch_cost": 1.2})[0].number == 1
    assert judged(store, 4, {"batch_cost": 1.2})[0].state is state
    assert judged(store, 5, {"batch_cost": 1.3})[0].number == 2
    assert judged(store, 6, {"batch_cost": 1.2, "ips": 0.9})[0].number == 2


def test_a_framework_that_slows_many_chains_is_one_group(store: Store) -> None:
    for chain in ("sample/a/train", "sample/b/train", "other/c/train"):
        judged(store, 1, {"batch_cost": GREEN}, chain=chain)
        judged(store, 2, {"batch_cost": 1.2}, chain=chain)
    judged(store, 1, {"batch_cost": GREEN}, chain="sample/d/train", framework="paddle 3.0")
    judged(store, 2, {"batch_cost": 1.2}, chain="sample/d/train")
    groups = [(alert.number, alert.group) for alert in store.tracked_alerts.all()]
    assert groups == [(4, 4), (3, 1), (2, 1), (1, 1)]
    assert [alert.number for alert in alerts_named(store, 2, group=True)] == [2, 3, 1]


def test_a_suite_commit_joins_only_chains_of_its_suite(store: Store) -> None:
    for chain in ("sample/a/train", "sample/b/train", "other/c/train"):
        suite = chain.split("/")[0]
        judged(store, 1, {"batch_cost": GREEN}, chain=chain, suite=suite, framework="")
        judged(store, 2, {"batch_cost": 1.2}, chain=chain, suite=suite, framework="", suite_commit="d" * 40)
    assert [alert.group for alert in store.tracked_alerts.all()] == [3, 1, 1]


@pytest.mark.parametrize("trigger", ["confirm", "bisect", "ab"])
def test_side_runs_and_changes_open_nothing(store: Store, trigger: str) -> None:
    assert judged(store, 2, {"batch_cost": 1.2}, trigger=trigger) == []
    run = a_run("pull", status=WORSE, ended_at=T0 + 9)
    store.runs.create(run)
    store.documents.put(run.id, MergeBaseDocument(commit="c" * 40))
    results = [CheckResult(check="speed.ips", status=WORSE, reason="slow", metric="ips")]
    assert track_alerts(store, run, results) == []
    assert store.tracked_alerts.all() == []


def test_results_that_do_not_block_open_nothing(store: Store) -> None:
    run = a_run("shown", status=GREEN, ended_at=T0 + 9)
    store.runs.create(run)
    results = [CheckResult(check="speed.ips", status=WORSE, reason="slow", metric="ips", gating=False)]
    assert track_alerts(store, run, results) == []


def test_runs_that_end_together_open_one_alert(tmp_path: Path) -> None:
    """Each lookup waits for the other run's, or for a second: without the lock, both find no alert."""
    database = tmp_path / "tipcflow.db"
    both = threading.Barrier(2)
    result = CheckResult(check="speed.ips", status=WORSE, reason="slower", step="v/train", metric="ips")
    errors: list[BaseException] = []

    def end(name: str) -> None:
        try:
            with open_store(database) as own:
                run = a_run(name, created_at=T0, environment="cpu", status=WORSE, ended_at=T0 + 60)
                own.runs.create(run)
                lookup = own.tracked_alerts.of_line

                def slow(chain: str, mode: str, environment: str) -> list[Alert]:
                    found = list(lookup(chain, mode, environment))
                    with contextlib.suppress(threading.BrokenBarrierError):
                        both.wait(1)
                    return found

                own.tracked_alerts.of_line = slow  # type: ignore[method-assign]
                track_alone(own, tmp_path, run, [result])
        except BaseException as error:
            errors.append(error)

    open_store(database).close()
    threads = [threading.Thread(target=end, args=(name,)) for name in ("a-01", "a-02")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    with open_store(database) as after:
        (alert,) = after.tracked_alerts.of_line(a_run("x").chain, a_run("x").mode, "cpu")
        assert alert.runs == 2


@pytest.mark.process
def test_runs_that_end_on_two_machines_open_one_alert(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock file does not suffice: each machine has its own TIPCFLOW_HOME."""
    monkeypatch.setattr(track, "LOCK_S", 0.1)
    result = CheckResult(check="speed.ips", status=WORSE, reason="slower", step="v/train", metric="ips")
    first, second = (
        a_run(name, created_at=T0, environment="cpu", status=WORSE, ended_at=T0 + 60) for name in ("a-01", "a-02")
    )
    with Store.open(postgres_url) as one, Store.open(postgres_url) as other:
        for run in (first, second):
            one.runs.create(run)
        lookup, opened = one.tracked_alerts.of_line, one.tracked_alerts.open
        tried: list[str] = []

        def end_second(when: str) -> None:
            tried.append(when)
            with pytest.raises(InfraError, match="the database's lock 'alerts' was held by another process"):
                track_alone(other, tmp_path / "two", second, [result])

        def of_line(*line: str) -> list[Alert]:
            found = list(lookup(*line))
            end_second("alerts read")
            return found

        def open_alert(*arguments: Any, **fields: Any) -> Alert:
            alert = opened(*arguments, **fields)
            end_second("alert stored")
            return alert

        monkeypatch.setattr(one.tracked_alerts, "of_line", of_line)
        monkeypatch.setattr(one.tracked_alerts, "open", open_alert)
        track_alone(one, tmp_path / "one", first, [result])
        assert tried == ["alerts read", "alert stored"]
        (alert,) = track_alone(other, tmp_path / "two", second, [result])
        assert (alert.number, alert.runs) == (1, 2)
