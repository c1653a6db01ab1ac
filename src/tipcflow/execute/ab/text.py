"""An A/B comparison as text and as JSON."""

import math
from collections.abc import Callable, Sequence
from statistics import geometric_mean
from typing import Any

from tipcflow.ab import Outcome, Ratio
from tipcflow.domain import MetricKey
from tipcflow.domain.numbers.units import counted, duration, percentage
from tipcflow.domain.run.names import StepId
from tipcflow.execute.ab.comparison import Side
from tipcflow.execute.ab.metrics import better_of
from tipcflow.execute.ab.progress import Compared, Limits, Pair, Progress

_SHOWN = 3
# Lines of a table with these headers and rows.
Table = Callable[[Sequence[str], Sequence[Sequence[str]]], list[str]]
# Worst first.
_ORDER = (Outcome.WORSE, Outcome.UNDECIDED, Outcome.BETTER, Outcome.SAME)


def opening(a: Side, b: Side, limits: Limits) -> str:
    """Return the first lines: what is compared, and when the comparison ends."""
    end = f"{limits.pairs} pairs" if limits.pairs else f"at most {limits.most_pairs} pairs"
    warm_up = f" after {limits.warm_ups} warm-up" if limits.warm_ups else ""
    return (
        f"{a.request.suite} {a.request.params}: {end}{warm_up}, margin {percentage(limits.margin)}, "
        f"error {percentage(limits.error)}\nA: {a.name}\nB: {b.name}"
    )


def pair_line(progress: Progress) -> str:
    """Return the line after a pair: its order and the result of all pairs so far."""
    if not progress.pairs:
        return f"no pair has ended: {progress.why}"
    pair = progress.pairs[-1]
    order = "A, B" if pair.first == "A" else "B, A"
    if pair.number <= 0:
        return f"warm-up pair ({order}): {duration(pair.seconds)}; not counted, caches were cold"
    undecided = [each for each in progress.compared if each.outcome is Outcome.UNDECIDED]
    shown = [
        f"{_name(each.key, progress)} {_ratio(each.ratio)}" for each in (undecided or progress.compared)[:_SHOWN]
    ]
    count = f"{len(undecided)} of {len(progress.compared)} metrics undecided"
    return f"pair {pair.number} ({order}): {duration(pair.seconds)}; {count}: {', '.join(shown)}"


def verdict_line(limits: Limits, progress: Progress) -> str:
    """Return the outcome of all metrics together, why no pair follows, and the pairs with their duration."""
    work = f"{_pairs(progress)}, {duration(sum(pair.seconds for pair in progress.pairs))}"
    if progress.failed:
        return f"{'worse' if progress.failed == 'B' else 'undecided'}: {progress.why} ({work})"
    if not progress.compared:
        return f"undecided: {progress.why} ({work})"
    return f"{_verdict(limits, progress)}; {progress.why} ({work})"


def result_lines(limits: Limits, progress: Progress, table: Table) -> list[str]:
    """Return the result: a table of the metrics, the worst first, and the verdict as the last line."""
    if progress.failed or not progress.compared:
        return [verdict_line(limits, progress)]
    ordered = sorted(progress.compared, key=lambda each: _ORDER.index(each.outcome))
    rows = [_row(each, progress) for each in ordered]
    lines = table(["METRIC", "A", "B", "B / A", "INTERVAL", "B IS"], rows)
    lines += [
        f"not compared: {_name(key, progress)}: a run of A or B did not measure it" for key in progress.missing
    ]
    return [*lines, verdict_line(limits, progress)]


def _row(compared: Compared, progress: Progress) -> list[str]:
    ratio = compared.ratio
    means = (f"{_mean(compared, side):.5g}" for side in (0, 1))
    name = _name(compared.key, progress)
    return [name, *means, f"{ratio.value:.4f}", _interval(ratio), compared.outcome.value]


def _verdict(limits: Limits, progress: Progress) -> str:
    """Return the outcome of all metrics together: the worst one."""
    outcomes = [each.outcome for each in progress.compared]
    worst = min(outcomes, key=_ORDER.index)
    if progress.missing and worst is not Outcome.WORSE:
        return (
            f"undecided: {len(progress.missing)} of {len(outcomes) + len(progress.missing)} metrics not compared"
        )
    count = f"{outcomes.count(worst)} of {len(outcomes)} metrics"
    if worst is Outcome.SAME:
        return f"same within {percentage(limits.margin)}: {count}"
    return f"{worst.value}: {count}"


def _pairs(progress: Progress) -> str:
    warm_ups = len(progress.pairs) - progress.counted
    text = counted(progress.counted, "pair")
    return f"{text} and {counted(warm_ups, 'warm-up pair')}" if warm_ups else text


def _name(key: MetricKey, progress: Progress) -> str:
    """Return a metric's name; the variant only if there are several."""
    variants = {StepId.parse(each.key.step).variant for each in progress.compared}
    step = key.step if len(variants) > 1 else StepId.parse(key.step).name
    return " ".join(filter(None, (step, key.leg, key.metric)))


def _ratio(ratio: Ratio) -> str:
    return f"{ratio.value:.3f} x" if math.isinf(ratio.high) else f"{ratio.value:.3f} x ({_interval(ratio)})"


def _interval(ratio: Ratio) -> str:
    return "-" if math.isinf(ratio.high) else f"{ratio.low:.4f} to {ratio.high:.4f}"


def _mean(compared: Compared, side: int) -> float:
    return geometric_mean([values[side] for values in compared.values])


def result_json(a: Side, b: Side, limits: Limits, progress: Progress) -> dict[str, Any]:
    """Return the result as JSON: printed by the command, and stored."""
    return {
        "a": a.name,
        "b": b.name,
        "margin": limits.margin,
        "error": limits.error,
        "decided": progress.is_decided,
        "failed": progress.failed,
        "status": progress.status.value,
        "verdict": verdict_line(limits, progress),
        "why": progress.why,
        "metrics": [
            {
                "step": each.key.step,
                "leg": each.key.leg,
                "metric": each.key.metric,
                "better": better_of(each.key),
                "ratio": each.ratio.value,
                "low": each.ratio.low,
                "high": each.ratio.high,
                "outcome": each.outcome.value,
                "pairs": [list(values) for values in each.values],
            }
            for each in progress.compared
        ],
        "missing": [str(key) for key in progress.missing],
        "pairs": [_pair_json(pair) for pair in progress.pairs],
    }


def _pair_json(pair: Pair) -> dict[str, Any]:
    return {
        "number": pair.number,
        "order": "AB" if pair.first == "A" else "BA",
        "a": pair.a.id,
        "b": pair.b.id,
        "seconds": pair.seconds,
    }
