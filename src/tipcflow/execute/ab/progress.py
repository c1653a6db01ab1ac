"""State of an A/B comparison, computed from the runs so far: which pair is next, or why none is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcflow.ab import Outcome, Ratio, outcome_of, ratio_of
from tipcflow.domain import ConfigError, InfraError, MetricKey, Run, Status
from tipcflow.domain.errors import as_clause
from tipcflow.domain.numbers.units import limit
from tipcflow.execute.ab.metrics import better_of, values_of

if TYPE_CHECKING:
    from tipcflow.store import Store

WORKS = frozenset({Status.PASS, Status.IMPROVEMENT, Status.REGRESSION, Status.UNCONFIRMED})
_INFRA_TRIES = 2


@dataclass(frozen=True)
class Tried:
    """A pair whose runs have ended, whether or not it counts.

    Attributes:
        order: labels of the sides in the order of their runs.
        runs: the runs; only the first one if it was stopped or broken, so that the second one did not start.
    """

    order: tuple[str, str]
    runs: tuple[Run, ...]

    @property
    def is_stopped(self) -> bool:
        """Whether a user stopped a run."""
        return any(run.status is Status.CANCELLED for run in self.runs)

    @property
    def broken(self) -> Run | None:
        """The last run that did not end for reasons of the cluster; None if the pair is usable."""
        lost = [run for run in self.runs if run.status is Status.INFRA_FAILURE]
        return lost[-1] if lost else None

    @property
    def is_usable(self) -> bool:
        """Whether both runs measured their sides."""
        return not self.is_stopped and self.broken is None

    def run_of(self, label: str) -> Run:
        """Return the run of a side."""
        return self.runs[self.order.index(label)]


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
        return sum(run.duration_s or 0.0 for run in (self.a, self.b))


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
    def status(self) -> Status:
        """Status for CI: `failed` or `regression` if B is worse, `unconfirmed` if that is undecided."""
        if self.failed == "B":
            return Status.FAILED
        if any(compared.outcome is Outcome.WORSE for compared in self.compared):
            return Status.REGRESSION
        return Status.PASS if self.is_decided and not self.missing else Status.UNCONFIRMED

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


def next_order(tried: Sequence[Tried]) -> tuple[str, str]:
    """Return the labels of the next pair's sides in the order of their runs.

    The order is A B, B A, A B …: what drifts with time, such as a node that becomes warmer, affects both sides
    alike. A pair that is repeated has the order of the broken one.
    """
    return ("A", "B") if sum(each.is_usable for each in tried) % 2 == 0 else ("B", "A")


def progress_of(
    store: "Store",
    names: tuple[str, ...],
    limits: Limits,
    tried: Sequence[Tried],
    spent_s: float,
    *,
    since: int = 0,
) -> Progress:
    """Compare all pairs, and decide whether another pair follows: `why` is '' then.

    Args:
        names: metrics that are compared; none for all speeds.
        tried: all pairs in the order of their runs.
        spent_s: duration of the comparison so far.
        since: number of pairs before a user resumed the comparison; stopped and broken ones of them do not count.

    Raises:
        InfraError: two pairs in a row did not end for reasons of the cluster.
        ConfigError: no run of either side has a metric.
    """
    usable = [each for each in tried if each.is_usable]
    pairs = tuple(
        Pair(number - limits.warm_ups, each.order[0], each.run_of("A"), each.run_of("B"))
        for number, each in enumerate(usable, 1)
    )
    stopped = any(each.is_stopped for each in tried[since:])
    if not stopped:
        _refuse_broken(tried[since:])
    return _state(store, names, limits, pairs, "stopped by a user" if stopped else "", spent_s)


def _refuse_broken(tried: Sequence[Tried]) -> None:
    lost = [each.broken for each in tried[-_INFRA_TRIES:] if each.broken]
    if len(lost) >= _INFRA_TRIES:
        last = f"run {lost[-1].id}: {as_clause(lost[-1].reason)}"
        raise InfraError(f"{len(lost)} pairs in a row had an infra_failure; the last one, {last}")


def _state(
    store: "Store", names: tuple[str, ...], limits: Limits, pairs: tuple[Pair, ...], why: str, spent_s: float
) -> Progress:
    if failed := _failed(pairs):
        label, run = failed
        status = run.status.value if run.status else ""
        return Progress(pairs, failed=label, why=f"run {run.id} of {label} is {status}: {as_clause(run.reason)}")
    compared, missing = _compare(store, names, limits, pairs)
    progress = Progress(pairs, compared, missing)
    return Progress(pairs, compared, missing, why=why or _end(limits, progress, spent_s))


def _end(limits: Limits, progress: Progress, spent_s: float) -> str:
    counted = progress.counted
    if limits.pairs:
        return f"{counted} pairs are done" if counted >= limits.pairs else _spent(limits, spent_s)
    if progress.is_decided:
        return "every metric is decided"
    if counted >= limits.most_pairs:
        return f"the limit of {limits.most_pairs} pairs is reached"
    return _spent(limits, spent_s)


def _spent(limits: Limits, spent_s: float) -> str:
    budget_s = limits.budget_s
    return f"the budget of {limit(budget_s)} is used up" if budget_s and spent_s >= budget_s else ""


def _failed(pairs: tuple[Pair, ...]) -> tuple[str, Run] | None:
    """Return the first failed run and its side; of a pair in which both fail, that of A."""
    for pair in pairs:
        for label, run in (("A", pair.a), ("B", pair.b)):
            if run.status not in WORKS:
                return label, run
    return None


def _compare(
    store: "Store", names: tuple[str, ...], limits: Limits, pairs: tuple[Pair, ...]
) -> tuple[tuple[Compared, ...], tuple[MetricKey, ...]]:
    """Return the metrics that all counted runs of both sides have, compared, and those that some run lacks."""
    counted = [pair for pair in pairs if pair.number > 0]
    values = [(values_of(store, pair.a, names), values_of(store, pair.b, names)) for pair in counted or pairs[-1:]]
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
        ratio = ratio_of(in_pairs, limits.error)
        outcome = outcome_of(ratio, better_of(key), limits.margin)
        compared.append(Compared(key, in_pairs, ratio, outcome))
    return tuple(compared), tuple(key for key in known if key not in common)
