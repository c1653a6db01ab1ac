"""Messages about alerts: opened, reopened and ended ones, those with one cause together."""

from collections.abc import Sequence
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from tipcflow.domain.alert.entry import TIPCFLOW, Alert, AlertEvent
from tipcflow.domain.numbers.units import counted, utc_minute
from tipcflow.report.overview.alerts import shared_changes
from tipcflow.report.text.plain import one_line

# More chains with the same cause are counted, not listed: the page of the alert has all of them.
CHAINS = 5


class NewsKind(StrEnum):
    """What happened to an alert."""

    NEW = "new"
    REOPENED = "reopened"
    ENDED = "ended"


class AlertNews(BaseModel):
    """Alerts with one cause to which the same happened.

    Attributes:
        alerts: the oldest first.
        events: of the same alerts, in their order: what opened, reopened or ended them.
    """

    model_config = ConfigDict(frozen=True)

    kind: NewsKind
    alerts: tuple[Alert, ...]
    events: tuple[AlertEvent, ...]

    @property
    def number(self) -> int:
        """The number of the oldest alert."""
        return self.alerts[0].number

    @property
    def subject(self) -> str:
        """What happened, as a phrase."""
        return f"{self._head}: {self._chains}"

    @property
    def _head(self) -> str:
        name = f"alert {self.number}"
        return f"{name} went away" if self.kind is NewsKind.ENDED else f"{self.kind.value} {name}"

    @property
    def _chains(self) -> str:
        names = {alert.chain for alert in self.alerts}
        return self.alerts[0].chain if len(names) == 1 else counted(len(names), "chain")

    @property
    def places(self) -> set[tuple[str, str, str]]:
        """Chain, mode and environment class of each alert."""
        return {(alert.chain, alert.mode, alert.environment) for alert in self.alerts}

    def lines(self, team: str) -> list[str]:
        """Return the news as text.

        Args:
            team: the owner of alerts without an owner.
        """
        if len(self.alerts) == 1:
            (alert,) = self.alerts
            head, what = f"{self._head}: {_place(alert)}", [f"  {alert.about}"]
        else:
            head = f"{self._head}: {self._chains}, {counted(len(self.alerts), 'alert')} with the same cause"
            what = [f"  {_place(alert)}: {alert.about}" for alert in self.alerts[:CHAINS]]
            more = len(self.alerts) - CHAINS
            what += [f"  and {more} more, see the page of the alert"] if more > 0 else []
        return [head, *what, *(self._end() if self.kind is NewsKind.ENDED else self._begin(team))]

    def _begin(self, team: str) -> list[str]:
        first = min(self.alerts, key=lambda alert: alert.first_at)
        last = f"; last pass {first.last_good}" if first.last_good else "; never passed before"
        lines = [f"  reason: {one_line(self.events[0].text)}"]
        lines.append(f"  since {utc_minute(first.first_at)}, run {first.first}{last}")
        if self.kind is NewsKind.REOPENED:
            lines.append(f"  back since run {self.events[0].run}")
        suspects = shared_changes(self.alerts)
        lines += [f"  changed since: {', '.join(suspects)}"] if suspects else []
        if first.group not in {alert.number for alert in self.alerts}:
            lines.append(f"  same cause as alert {first.group}")
        owners = dict.fromkeys(alert.owner or team for alert in self.alerts)
        return [*lines, f"  belongs to: {', '.join(owners)}"]

    def _end(self) -> list[str]:
        first = min(self.alerts, key=lambda alert: alert.first_at)
        event = self.events[0]
        decided = "" if event.who == TIPCFLOW else f" ({event.who}: {one_line(event.text)})"
        return [
            f"  was worse since {utc_minute(first.first_at)} (run {first.first}), "
            f"the level returned in run {event.run}{decided}"
        ]


def alerts_subject(news: Sequence[AlertNews]) -> list[str]:
    """Return the parts of a subject that count the news by kind."""
    counts = {kind: sum(each.kind is kind for each in news) for kind in NewsKind}
    parts = [
        counted(counts[kind], f"{kind.value} alert") for kind in (NewsKind.NEW, NewsKind.REOPENED) if counts[kind]
    ]
    ended = counts[NewsKind.ENDED]
    return [*parts, *([f"{counted(ended, 'alert')} went away"] if ended else [])]


def _place(alert: Alert) -> str:
    return f"{alert.chain} ({alert.mode} on {alert.environment or 'an unknown environment'})"
