"""An alert: one regression of a chain, with its metrics, runs, suspects, owner and state (ADR 27)."""

from enum import StrEnum

from tipcflow.domain.base import Frozen
from tipcflow.domain.numbers.units import first_names, percent, percent_change

# Author of changes that no user made.
TIPCFLOW = "tipcflow"
# (step without its repeat, leg, metric)
MetricId = tuple[str, str, str]


class AlertState(StrEnum):
    """What users know about an alert."""

    NEW = "new"
    ACKNOWLEDGED = "acknowledged"
    EXPECTED = "expected"
    FIXED = "fixed"
    INVALID = "invalid"


# State -> its meaning for readers.
MEANINGS = {
    AlertState.NEW: "no user has decided",
    AlertState.ACKNOWLEDGED: "a user works on it",
    AlertState.EXPECTED: "the change is intended, or the baseline was accepted",
    AlertState.FIXED: "the level returned, or a user fixed the cause",
    AlertState.INVALID: "not a regression of the chain",
}
OPEN_STATES = (AlertState.NEW, AlertState.ACKNOWLEDGED)


class EventKind(StrEnum):
    """What happened to an alert."""

    OPENED = "opened"
    SEEN = "seen"
    GONE = "gone"
    REOPENED = "reopened"
    STATE = "state"
    OWNER = "owner"
    COMMENT = "comment"
    BISECTED = "bisected"


class Moved(Frozen):
    """A metric that became worse.

    Attributes:
        check: the check that reports it.
        ratio: value / baseline in the newest run that reports it; None if the baseline is 0.
        first: the first run that reports it; `reason` of the newest one.
    """

    check: str
    step: str = ""
    leg: str = ""
    metric: str
    ratio: float | None = None
    first: str
    reason: str = ""

    @property
    def id(self) -> MetricId:
        """Step, leg and metric."""
        return (self.step, self.leg, self.metric)

    @property
    def percent(self) -> float | None:
        """The change of the value in percent of the baseline; None if unknown."""
        return percent_change(self.ratio)


class Alert(Frozen):
    """One regression of a chain in one mode and environment class.

    Attributes:
        number: its name; 0 before it is stored.
        group: the number of the first alert with the same cause, in any chain; its own number if it is the first.
        state_at: time of the state, seconds since the epoch, like all times.
        owner: the user or team that works on it; '' without one.
        first: the first run that reports it; `first_at` is the start of that run.
        last_good: the newest green run before it; '' without one.
        suspects: what changed between these two runs, as text.
        metrics: the metrics that moved together.
        newest, newest_at: the newest run that reports it, of `runs` runs.
        gone: the run in which the level had returned; '' while it has not.
    """

    schema_version: int = 1
    number: int = 0
    group: int = 0
    chain: str
    suite: str
    mode: str
    environment: str
    state: AlertState = AlertState.NEW
    state_at: float
    owner: str = ""
    first: str
    first_at: float
    last_good: str = ""
    suspects: tuple[str, ...] = ()
    metrics: tuple[Moved, ...]
    newest: str
    newest_at: float
    runs: int = 1
    gone: str = ""
    gone_at: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether a user must still decide or work."""
        return self.state in OPEN_STATES

    @property
    def is_present(self) -> bool:
        """Whether the newest judged runs still report it."""
        return self.gone_at is None

    @property
    def about(self) -> str:
        """The metrics with their changes, the first three: `batch_cost +12.3 %, ips -11.0 % and 2 more`."""
        return first_names([_change(each) for each in self.metrics], _SHOWN)

    def has(self, metric: MetricId) -> bool:
        """Whether a metric is part of it."""
        return any(each.id == metric for each in self.metrics)


class AlertEvent(Frozen):
    """One line of an alert's history.

    Attributes:
        who: a user, or `tipcflow`.
        run: the run that caused it; '' if a user did.
        text: state, owner, comment or reason.
    """

    alert: int
    ordinal: int = 0
    at: float
    who: str
    kind: EventKind
    run: str = ""
    text: str = ""


_SHOWN = 3


def _change(moved: Moved) -> str:
    return f"{moved.metric} {percent(None if moved.ratio is None else moved.ratio - 1)}".rstrip()
