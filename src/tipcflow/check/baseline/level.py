"""Level of a metric: the earlier runs to compare with, and the change that is noise.

`tipcflow run`, `judge`, `baseline show` and `gate` all use `level_of`.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from statistics import NormalDist, median

from tipcflow.check.baseline.replayed import Replay
from tipcflow.check.baseline.trend import without_trend
from tipcflow.check.detect import Alert, Gate, Observed
from tipcflow.config.policy import MetricRule, Policy
from tipcflow.domain import plain_metric
from tipcflow.domain.numbers.metrics import metric
from tipcflow.domain.numbers.spread import MAD_TO_SIGMA

# The outliers excluded from a standard deviation must not hide that most runs are close to each other.
_MOST_MADS = 3.0
# Values that differ by less than this share are equal: sums of the same samples in another order are.
_EQUAL = 1e-12


@dataclass(frozen=True)
class Look:
    """The change-point detector's result for one more run.

    Attributes:
        alert: the change point that the run raises; None if it raises none.
        confirm_requested: whether the detector requested a confirm run, to distinguish a change from an outlier.
    """

    alert: Alert | None = None
    confirm_requested: bool = False


@dataclass(frozen=True)
class Level:
    """The earlier runs of a metric, and the level that a new run is compared with.

    A change for the better starts a new level. A change for the worse does not, because it is not accepted (an
    accepted one would start the history), and the previous level remains valid.

    Attributes:
        past: the last `history` accepted runs, oldest first.
        start, end: the runs of the level, as a slice of `past`.
        gate: the detector after `past`; None while there are fewer runs than it needs.
        worse_before: whether `past` ends with a change for the worse that is not accepted.
        floor: the smallest relative change that counts.
        z: how many robust standard deviations a change must also exceed.
        higher: whether a higher value is better.
        doubtful: positions of the runs that are not accepted among those that the detector has seen.
    """

    past: tuple[float, ...]
    start: int
    end: int
    gate: Gate | None
    worse_before: bool
    floor: float
    z: float
    higher: bool = False
    doubtful: tuple[int, ...] = ()

    @property
    def runs(self) -> tuple[float, ...]:
        """The runs of the level."""
        return self.past[self.start : self.end]

    @property
    def base(self) -> float:
        """The median of the runs of the level."""
        return median(self.runs)

    @property
    def limit(self) -> float:
        """The relative change beyond which a difference from `base` is no longer noise; `base` must not be 0."""
        return limit_of(self.steady, self.floor, self.z, base=self.base)

    @property
    def sigma(self) -> float:
        """The standard deviation of one run, without outliers and a trend for the worse, in the metric's unit."""
        return robust_sigma(self.steady)

    @cached_property
    def steady(self) -> tuple[float, ...]:
        """The runs of the level without a trend for the worse, which is not noise."""
        return without_trend(self.runs, higher_is_better=self.higher)

    @property
    def exact(self) -> bool:
        """Whether all runs of the level have the same value: the series is deterministic."""
        least, most = min(self.runs), max(self.runs)
        return most - least <= _EQUAL * max(abs(least), abs(most))

    @property
    def before_last(self) -> tuple[float, ...]:
        """The runs of the level without the last run of all."""
        return self.runs[:-1] if self.end == len(self.past) else self.runs

    def look(self, value: float, confirm: float | None, more: Sequence[float] = ()) -> Look:
        """Return the detector's result for a run after these; empty with too few runs.

        Args:
            confirm: value of this run's confirm run; None if there is none.
            more: values of its further confirm runs.
        """
        if self.gate is None or self.worse_before:
            return Look()
        gate = self.gate.copy()
        before = gate.requests
        alert = gate.judge(self.observed, value, lambda: confirm, more=more)
        if alert is not None:
            alert = replace(alert, index=len(self.past), since=self._accepted_before(alert.since))
        return Look(alert, gate.requests > before)

    @property
    def observed(self) -> int:
        """Number of runs that the detector has seen."""
        return len(self.past) + len(self.doubtful)

    def _accepted_before(self, observed: int) -> int:
        """Return how many runs of `past` came before a run that the detector saw."""
        return min(observed - bisect_left(self.doubtful, observed), len(self.past))


def level_of(
    past: Sequence[float | Observed],
    name: str,
    policy: Policy,
    *,
    higher_is_better: bool | None = None,
    rule: MetricRule | None = None,
    replay: Replay | None = None,
) -> Level:
    """Return the level of earlier runs by a policy: its window (`history`), floors and change-point detector.

    Args:
        past: medians of accepted runs, oldest first; finite. As `Observed` with the values of their confirm runs,
            and with runs that are not accepted.
        name: name of the metric, as in `numbers_of`.
        higher_is_better: overrides the metric's definition.
        rule: overrides the policy's rule of the metric.
        replay: of an earlier call; continued if these runs continue the earlier ones.
    """
    entries = _window(past, policy.history)
    values = tuple(entry.value for entry in entries if entry.accepted)
    rule = rule or policy.rule_of(name)
    floor, z = (rule and rule.floor) or policy.floor_of(name), (rule and rule.z) or policy.z
    higher = metric(plain_metric(name)).better == "higher" if higher_is_better is None else higher_is_better
    if len(values) < policy.detect.min_history:
        return Level(values, 0, len(values), None, False, floor, z, higher)
    state = (replay or Replay()).after(entries, Gate(higher, policy.gate_of(name, rule)), floor)
    doubtful = tuple(at for at, entry in enumerate(entries) if not entry.accepted)
    end, worse = (len(values), False) if state.end is None else (state.end, True)
    return Level(values, state.start, end, state.gate, worse, floor, z, higher, doubtful)


def _window(past: Sequence[float | Observed], history: int) -> list[Observed]:
    """Return the last accepted runs, and the runs between and after them that are not accepted."""
    entries = [entry if isinstance(entry, Observed) else Observed(entry) for entry in past]
    accepted = [at for at, entry in enumerate(entries) if entry.accepted]
    return entries[accepted[-history] if len(accepted) >= history else 0 :]


def limit_of(runs: Sequence[float], floor: float, z: float, *, base: float | None = None) -> float:
    """The larger of the floor and `z` robust standard deviations of the runs, relative to `base` (default: their
    median), which must not be 0."""
    return max(floor, z * robust_sigma(runs) / abs(median(runs) if base is None else base))


def robust_sigma(runs: Sequence[float]) -> float:
    """Return the standard deviation of one run, robust to outliers.

    Computed from deviations from the median without the largest tenth, at least without the largest one. With five
    runs this is far more precise than the median deviation (MAD), which is only a bound here.
    """
    base = median(runs)
    off = sorted(abs(run - base) for run in runs)
    left_out = max(1, len(off) // 10)
    central = off[:-left_out]
    if len(central) < 2:
        return MAD_TO_SIGMA * median(off)
    spread = math.sqrt(math.fsum(deviation * deviation for deviation in central) / (len(central) - 1))
    return min(_without_tails(left_out / len(off)) * spread, _MOST_MADS * MAD_TO_SIGMA * median(off))


@lru_cache(maxsize=256)
def _without_tails(share: float) -> float:
    """Return the ratio of a normal distribution's standard deviation to that of its middle without the tails."""
    normal = NormalDist()
    end = normal.inv_cdf(1 - share / 2)
    return 1 / math.sqrt(1 - 2 * end * normal.pdf(end) / (1 - share))
