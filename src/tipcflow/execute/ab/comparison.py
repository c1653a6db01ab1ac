"""The loop of an A/B comparison: pairs of runs in turn, until each metric is decided."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcflow.ab import Outcome, Ratio, outcome_of, ratio_of
from tipcflow.domain import ConfigError, InfraError, MetricKey, Run, Status
from tipcflow.domain.numbers.limits import limit
from tipcflow.execute.ab.metrics import better_of, values_of
from tipcflow.execute.request import RunRequest

if TYPE_CHECKING:
    from tipcflow.store import Store

_WORKS = frozenset({Status.PASS, Status.IMPROVEMENT, Status.REGRESSION, Status.UNCONFIRMED})
_INFRA_TRIES = 2


@dataclass(frozen=True)
class Side:
    """One of the two versions.

    Attributes:
        label: A or B.
        name: what is tested: ref and framework.
        request: of each of its runs.
    """

    label: str
    name: str
    request: RunRequest


@dataclass(frozen=True)
class Pair:
    """Two runs, of A and of B.

    Attributes:
        number: 1 for the first one that counts; 0 and less for warm-up pairs, whose caches were cold.
        first: label of the side that ran first.
    """

    number: int
    first: str
    a: Run
    b: Run

    @property
    def seconds(self) -> float:
        """Duration of both runs."""
        return sum(run.ended_at - run.created_at for run in (self.a, self.b) if run.ended_at)


@dataclass(frozen=True)
class Compared:
    """A metric of both sides: its ratio B / A and what follows from it.

    Attributes:
        values: (A, B) per pair that counts.
    """

    key: MetricKey
    values: tuple[tuple[float, float], ...]
    ratio: Ratio
    outcome: Outcome


@dataclass(frozen=True)
class Progress:
    """State after a pair.

    Attributes:
        pairs: all that ended, with the warm-up pairs.
        compared: per metric that both sides have, in the order of the steps.
        missing: metrics that some run of one side lacks: nothing is known about them.
        failed: side with a failed run, '' for none; nothing else is compared then.
        why: why no further pair follows; '' while there is one.
    """

    pairs: tuple[Pair, ...]
    compared: tuple[Compared, ...] = ()
    missing: tuple[MetricKey, ...] = ()
    failed: str = ""
    why: str = ""

    @property
    def is_decided(self) -> bool:
        """Whether no metric is undecided."""
        return bool(self.compared) and all(each.outcome is not Outcome.UNDECIDED for each in self.compared)

    @property
    def counted(self) -> int:
        """Number of pairs that count."""
        return sum(pair.number > 0 for pair in self.pairs)


@dataclass(frozen=True)
class Limits:
    """When a comparison ends.

    Attributes:
        error: probability that the interval of a metric ever excludes its true ratio.
        margin: differences up to this share count as none.
        pairs: number of pairs; 0: until every metric is decided, at most `most_pairs`.
        warm_ups: pairs before them that do not count.
        budget_s: maximum duration, checked before each pair; 0 for none.
    """

    error: float = 0.02
    margin: float = 0.02
    pairs: int = 0
    most_pairs: int = 20
    warm_ups: int = 1
    budget_s: float = 0.0


@dataclass(frozen=True)
class Comparison:
    """A comparison of two versions of a chain.

    Attributes:
        names: metrics that are compared; none for all speeds.
        execute: runs both sides one after the other on the same nodes and returns the runs in that order.
    """

    store: "Store"
    a: Side
    b: Side
    names: tuple[str, ...]
    limits: Limits
    execute: Callable[[Side, Side], tuple[Run, Run]]

    def run(self) -> Iterator[Progress]:
        """Yield the progress after each pair; the last one has `why`.

        The order is A B, B A, A B …: what drifts with time, such as a node that becomes warmer, affects both sides
        alike.

        Raises:
            InfraError: two pairs in a row did not end for reasons of the cluster.
            ConfigError: no run of either side has a metric.
        """
        began, pairs, broken = time.monotonic(), list[Pair](), 0
        while True:
            order = (self.a, self.b) if len(pairs) % 2 == 0 else (self.b, self.a)
            runs = self.execute(*order)
            by_side = dict(zip((side.label for side in order), runs, strict=True))
            pair = Pair(len(pairs) + 1 - self.limits.warm_ups, order[0].label, by_side["A"], by_side["B"])
            if any(run.status is Status.CANCELLED for run in runs):
                yield self._state(pairs, "stopped by a user")
                return
            if lost := [run for run in runs if run.status is Status.INFRA_FAILURE]:
                broken += 1
                if broken >= _INFRA_TRIES:
                    raise InfraError(
                        f"{broken} pairs in a row had an infra_failure; the last one, run {lost[-1].id}: "
                        f"{lost[-1].reason}"
                    )
                continue
            broken = 0
            pairs.append(pair)
            progress = self._state(pairs, "", time.monotonic() - began)
            yield progress
            if progress.why:
                return

    def _state(self, pairs: list[Pair], why: str, spent_s: float = 0.0) -> Progress:
        """Compare all pairs; `why` is found if it is ''."""
        done = tuple(pairs)
        if failed := self._failed(done):
            label, run = failed
            status = run.status.value if run.status else ""
            return Progress(done, failed=label, why=f"run {run.id} of {label} is {status}: {run.reason}")
        compared, missing = self._compare(done)
        progress = Progress(done, compared, missing)
        return Progress(done, compared, missing, why=why or self._end(progress, spent_s))

    def _end(self, progress: Progress, spent_s: float) -> str:
        limits, counted = self.limits, progress.counted
        if limits.pairs:
            return f"{counted} pairs are done" if counted >= limits.pairs else self._spent(spent_s)
        if progress.is_decided:
            return "every metric is decided"
        if counted >= limits.most_pairs:
            return f"the limit of {limits.most_pairs} pairs is reached"
        return self._spent(spent_s)

    def _spent(self, spent_s: float) -> str:
        budget_s = self.limits.budget_s
        return f"the budget of {limit(budget_s)} is used up" if budget_s and spent_s >= budget_s else ""

    def _failed(self, pairs: tuple[Pair, ...]) -> tuple[str, Run] | None:
        """Return the first failed run and its side; of a pair in which both fail, that of A."""
        for pair in pairs:
            for label, run in (("A", pair.a), ("B", pair.b)):
                if run.status not in _WORKS:
                    return label, run
        return None

    def _compare(self, pairs: tuple[Pair, ...]) -> tuple[tuple[Compared, ...], tuple[MetricKey, ...]]:
        """Return the metrics that all counted runs of both sides have, compared, and those that some run lacks."""
        counted = [pair for pair in pairs if pair.number > 0]
        values = [
            (values_of(self.store, pair.a, self.names), values_of(self.store, pair.b, self.names))
            for pair in counted or pairs[-1:]
        ]
        if not values:
            return (), ()
        known = dict.fromkeys(key for a, b in values for key in (*a, *b))
        common = [key for key in known if all(key in a and key in b for a, b in values)]
        if not common:
            raise ConfigError(
                "no run of both sides has a metric that can be compared",
                key="--metric",
                found=f"runs {pairs[-1].a.id} and {pairs[-1].b.id}",
                hint="`tipcflow export RUN` writes all measurements of a run",
            )
        if not counted:
            return (), ()
        compared = []
        for key in common:
            in_pairs = tuple((a[key], b[key]) for a, b in values)
            ratio = ratio_of(in_pairs, self.limits.error)
            outcome = outcome_of(ratio, better_of(key), self.limits.margin)
            compared.append(Compared(key, in_pairs, ratio, outcome))
        return tuple(compared), tuple(key for key in known if key not in common)
