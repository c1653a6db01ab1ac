"""The change-point detector's state after earlier runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from tipcflow.check.detect import Alert, Gate, Observed


@dataclass
class State:
    """The detector after some runs.

    Attributes:
        gate: the detector.
        start, end: the accepted runs of the level, as a slice; `end` is None without a later change for the worse.
    """

    gate: Gate
    start: int = 0
    end: int | None = None
    values: list[float] = field(default_factory=list)
    seen: list[Observed] = field(default_factory=list)

    def add(self, entry: Observed, floor: float) -> None:
        """Judge one more run. The values of its confirm runs are observations, requested or not."""
        at, before = len(self.seen), self.gate.requests
        change = self.gate.judge(at, entry.value, lambda: entry.confirm, more=entry.more)
        if entry.confirm is not None and self.gate.requests == before:
            for again in (entry.confirm, *entry.more):
                self.gate.add(at, again)
        self.seen.append(entry)
        if entry.accepted:
            self.values.append(entry.value)
        if change is not None and self.values:
            self._start(change, floor)

    def _start(self, change: Alert, floor: float) -> None:
        since = min(sum(entry.accepted for entry in self.seen[: change.since]), len(self.values) - 1)
        if change.direction == "worse":
            self.end = since if self.end is None else self.end
        elif self.end is None or self._back(since, floor):
            self.start, self.end = since, None

    def _back(self, since: int, floor: float) -> bool:
        """Whether the last runs are at least as good as the level."""
        now, before = median(self.values[since:]), median(self.values[self.start : self.end])
        worse = (before - now) if self.gate.higher_is_better else (now - before)
        return worse <= floor * abs(before)


class Replay:
    """Judges earlier runs with a detector; a list that continues the last one is not judged again."""

    def __init__(self) -> None:
        self._state: State | None = None

    def after(self, runs: Sequence[Observed], gate: Gate, floor: float) -> State:
        """Return the state after these runs.

        Args:
            gate: a new detector, used unless the runs continue those of the last call.
            floor: the smallest relative change that counts.
        """
        state = self._state
        if state is None or list(runs[: len(state.seen)]) != state.seen:
            state = State(gate)
        for entry in runs[len(state.seen) :]:
            state.add(entry, floor)
        self._state = state
        return state
