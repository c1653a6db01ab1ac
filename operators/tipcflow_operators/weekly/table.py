"""Summary table of a weekly run: one row per chain."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tipcflow.check.select import format_number
from tipcflow.domain import CheckResult, Run, Status, exit_code, is_accuracy
from tipcflow.domain.numbers.units import duration
from tipcflow.report.text.markdown_text import cell, table

_HEAD = ("chain", "status", "accuracy", "duration", "run", "reason")


@dataclass(frozen=True)
class Row:
    """The row of a chain.

    Attributes:
        run: the chain's last run of this week; None if none started.
        accuracy: one phrase per accuracy check.
        neutral: whether the run is `unconfirmed` and its policy does not block on that.
    """

    chain: str
    run: Run | None = None
    accuracy: tuple[str, ...] = ()
    neutral: bool = False

    @property
    def red(self) -> bool:
        """Whether the chain fails the weekly run; a chain without a status does."""
        if self.run is None or self.run.status is None:
            return True
        return bool(exit_code(self.run.status, neutral=self.neutral))

    @property
    def word(self) -> str:
        """Status word of the run, or a phrase if it has none."""
        if self.run is None:
            return "not started"
        return self.run.status.value if self.run.status else "no status"


def accuracies(
    results: Iterable[CheckResult], before: Mapping[tuple[str, str], float], *, since: str = "previous"
) -> tuple[str, ...]:
    """Return one phrase per accuracy check: value, target, and change since an earlier run.

    A comparison with the chain's history is included if it did not pass, or if the metric has no target.

    Args:
        results: check results of the run.
        before: (step, metric) -> the value of an earlier run, as returned by `values_of`.
        since: label of the earlier run.
    """
    judged = [(result, value) for result in results if (value := _accuracy(result)) is not None]
    aimed = {(result.step, result.metric) for result, _ in judged if result.measured.target is not None}
    phrases = []
    for result, value in judged:
        quiet = result.status in (Status.PASS, Status.INSUFFICIENT_DATA)
        if result.measured.target is None and quiet and (result.step, result.metric) in aimed:
            continue
        compared = _against(result)
        if (last := before.get((result.step, result.metric))) is not None:
            change = format_number(value - last) if value < last else "+" + format_number(value - last)
            compared.append(f"{since} {format_number(last)}, {change}")
        shown = f"{format_number(value)} %" if result.measured.unit == "%" else format_number(value)
        details = f" ({'; '.join(compared)})" if compared else ""
        marked = "" if result.status in (Status.PASS, Status.IMPROVEMENT) else f" {result.status.value}"
        phrases.append(f"{result.metric} {shown}{details}{marked}")
    return tuple(phrases)


def _accuracy(result: CheckResult) -> float | None:
    """Return the value of an accuracy check; None for other results, or without a value."""
    return result.measured.value if is_accuracy(result.check) else None


def _against(result: CheckResult) -> list[str]:
    """Return what the value was compared with: a target or a baseline."""
    measured = result.measured
    if measured.target is not None:
        return [f"target {format_number(measured.target)} ± {format_number(measured.tolerance or 0.0)}"]
    return [] if measured.baseline is None else [f"baseline {format_number(measured.baseline)}"]


def values_of(results: Iterable[CheckResult]) -> dict[tuple[str, str], float]:
    """Return the checked accuracies: (step, metric) -> value."""
    return {(result.step, result.metric): value for result in results if (value := _accuracy(result)) is not None}


def counted(rows: Sequence[Row]) -> str:
    """Return the number of chains per status, worst first: `1 failed, 2 pass`."""
    counts = Counter(row.word for row in rows)
    severity = {status.value: status.severity for status in Status}
    statuses = sorted(counts, key=lambda word: (-severity.get(word, len(severity)), word))
    return ", ".join(f"{counts[word]} {word}" for word in statuses)


def totals(rows: Sequence[Row], not_run: Mapping[str, str]) -> str:
    """Return the counts of a weekly run: `3 chains: 1 failed, 2 pass; 6 not_run`."""
    rest = f"; {len(not_run)} {Status.NOT_RUN.value}" if not_run else ""
    return f"{len(rows)} chains: {counted(rows)}{rest}"


def markdown(title: str, rows: Sequence[Row], not_run: Mapping[str, str]) -> str:
    """Return the summary in Markdown: the counts, then a table with the worst chains first.

    Args:
        not_run: chains that were left out, with the reason.
    """
    severity = {status.value: status.severity for status in Status}
    worst_first = sorted(rows, key=lambda row: -severity.get(row.word, len(severity)))
    lines = [f"## {cell(title)}", "", totals(rows, not_run), ""]
    by_reason: dict[str, list[str]] = {}
    for name, why in not_run.items():
        by_reason.setdefault(why, []).append(cell(name))
    for why, names in by_reason.items():
        lines += [f"{len(names)} {Status.NOT_RUN.value}: {cell(why)}: {', '.join(names)}", ""]
    lines.append(table(_HEAD, (_cells(row) for row in worst_first)))
    return "\n".join(lines) + "\n"


def _cells(row: Row) -> list[str]:
    if row.run is None:
        return [row.chain, row.word, "", "", "", "see task `certify` of this chain"]
    return [row.chain, row.word, ", ".join(row.accuracy), duration(row.run.duration_s), row.run.id, row.run.reason]
