"""Change-point detector limits per metric: smallest detectable change and rate of false alerts."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tipcflow.check.baseline.level import Level, level_of
from tipcflow.check.context import observed_values
from tipcflow.check.detect import Observed
from tipcflow.check.detect.limits import RUNS, Limits, limits_of
from tipcflow.config.policy import Policy
from tipcflow.domain import PastRun, plain_metric
from tipcflow.domain.numbers.metrics import metric
from tipcflow.domain.numbers.units import limit

# Years that false alerts are counted over: none in 100 is below 0.03 a year with 95 % probability.
YEARS = 100
# Minimum number of years per metric if time is short; seconds per simulated year.
_LEAST, _A_YEAR_S = 10, 0.0015


@dataclass(frozen=True)
class MetricLimits:
    """The level of a metric, and which changes from it count.

    Attributes:
        level: the earlier runs that a run is compared with.
        detector: noise of one run and smallest detectable change, of the runs of the level.
        base: the baseline; None without a run.
        limit: the relative change that a check allows; None with fewer than `min_history` runs or a baseline of 0.
    """

    level: Level
    detector: Limits
    base: float | None
    limit: float | None


def metric_limits(past: Sequence[float | Observed], name: str, policy: Policy, *, years: int = 0) -> MetricLimits:
    """Return the baseline of a metric and the changes that count: the same for checks, `baseline show`, `gate`,
    `compare` and the pages.

    Args:
        past: medians of accepted runs, oldest first; finite (`level_of`).
        name: name of the metric, as in `numbers_of`.
        years: number of simulated years for the rate of false alerts; 0 for none, which takes no time.
    """
    level = level_of(past, name, policy)
    higher = metric(plain_metric(name)).better == "higher"
    detector = limits_of(level.runs, policy.gate_of(name), higher_is_better=higher, years=years)
    base = level.base if level.runs else None
    enough = base and len(level.past) >= policy.min_history
    return MetricLimits(level, detector, base, level.limit if enough else None)


def gate_limits(
    history: Sequence[PastRun],
    policy: Policy,
    *,
    within_s: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> list[dict[str, Any]]:
    """One row per evaluated (step, leg, metric) of earlier runs.

    `runs`: number of runs of the current level (`level_of`); `sigma`: relative standard deviation of one run;
    `smallest`: the smallest change detected within 12 runs in 95 of 100 cases; `false_per_year`: alerts per
    metric and 52 runs without a change, over `simulated_years`. Unknown values are None.

    Args:
        history: accepted runs, oldest first.
        within_s: time limit of the false-alert simulation, seconds. A short limit reduces the years; rows that
            are not simulated because of the limit have `cut` true.
    """
    keys = sorted({key for run in history for key in run.medians})
    keys = [key for key in keys if policy.rule_of(key.metric) is not None]
    years = YEARS if within_s is None else max(_LEAST, min(YEARS, int(within_s / _A_YEAR_S / max(1, len(keys)))))
    until = None if within_s is None else clock() + within_s
    rows = []
    for key in keys:
        past = observed_values(history, key)
        late = until is not None and clock() >= until
        known = metric_limits(past, key.metric, policy, years=0 if late else years)
        runs, limits = len(known.level.runs), known.detector
        cut = late and runs >= policy.detect.min_history
        row: dict[str, Any] = {"step": key.step, "leg": key.leg, "metric": key.metric, "runs": runs}
        row |= {"sigma": limits.sigma, "smallest": limits.smallest, "false_per_year": limits.false_per_year}
        rows.append({**row, "simulated_years": limits.simulated_years, "cut": cut})
    return rows


def gate_section(
    history: Sequence[PastRun],
    policy: Policy,
    *,
    within_s: float,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Return the limits for a certificate, with the policy's name, false alerts over all metrics, and cut rows."""
    rows = gate_limits(history, policy, within_s=within_s, clock=clock)
    counted = [row for row in rows if row["false_per_year"] is not None]
    years = sum(row["simulated_years"] for row in counted)
    false = sum(row["false_per_year"] * row["simulated_years"] for row in counted)
    cut = sum(row["cut"] for row in rows)
    message = f"false-alert rate unknown for {cut} of {len(rows)} metrics (time limit {limit(within_s)})"
    return {
        "policy": policy.name,
        "within_runs": RUNS,
        "numbers": rows,
        "false_per_year": false / years if years else None,
        "simulated_years": years,
        "cut": message if cut else "",
    }
