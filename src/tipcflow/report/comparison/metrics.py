"""Metrics of runs side by side, those that changed most in relation to their noise first."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tipcflow.check.baseline.detector_limits import MetricLimits
from tipcflow.domain import MetricKey
from tipcflow.domain.numbers.metrics import metric

WORSE, BETTER, WITHIN, UNKNOWN = "worse", "better", "within limit", "limit unknown"
_EQUAL = 1e-12
# Standard deviations of one run.
_NOTABLE = 3.0


@dataclass(frozen=True)
class MetricRow:
    """A metric in each run; changes and verdicts are of the runs after the first.

    Attributes:
        metric: name, as in `numbers_of`.
        unit: of the first value.
        units: of each value; they differ if the log or the suite file of a run has another one.
        values: in `units`; None where a run has none.
        changes: relative to the first run; None where a value is missing or the first is 0.
        verdicts: `worse` or `better` by more than the limit, `within limit`, `limit unknown`, or '' for what is
            not evaluated.
        noise: relative standard deviation of one run; None while the history is too short.
        limit: the relative change that a check allows; None while the history is too short.
        score: the largest change, in standard deviations of one run; None without a change or noise.
        runs: number of accepted runs that the noise is estimated from.
    """

    step: str
    leg: str
    metric: str
    unit: str
    units: tuple[str, ...]
    better: str
    values: tuple[float | None, ...]
    changes: tuple[float | None, ...]
    verdicts: tuple[str, ...]
    noise: float | None
    limit: float | None
    score: float | None
    runs: int

    @property
    def is_beyond(self) -> bool:
        """Whether a run is worse or better by more than the limit."""
        return bool({WORSE, BETTER}.intersection(self.verdicts))

    @property
    def is_notable(self) -> bool:
        """Whether to show the metric first: it is beyond its limit, its limit is unknown, or it changed by several
        standard deviations within a coarse limit."""
        return self.is_beyond or self.limit is None or (self.score or 0.0) >= _NOTABLE

    @property
    def largest(self) -> float:
        """The largest relative change, without its sign; 0 for none."""
        return max((abs(change) for change in self.changes if change is not None), default=0.0)


def metric_rows(
    numbers: Sequence[Mapping[MetricKey, float]],
    limits: Callable[[MetricKey], MetricLimits],
    evaluated: Sequence[bool],
    units: Sequence[Mapping[MetricKey, str]] = (),
) -> list[MetricRow]:
    """One row per metric of which one direction is better: the largest change in relation to noise first, then
    those without known noise by their change.

    Args:
        numbers: of each run.
        evaluated: of each run after the first, whether it is comparable with the first.
        units: units in the log of each run, by step, leg and plain metric; otherwise those of the registry.
    """
    keys = sorted({key for values in numbers for key in values if metric(key.plain_metric).better != "none"})
    known = units or [{} for _ in numbers]
    rows = [
        _row(key, [values.get(key) for values in numbers], _units(key, known), limits(key), evaluated)
        for key in keys
    ]
    return sorted(rows, key=_order)


def _order(row: MetricRow) -> tuple[bool, bool, float, float, str, str, str]:
    known = row.score is not None
    return (not row.is_beyond, not known, -(row.score or 0.0), -row.largest, row.step, row.leg, row.metric)


def _units(key: MetricKey, units: Sequence[Mapping[MetricKey, str]]) -> tuple[str, ...]:
    return tuple(own.get(key.of(key.plain_metric), metric(key.plain_metric).unit) for own in units)


def _row(
    key: MetricKey,
    values: Sequence[float | None],
    units: tuple[str, ...],
    known: MetricLimits,
    evaluated: Sequence[bool],
) -> MetricRow:
    definition = metric(key.plain_metric)
    changes = tuple(_change(values[0], value) for value in values[1:])
    counted = [change for change, counts in zip(changes, evaluated, strict=True) if counts and change is not None]
    noise, limit = (known.detector.sigma, known.limit) if any(evaluated) else (None, None)
    largest = max((abs(change) for change in counted), default=None)
    return MetricRow(
        step=key.step,
        leg=key.leg,
        metric=key.metric,
        unit=next((unit for unit, value in zip(units, values, strict=True) if value is not None), ""),
        units=units,
        better=definition.better,
        values=tuple(values),
        changes=changes,
        verdicts=tuple(
            _verdict(change, limit, definition.better) if counts else ""
            for change, counts in zip(changes, evaluated, strict=True)
        ),
        noise=noise,
        limit=limit,
        score=largest / noise if largest is not None and noise else None,
        runs=len(known.level.runs),
    )


def _change(base: float | None, value: float | None) -> float | None:
    if base is None or value is None or not (math.isfinite(base) and math.isfinite(value)):
        return None
    if value == base:
        return 0.0
    return (value - base) / abs(base) if base else None


def _verdict(change: float | None, limit: float | None, better: str) -> str:
    if change is None:
        return ""
    if abs(change) <= _EQUAL:
        return WITHIN
    if limit is None:
        return UNKNOWN
    if abs(change) <= limit:
        return WITHIN
    return BETTER if (change > 0) == (better == "higher") else WORSE
