"""The page of `tipcflow compare`, as lines."""

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from tipcflow.cli.output.output import columns
from tipcflow.domain.numbers.units import duration, milliseconds, percent, utc
from tipcflow.report.comparison.tables import LETTERS, amount, noise, noise_of_history, score, verdict
from tipcflow.report.text.names import short_step, shorten

if TYPE_CHECKING:
    from tipcflow.domain import Plan
    from tipcflow.report.comparison.metrics import MetricRow
    from tipcflow.report.comparison.model import Comparison


def page(compared: "Comparison", *, width: int | None, every: bool = False) -> list[str]:
    """All lines; a table that has nothing to show is omitted.

    Args:
        width: columns of the terminal, None for no limit.
        every: also rows that are the same in all runs.
    """
    first = compared.runs[0].run
    sections = (
        (first.chain, _runs(compared, width)),
        ("WHAT DIFFERS", _facts(compared, width, every)),
        ("METRICS", _metrics(compared, width, every)),
        ("STEPS", _steps(compared, width)),
        ("LEGS", _legs(compared, width)),
        ("CHECKS", _checks(compared, width, every)),
    )
    lines: list[str] = []
    for title, body in sections:
        if body:
            lines += [*([""] if lines else []), title, *body]
    return lines


def _letters(compared: "Comparison") -> list[str]:
    return list(LETTERS[: len(compared.runs)])


def _plan(compared: "Comparison") -> "Plan | None":
    return compared.runs[0].data.plan


def _runs(compared: "Comparison", width: int | None) -> list[str]:
    rows = [
        (letter, own.run.status.value if own.run.status else "running", utc(own.run.created_at), own.run.id)
        for letter, own in zip(_letters(compared), compared.runs, strict=True)
    ]
    lines = columns(("", "STATUS", "STARTED (UTC)", "RUN"), rows, width=width)
    limits = f"Limits of policy {compared.policy}; {noise_of_history(compared)}."
    return [*lines, limits, *compared.notes]


def _facts(compared: "Comparison", width: int | None, every: bool) -> list[str]:
    rows = [(row.name, *(value or "-" for value in row.values)) for row in compared.facts if every or row.differs]
    if not rows:
        return ["suite, framework, environment class, nodes, seed, policy and mode are the same"]
    return columns(("", *_letters(compared)), rows, width=width)


def _metrics(compared: "Comparison", width: int | None, every: bool) -> list[str]:
    shown = [row for row in compared.metrics if every or row.is_notable]
    letters = _letters(compared)
    head = (*letters, *(f"{letter}/A" for letter in letters[1:]), "CHANGE/NOISE", "VERDICT (LIMIT)", "METRIC")
    lines = columns(head, [_metric(compared, row) for row in shown], width=width) if shown else []
    hidden = len(compared.metrics) - len(shown)
    more, are = "more " if shown else "", "metrics are" if hidden > 1 else "metric is"
    return lines + ([f"{hidden} {more}{are} within the limit: --all"] if hidden else [])


def _metric(compared: "Comparison", row: "MetricRow") -> tuple[str, ...]:
    known = score(row)
    relation = f"unknown (noise: {noise(row, compared.needed)})" if known == "unknown" else known
    where = " ".join(filter(None, (short_step(_plan(compared), row.step), row.leg, row.metric)))
    values = [amount(value, unit) for value, unit in zip(row.values, row.units, strict=True)]
    return (*values, *map(percent, row.changes), relation, verdict(row), where)


def _pairs(statuses: Sequence[str], texts: Sequence[str], ratios: Sequence[float | None]) -> tuple[str, ...]:
    """Status and amount of each run, then the ratios."""
    known = (f"{ratio:.2f} x" if ratio else "" for ratio in ratios)
    return (*chain.from_iterable(zip(statuses, texts, strict=True)), *known)


def _head(compared: "Comparison", what: str) -> tuple[str, ...]:
    letters = _letters(compared)
    return (
        *chain.from_iterable((letter, "") for letter in letters),
        *(f"{letter}/A" for letter in letters[1:]),
        what,
    )


def _steps(compared: "Comparison", width: int | None) -> list[str]:
    rows = [
        (
            *_pairs(row.statuses, [duration(seconds or None) for seconds in row.seconds], row.ratios),
            short_step(_plan(compared), row.step),
        )
        for row in compared.steps
    ]
    return columns(_head(compared, "STEP"), rows, width=width) if rows else []


def _legs(compared: "Comparison", width: int | None) -> list[str]:
    rows = [
        (
            *_pairs(row.statuses, [f"{milliseconds(ms)} ms" if ms else "" for ms in row.latencies_ms], row.ratios),
            row.leg,
        )
        for row in compared.legs
    ]
    return columns(_head(compared, "LEG"), rows, width=width) if rows else []


def _checks(compared: "Comparison", width: int | None, every: bool) -> list[str]:
    shown = [row for row in compared.checks if every or row.differs]
    rows = [
        (
            *(status or "-" for status in row.statuses),
            row.check,
            " ".join(filter(None, (short_step(_plan(compared), row.step), row.leg, row.metric))),
            shorten(_plan(compared), next(filter(None, reversed(row.reasons)))),
        )
        for row in shown
    ]
    lines = columns((*_letters(compared), "CHECK", "ABOUT", "REASON"), rows, width=width) if rows else []
    hidden = len(compared.checks) - len(shown)
    have = "checks have" if hidden > 1 else "check has"
    return lines + ([f"{hidden} {have} the same status in all runs: --all"] if hidden else [])
