"""A judged run opens an alert, is attached to one, ends one or reopens one (ADR 27)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcflow.domain import CheckResult, Run, Status, without_repeat
from tipcflow.domain.alert.entry import TIPCFLOW, Alert, AlertEvent, AlertState, EventKind, MetricId, Moved
from tipcflow.domain.numbers.changes import changes, origin_of
from tipcflow.domain.numbers.metrics import metric
from tipcflow.domain.run_documents import MergeBaseDocument
from tipcflow.domain.triggers import SIDE_RUNS
from tipcflow.execute.alerts.cause import group_of
from tipcflow.execute.node.file_lock import locked

if TYPE_CHECKING:
    from tipcflow.store import Store

_DAY_S = 86_400.0
# Other runs store their alerts in less than a second.
LOCK_S = 60.0
# An alert that ended longer ago is another regression when its metrics become worse again.
REOPENS_FOR_S = 30 * _DAY_S
# An expected or invalid alert covers a metric up to this multiple of its size at the time of the decision.
GROWTH = 2.0
_SETTLED = (AlertState.EXPECTED, AlertState.INVALID)
_GREEN = (Status.PASS, Status.IMPROVEMENT)
# Runs whose checks judged all metrics. A failed run may report a metric, but ends no alert.
_JUDGED = (Status.REGRESSION, Status.UNCONFIRMED, *_GREEN)
_MAY_REPORT = (*_JUDGED, Status.FAILED)


@dataclass(frozen=True)
class _Judged:
    """The state of a run's metrics.

    Attributes:
        worse: the metrics that it reports as a regression.
        green: the metrics whose every result passed.
    """

    run: Run
    worse: tuple[Moved, ...]
    green: frozenset[MetricId]


def track_alone(store: "Store", home: Path, run: Run, results: Iterable[CheckResult]) -> list[Alert]:
    """Call `track_alerts` while no other run does: runs that end together would each open an alert.

    Args:
        home: folder of the lock file, for a database without locks of its own (SQLite).

    Raises:
        InfraError: another run holds the lock for longer than `LOCK_S`.
    """
    with locked(home / ".alerts.lock", seconds=LOCK_S), store.locks.held("alerts", seconds=LOCK_S):
        return track_alerts(store, run, results)


def track_alerts(store: "Store", run: Run, results: Iterable[CheckResult]) -> list[Alert]:
    """Update the alerts of a run's chain, mode and environment class; return those that the run reports.

    Only confirmed regressions open or extend an alert. An alert ends with a later run in which each of its metrics
    passed: a metric that was not measured, or is suspected, proves nothing. Confirm runs, runs of bisections and
    A/B comparisons, and runs of unmerged changes are ignored. A run that is judged again changes nothing.

    Args:
        run: with its final status.
        results: of its checks.
    """
    if run.status not in _MAY_REPORT or run.trigger in SIDE_RUNS or store.documents.get(run.id, MergeBaseDocument):
        return []
    judged = _judged(run, results)
    known = store.tracked_alerts.of_line(run.chain, run.mode, run.environment)
    reported = _report(store, judged, known)
    if run.status in _JUDGED:
        for alert in known:
            if alert.is_present and alert.number not in {each.number for each in reported}:
                _end(store, alert, judged)
    return reported


def _judged(run: Run, results: Iterable[CheckResult]) -> _Judged:
    worse: dict[MetricId, Moved] = {}
    statuses: dict[MetricId, list[Status]] = {}
    for result in results:
        if not result.metric:
            continue
        moved = _moved(run, result)
        statuses.setdefault(moved.id, []).append(result.status)
        if result.status is Status.REGRESSION and result.gating:
            worse.setdefault(moved.id, moved)
    green = frozenset(key for key, known in statuses.items() if all(status in _GREEN for status in known))
    return _Judged(run, tuple(worse.values()), green)


def _moved(run: Run, result: CheckResult) -> Moved:
    return Moved(
        check=result.check,
        step=without_repeat(result.step),
        leg=result.leg,
        metric=result.metric,
        ratio=result.measured.ratio,
        first=run.id,
        reason=result.reason,
    )


def _report(store: "Store", judged: _Judged, known: Sequence[Alert]) -> list[Alert]:
    """Attach the run's regressions to alerts; what belongs to none becomes one new alert."""
    own: dict[int, list[Moved]] = {}
    new: list[Moved] = []
    alerts = {alert.number: alert for alert in known}
    for moved in judged.worse:
        alert = _alert_of(store, moved, judged.run, known)
        if alert is None:
            new.append(moved)
        else:
            own.setdefault(alert.number, []).append(moved)
    reported = [_attach(store, alerts[number], judged.run, metrics) for number, metrics in own.items()]
    return [*reported, _open(store, judged.run, new)] if new else reported


def _alert_of(store: "Store", moved: Moved, run: Run, known: Sequence[Alert]) -> Alert | None:
    """Return the newest alert that a metric belongs to.

    An alert with the metric, if its level has not returned, or returned at most 30 days ago and it is fixed.
    Otherwise an open one that has a metric of the same step, leg and family, such as `ips` and `batch_cost`, or
    whose first run tested the same framework build and suite content: nothing has changed since.
    """
    for alert in known:
        if alert.has(moved.id) and (_holds(alert, moved) if alert.is_present else _reopens(alert, run)):
            return alert
    for alert in known:
        if not (alert.is_present and alert.is_open):
            continue
        if _is_related(alert, moved) or _tested(store.runs.get(alert.first)) == _tested(run):
            return alert
    return None


def _holds(alert: Alert, moved: Moved) -> bool:
    """Whether an open alert covers a metric. An alert marked expected or invalid covers changes up to its size."""
    if alert.state not in _SETTLED:
        return True
    known = next(each for each in alert.metrics if each.id == moved.id)
    if known.ratio is None or moved.ratio is None or min(known.ratio, moved.ratio) <= 0:
        return known.ratio == moved.ratio
    return abs(log(moved.ratio)) <= GROWTH * abs(log(known.ratio))


def _reopens(alert: Alert, run: Run) -> bool:
    ended = alert.gone_at if alert.gone_at is not None else alert.state_at
    return alert.state is AlertState.FIXED and run.created_at - ended <= REOPENS_FOR_S


def _is_related(alert: Alert, moved: Moved) -> bool:
    family = metric(moved.metric).family
    return any(
        (each.step, each.leg) == (moved.step, moved.leg) and metric(each.metric).family == family
        for each in alert.metrics
    )


def _tested(run: Run) -> tuple[str, str, str]:
    return (run.framework, run.suite_commit, run.suite_sha256)


def _attach(store: "Store", alert: Alert, run: Run, metrics: Sequence[Moved]) -> Alert:
    now = store.now()
    # A user may call it fixed while a run is under way that began before the fix.
    still_there = alert.state is AlertState.FIXED and run.created_at > alert.state_at
    is_reopened = still_there or not alert.is_present
    fields: dict[str, Any] = {"runs": alert.runs + 1}
    if alert.state not in _SETTLED:
        fields["metrics"] = _merged(alert.metrics, metrics)
    if run.created_at >= alert.newest_at:
        fields |= {"newest": run.id, "newest_at": run.created_at}
    if is_reopened:
        fields |= {"state": AlertState.NEW, "state_at": now, "gone": "", "gone_at": None}
    kind = EventKind.REOPENED if is_reopened else EventKind.SEEN
    event = AlertEvent(alert=alert.number, at=now, who=TIPCFLOW, kind=kind, run=run.id, text=_reason(metrics))
    return store.tracked_alerts.change(event, **fields)


def _merged(known: Sequence[Moved], now: Sequence[Moved]) -> tuple[Moved, ...]:
    newest = {each.id: each for each in now}
    kept = [
        newest.pop(each.id).model_copy(update={"first": each.first}) if each.id in newest else each
        for each in known
    ]
    return (*kept, *newest.values())


def _open(store: "Store", run: Run, metrics: Sequence[Moved]) -> Alert:
    good = store.tracked_alerts.last_good(run)
    suspects: list[str] = []
    if good is not None:
        before, now = (origin_of(each, store.nodes.facts(each.id)) for each in (good, run))
        suspects = changes(before, now)
    alert = Alert(
        chain=run.chain,
        suite=run.suite,
        mode=run.mode,
        environment=run.environment,
        state_at=store.now(),
        first=run.id,
        first_at=run.created_at,
        last_good="" if good is None else good.id,
        suspects=tuple(suspects),
        metrics=tuple(metrics),
        newest=run.id,
        newest_at=run.created_at,
    )
    grouped = alert.model_copy(update={"group": group_of(store, alert)})
    return store.tracked_alerts.open(grouped, _reason(metrics), at=store.now())


def _end(store: "Store", alert: Alert, judged: _Judged) -> None:
    run = judged.run
    if run.created_at <= alert.newest_at or not {each.id for each in alert.metrics} <= judged.green:
        return
    now = store.now()
    fields: dict[str, Any] = {"gone": run.id, "gone_at": run.created_at}
    who, text = TIPCFLOW, "the level returned"
    if alert.is_open:
        decision = _accepted(store, alert)
        if decision:
            who, text = decision
        state = AlertState.EXPECTED if decision else AlertState.FIXED
        fields |= {"state": state, "state_at": now}
    event = AlertEvent(alert=alert.number, at=now, who=who, kind=EventKind.GONE, run=run.id, text=text)
    store.tracked_alerts.change(event, **fields)


def _accepted(store: "Store", alert: Alert) -> tuple[str, str] | None:
    """Return (author, reason) of the newest decision about the baseline of one of its metrics since its begin."""
    line = (alert.chain, alert.mode, alert.environment)
    for decision in reversed(store.alerts.decisions(alert.first_at)):
        about = (without_repeat(decision.step), decision.leg, decision.metric)
        if (decision.chain, decision.mode, decision.environment) == line and alert.has(about):
            return decision.who, f"baseline accepted: {decision.why}"
    return None


def _reason(metrics: Sequence[Moved]) -> str:
    more = f"; {len(metrics) - 1} more metrics" if len(metrics) > 1 else ""
    return f"{metrics[0].check}: {metrics[0].reason}{more}"
