"""Loads the overview of changed metrics."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tipcflow.domain import Status
from tipcflow.domain.numbers.changes import Origin, changes
from tipcflow.domain.run.names import ChainName
from tipcflow.report.overview.changes import ACCEPTED, BETTER, OPEN, OVER, WORSE, Change, Changes, make_changes
from tipcflow.report.overview.today import DAY_S

if TYPE_CHECKING:
    from tipcflow.store import Store
    from tipcflow.store.queries.alerts import Alert, Decision, Judged

# A change began in the period if the judged run before its first alert has none: how far back that run may be.
LOOKBACK_DAYS = 35.0
_Key = tuple[str, str, str, str]
_Line = tuple[str, str, str]


@dataclass(frozen=True)
class Wanted:
    """Which changes an overview includes; '' includes all.

    Attributes:
        chain: part of a chain's name, in any case.
        direction: `worse` or `better`; state: `open`, `accepted` or `over`.
    """

    suite: str = ""
    chain: str = ""
    direction: str = ""
    state: str = ""

    def includes(self, chain: str) -> bool:
        """Whether a chain is included."""
        return self.chain.lower() in chain.lower() and self.suite in ("", ChainName.suite_of(chain))

    def shows(self, change: Change) -> bool:
        """Whether a change is included."""
        return self.direction in ("", change.direction) and self.state in ("", change.state)


@dataclass
class _Episode:
    """Alerts about one metric in one direction in consecutive judged runs of a line."""

    key: _Key
    before: "Judged | None"
    first: "Judged"
    alert: "Alert"
    newest: "Judged"
    status: Status
    runs: int = 1
    is_over: bool = False


@dataclass
class _LineHistory:
    """The episodes of a line, found run by run."""

    episodes: list[_Episode] = field(default_factory=list)
    going: dict[_Key, _Episode] = field(default_factory=dict)
    before: "Judged | None" = None

    def add(self, run: "Judged", alerts: Mapping[_Key, "Alert"]) -> None:
        """Add the next run of the line: its alerts begin, continue or end episodes."""
        if not (alerts or self.going):
            self.before = run
            return
        for key, alert in alerts.items():
            episode = self.going.get(key)
            if episode is None:
                self.going[key] = _Episode(key, self.before, run, alert, run, alert.status)
                self.episodes.append(self.going[key])
            else:
                episode.newest, episode.runs = run, episode.runs + 1
                episode.status = max(episode.status, alert.status, key=lambda status: status.severity)
        # A failed run may have no value of the metric at all.
        if run.status is not Status.FAILED:
            for key in [key for key in self.going if key not in alerts]:
                self.going.pop(key).is_over = True
        self.before = run


def load_changes(
    store: "Store", wanted: Wanted = Wanted(), *, days: float = 30, now: float | None = None
) -> Changes:
    """Return the metrics that became worse or better in the last N days.

    A change begins with the first run of a chain, mode and environment class that reports it after a judged run
    that does not.

    Args:
        now: seconds since the epoch; None for the database's clock.
    """
    now = store.now() if now is None else now
    since = now - days * DAY_S
    oldest = since - LOOKBACK_DAYS * DAY_S
    alerts: dict[str, dict[_Key, Alert]] = defaultdict(dict)
    for alert in store.alerts.since(oldest):
        key = (alert.step, alert.leg, alert.metric, BETTER if alert.status is Status.IMPROVEMENT else WORSE)
        known = alerts[alert.run].get(key)
        if known is None or alert.status.severity > known.status.severity:
            alerts[alert.run][key] = alert
    chains = {chain for chain in store.alerts.chains_of(alerts).values() if wanted.includes(chain)}
    lines: dict[_Line, _LineHistory] = defaultdict(_LineHistory)
    for run in store.alerts.judged(chains, oldest):
        lines[run.chain, run.mode, run.environment].add(run, alerts.get(run.id, {}))
    begun = (episode for line in lines.values() for episode in line.episodes if episode.first.created_at >= since)
    made = _changes(begun, store.alerts.decisions(oldest))
    return make_changes((change for change in made if wanted.shows(change)), at=now, days=days)


def _changes(episodes: Iterable[_Episode], decided: Sequence["Decision"]) -> Iterator[Change]:
    by_metric: dict[tuple[str, ...], list[Decision]] = defaultdict(list)
    for each in decided:
        by_metric[each.chain, each.mode, each.environment, each.step, each.leg, each.metric].append(each)
    for episode in episodes:
        run, (step, leg, metric, direction) = episode.first, episode.key
        of_metric = by_metric.get((run.chain, run.mode, run.environment, step, leg, metric), ())
        decision = next((each for each in reversed(of_metric) if each.accepted_at >= run.created_at), None)
        before = episode.before
        yield Change(
            chain=run.chain,
            suite=run.suite,
            mode=run.mode,
            cluster=run.cluster,
            environment=run.environment,
            step=step,
            leg=leg,
            metric=metric,
            direction=direction,  # type: ignore[arg-type]
            status=episode.status,
            ratio=episode.alert.ratio,
            reason=episode.alert.reason,
            first=run.id,
            first_at=run.created_at,
            last_good="" if before is None else before.id,
            last_good_at=None if before is None else before.created_at,
            newest=episode.newest.id,
            runs=episode.runs,
            state=ACCEPTED if decision else OVER if episode.is_over else OPEN,  # type: ignore[arg-type]
            who=decision.who if decision else "",
            why=decision.why if decision else "",
            changed=() if before is None else tuple(changes(_origin(before), _origin(run))),
        )


def _origin(run: "Judged") -> Origin:
    return Origin(framework=run.framework, suite_commit=run.suite_commit, suite_sha256=run.suite_sha256)
