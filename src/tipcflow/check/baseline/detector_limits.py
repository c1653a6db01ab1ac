"""Change-point detector limits per metric: smallest detectable change and rate of false alerts."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from tipcflow.check.baseline.level import level_of
from tipcflow.check.detect.limits import RUNS, limits_of
from tipcflow.config.policy import Policy
from tipcflow.domain import PastRun, plain_metric
from tipcflow.domain.numbers.metrics import metric

# Years that false alerts are counted over: none in 100 is below 0.03 a year with 95 % probability.
YEARS = 100
# Minimum number of years per metric if time is short; seconds per simulated year.
_LEAST, _A_YEAR_S = 10, 0.0015


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
    keys = sorted({key for one in history for key in one.medians})
    keys = [key for key in keys if policy.rule_of(key.rpartition("|")[2]) is not None]
    years = YEARS if within_s is None else max(_LEAST, min(YEARS, int(within_s / _A_YEAR_S / max(1, len(keys)))))
    until = None if within_s is None else clock() + within_s
    rows = []
    for key in keys:
        step, leg, name = key.split("|")
        level = level_of([one.medians[key] for one in history if key in one.medians], name, policy)
        values, rule = level.runs, policy.gate_of(name)
        cut = until is not None and clock() >= until and len(values) >= rule.min_history
        higher = metric(plain_metric(name)).better == "higher"
        found = limits_of(values, rule, higher_is_better=higher, years=0 if cut else years)
        row = {"step": step, "leg": leg, "metric": name, "runs": found.runs, "sigma": found.sigma}
        row |= {"smallest": found.smallest, "false_per_year": found.false_per_year}
        rows.append({**row, "simulated_years": found.simulated_years, "cut": cut})
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
    words = f"false alerts of {cut} of {len(rows)} numbers were not counted: the {within_s:g} s for it were over"
    return {
        "policy": policy.name,
        "within_runs": RUNS,
        "numbers": rows,
        "false_per_year": false / years if years else None,
        "simulated_years": years,
        "cut": words if cut else "",
    }
