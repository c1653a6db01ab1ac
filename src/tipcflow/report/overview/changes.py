"""Changes: metrics that became worse or better, by the change of framework and suite with which they began."""

from collections.abc import Iterable, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from tipcflow.domain import Status
from tipcflow.domain.numbers.changes import ChangeKind, read_changes
from tipcflow.domain.numbers.units import counted, percent_change, plural

WORSE, BETTER = "worse", "better"
OPEN, ACCEPTED, OVER = "open", "accepted", "over"
# State -> its meaning for readers.
STATES = {
    OPEN: "the newest judged run still reports it",
    ACCEPTED: "a user accepted, pinned or reset the baseline since",
    OVER: "a later judged run no longer reports it: fixed, or the new level has become the baseline",
}
# Titles of groups without a known change.
SAME, FIRST = "framework and suite are the same", "no earlier run to compare with"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class Change(_Model):
    """A metric of a chain that became worse or better.

    Attributes:
        status: `regression` (confirmed), `unconfirmed` or `improvement`; the worst one of its runs.
        ratio: value / baseline of the first run that reports it; None if unknown.
        last_good, last_good_at: the judged run before that one; '' and None if there is none.
        newest: the newest run that reports it, of `runs` runs.
        who, why: of the user's decision, if the state is `accepted`.
    """

    chain: str
    suite: str
    mode: str
    cluster: str
    environment: str
    step: str
    leg: str
    metric: str
    direction: Literal["worse", "better"]
    status: Status
    ratio: float | None
    reason: str
    first: str
    first_at: float
    last_good: str
    last_good_at: float | None
    newest: str
    runs: int
    state: Literal["open", "accepted", "over"]
    who: str = ""
    why: str = ""
    changed: tuple[str, ...] = ()

    @property
    def percent(self) -> float | None:
        """The change of the value in percent of the baseline; None if unknown."""
        return percent_change(self.ratio)


class ChangeGroup(_Model):
    """The changes that began with one change of framework and suite.

    Attributes:
        title: the change as text.
        suite: the suite whose commit changed; '' if only the framework changed, or nothing.
        first_at, last_at: start of the first and of the last run that first reported one.
        worse, better: number of chains; `still` counts those with an open change for the worse.
    """

    title: str
    suite: str
    first_at: float
    last_at: float
    worse: int
    better: int
    still: int
    changes: tuple[Change, ...]


class Changes(_Model):
    """Everything that the page and the command show.

    Attributes:
        days: the period in which a change began.
    """

    schema_version: int = 1
    at: float
    days: float
    sentence: str
    groups: tuple[ChangeGroup, ...]

    @property
    def rows(self) -> tuple[Change, ...]:
        """All changes, in the order of their groups."""
        return tuple(change for group in self.groups for change in group.changes)


def make_changes(changes: Iterable[Change], *, at: float, days: float) -> Changes:
    """Return the changes in groups, the worst first."""
    by_origin: dict[tuple[str, str], list[Change]] = {}
    for change in changes:
        by_origin.setdefault((_title(change), _suite(change)), []).append(change)
    groups = [_group(title, suite, members) for (title, suite), members in by_origin.items()]
    groups.sort(key=lambda group: (-group.still, -group.worse, -group.last_at, group.title, group.suite))
    return Changes(at=at, days=days, sentence=_sentence(groups, days), groups=tuple(groups))


def _title(change: Change) -> str:
    return ", ".join(change.changed) or (SAME if change.last_good else FIRST)


def _suite(change: Change) -> str:
    kinds = {difference.kind for difference in read_changes(change.changed)}
    return change.suite if kinds & {ChangeKind.SUITE, ChangeKind.SUITE_CONTENT} else ""


def _group(title: str, suite: str, members: Sequence[Change]) -> ChangeGroup:
    worse = [change for change in members if change.direction == WORSE]
    return ChangeGroup(
        title=title,
        suite=suite,
        first_at=min(change.first_at for change in members),
        last_at=max(change.first_at for change in members),
        worse=_chains(worse),
        better=_chains(change for change in members if change.direction == BETTER),
        still=_chains(change for change in worse if change.state == OPEN),
        changes=tuple(sorted(members, key=_worst)),
    )


def _chains(changes: Iterable[Change]) -> int:
    return len({change.chain for change in changes})


def _worst(change: Change) -> tuple[bool, bool, float, float, str, str, str]:
    size = abs(change.percent or 0.0)
    is_over = change.state != OPEN
    name = (change.chain, change.metric, change.environment)
    return (change.direction == BETTER, is_over, -change.status.severity, -size, *name)


def _sentence(groups: Sequence[ChangeGroup], days: float) -> str:
    changes = [change for group in groups for change in group.changes]
    worse = [change for change in changes if change.direction == WORSE]
    still, chains = _chains(change for change in worse if change.state == OPEN), _chains(worse)
    better = _chains(change for change in changes if change.direction == BETTER)
    period = f"in the last {days:g} {plural(days, 'day')}"
    if not changes:
        return f"no metric changed {period}"
    ranges = sum(group.worse > 0 for group in groups)
    parts = []
    if worse:
        where = f" with {counted(ranges, 'change')} of framework or suite"
        parts.append(f"{counted(chains, 'chain')} became worse{where} ({still} still worse)")
    if better:
        parts.append(f"{counted(better, 'chain')} became better")
    return f"{', '.join(parts)} {period}"
