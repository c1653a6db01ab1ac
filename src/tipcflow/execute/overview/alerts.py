"""Loads alerts, and one alert with its history."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcflow.domain.alert.entry import Alert
from tipcflow.domain.run.bisection import BisectionDocument
from tipcflow.domain.run.names import FrameworkVersion
from tipcflow.domain.run.notices import IssuesDocument
from tipcflow.report.overview.alerts import OPEN, AlertDetail, Alerts, make_alerts, states_of
from tipcflow.report.overview.today import DAY_S

if TYPE_CHECKING:
    from tipcflow.domain import Run
    from tipcflow.store import Store


@dataclass(frozen=True)
class WantedAlerts:
    """Which alerts an overview includes; '' includes all.

    Attributes:
        chain: part of a chain's name, in any case.
        state: one of `report.overview.alerts.STATES`.
    """

    suite: str = ""
    chain: str = ""
    owner: str = ""
    state: str = OPEN

    def includes(self, alert: Alert) -> bool:
        """Whether an alert is included."""
        exact = ((self.suite, alert.suite), (self.owner, alert.owner))
        return self.chain.lower() in alert.chain.lower() and all(wanted in ("", value) for wanted, value in exact)


def load_alerts(
    store: "Store", wanted: WantedAlerts = WantedAlerts(), *, days: float = 0, now: float | None = None
) -> Alerts:
    """Return alerts by cause.

    Args:
        days: only those that a run of the last N days reports; 0 for all.
        now: seconds since the epoch; None for the database's clock.
    """
    now = store.now() if now is None else now
    since = now - days * DAY_S if days else None
    listed = store.tracked_alerts.all(since=since, states=states_of(wanted.state))
    return make_alerts([alert for alert in listed if wanted.includes(alert)], at=now)


def load_alert(store: "Store", number: int) -> AlertDetail:
    """Return one alert with its history.

    Raises:
        ConfigError: there is none with that number.
    """
    alert = store.tracked_alerts.get(number)
    others = [each for each in store.tracked_alerts.of_group(alert.group) if each.number != number]
    return AlertDetail(
        alert=alert,
        events=tuple(store.tracked_alerts.events(number)),
        others=tuple(others),
        search=search_of(store, alert),
        issues=issues_of(store, alert),
        bisection=bisection_of(store, [alert, *reversed(others)]),
    )


def bisection_of(store: "Store", alerts: Sequence[Alert]) -> BisectionDocument | None:
    """Return the result of the first of the alerts that has one."""
    results = (store.documents.get(alert.first, BisectionDocument) for alert in alerts)
    return next((result for result in results if result is not None), None)


def issues_of(store: "Store", alert: Alert) -> dict[str, str]:
    """Return repository -> address of the issue about the cause of an alert."""
    first = store.tracked_alerts.get(alert.group).first
    document = store.documents.get(first, IssuesDocument)
    return {} if document is None else {name: issue.url for name, issue in sorted(document.root.items())}


def search_of(store: "Store", alert: Alert) -> str:
    """Return the command that searches the commit, or compares the two builds; '' if neither is known."""
    runs = store.runs.known([alert.first, alert.last_good])
    bad, good = runs.get(alert.first), runs.get(alert.last_good)
    plan = store.plans.get_or_none(alert.first)
    if bad is None or good is None or plan is None:
        return ""
    where = ["--suite", bad.suite, "--mode", bad.mode, "--cluster", bad.cluster]
    if _commit(good) and _commit(bad) and _commit(good) != _commit(bad):
        range_ = ["--good", _commit(good), "--bad", _commit(bad)]
        moved = alert.metrics[0]
        place = [*(["--step", moved.step] if moved.step else []), *(["--leg", moved.leg] if moved.leg else [])]
        command = ["tipcflow", "bisect", plan.params_file, moved.metric, *range_, *place, *where]
    elif good.framework and bad.framework and good.framework != bad.framework:
        builds = ["--framework-a", _version(good), "--framework-b", _version(bad)]
        command = ["tipcflow", "ab", plan.params_file, *builds, *where]
    else:
        return ""
    return shlex.join(command)


def _commit(run: "Run") -> str:
    """Return the commit; '' with local changes, which no ref has."""
    return "" if "+" in run.suite_commit else run.suite_commit[:12]


def _version(run: "Run") -> str:
    return FrameworkVersion.parse(run.framework).requirement
