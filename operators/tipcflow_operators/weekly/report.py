"""The weekly report in Markdown and HTML: what is new, accuracies with their trend, what did not run and why."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from tipcflow.domain import Status
from tipcflow.report.text.markdown_text import cell, table
from tipcflow.report.text.plain import one_line
from tipcflow_operators.notices.channels import slack_text
from tipcflow_operators.weekly.table import Row, totals

_BROKEN = (Status.REGRESSION, Status.FAILED)
# The model was not proven, for reasons outside of it.
_LOST = (Status.INFRA_FAILURE, Status.CANCELLED, Status.CONFIG_ERROR, Status.UNCONFIRMED)
_STYLE = "border:1px solid #999;padding:2px 6px;text-align:left"


@dataclass(frozen=True)
class Earlier:
    """What is known of a chain's earlier runs in this mode, without those that were not evaluated.

    Attributes:
        status: of the newest one; None without an earlier run.
        trends: metric -> accuracies, oldest first, the last one of this week.
    """

    status: Status | None = None
    trends: dict[str, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """One table; `empty` is the text without rows, `note` a line above it."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    empty: str
    note: str = ""


@dataclass(frozen=True)
class Selector:
    """What the selection for pull requests would have done.

    Attributes:
        line: the false-green rate of the last months.
        rows: (chain, repository, why the chain would have run) of this week's new regressions.
    """

    line: str
    rows: tuple[tuple[str, str, str], ...] = ()


def sections(
    rows: Sequence[Row], earlier: dict[str, Earlier], not_run: Mapping[str, str], selector: Selector
) -> list[Section]:
    """The parts of the report.

    Args:
        earlier: chain -> its earlier runs.
        not_run: chains that were left out, with the reason.
    """
    broken = [row for row in rows if row.run is not None and row.run.status in _BROKEN]
    new = newly_broken(rows, earlier)
    old = [row for row in broken if row not in new]
    reasons = ("chain", "status", "reason")
    accuracy = tuple((row.chain, ", ".join(row.accuracy)) for row in rows if row.accuracy)
    trends = tuple(
        (row.chain, metric, " → ".join(f"{value:.6g}" for value in values))
        for row in rows
        for metric, values in earlier.get(row.chain, Earlier()).trends.items()
    )
    return [
        Section("New regressions and failures", reasons, tuple(map(_reason, new)), "none"),
        Section("Known regressions and failures", reasons, tuple(map(_reason, old)), "none"),
        Section("Accuracy", ("chain", "accuracy"), accuracy, "no accuracy was evaluated"),
        Section("Trend", ("chain", "metric", "oldest to newest"), trends, "no earlier accuracy"),
        Section("Did not run, or proved nothing", reasons, tuple(_unproven(rows, not_run)), "none"),
        Section(
            "False-green rate of the selection",
            ("chain", "repository", "selected because"),
            selector.rows,
            "",
            selector.line,
        ),
    ]


def newly_broken(rows: Sequence[Row], earlier: Mapping[str, Earlier]) -> list[Row]:
    """The rows of chains that got worse since their last run."""
    broken = [row for row in rows if row.run is not None and row.run.status in _BROKEN]
    return [row for row in broken if earlier.get(row.chain, Earlier()).status not in _BROKEN]


def _reason(row: Row) -> tuple[str, str, str]:
    return row.chain, row.word, row.run.reason if row.run else ""


def _unproven(rows: Sequence[Row], not_run: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for row in rows:
        if row.run is None:
            yield row.chain, row.word, "see task `certify` of this chain"
        elif row.run.status is None or row.run.status in _LOST:
            yield _reason(row)
    for chain, why in not_run.items():
        yield chain, Status.NOT_RUN.value, why


def headline(title: str, rows: Sequence[Row], not_run: Mapping[str, str]) -> str:
    """One line: title and counts."""
    return one_line(f"{title}: {totals(rows, not_run)}")


def as_markdown(parts: Sequence[Section]) -> str:
    """The sections in Markdown."""
    lines = []
    for part in parts:
        texts = [cell(part.note) if part.note else "", table(part.head, part.rows) if part.rows else part.empty]
        lines += [f"### {cell(part.title)}", ""]
        for text in filter(None, texts):
            lines += [text, ""]
    return "\n".join(lines)


def as_html(title: str, parts: Sequence[Section]) -> str:
    """The report as a page without scripts and external files."""
    body = [f"<h2>{escape(title)}</h2>"]
    for part in parts:
        body.append(f"<h3>{escape(part.title)}</h3>")
        body += [f"<p>{escape(text)}</p>" for text in (part.note, "" if part.rows else part.empty) if text]
        body += [_html_table(part)] if part.rows else []
    return f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"></head><body>\n{"".join(body)}\n</body></html>\n'


def _html_table(part: Section) -> str:
    head = "".join(f'<th style="{_STYLE}">{escape(header)}</th>' for header in part.head)
    rows = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>\n" for row in part.rows)
    return f'<table style="border-collapse:collapse"><tr>{head}</tr>\n{rows}</table>\n'


def as_slack(title: str, parts: Sequence[Section], *, limit: int = 3000) -> str:
    """Headline, new problems and what did not run, within Slack's limit of characters."""
    lines = [f"*{_slack(title)}*"]
    for part in (parts[0], parts[4]):
        lines += [f"*{_slack(part.title)}*", *(f"• {_slack(': '.join(row))}" for row in part.rows)]
        lines += [] if part.rows else [part.empty]
    text = "\n".join(lines)
    return text if len(text) <= limit else f"{text[: limit - 2]}\n…"


def _slack(text: str) -> str:
    return slack_text(one_line(text))


def _html_cell(text: str) -> str:
    return f'<td style="{_STYLE}">{escape(one_line(text))}</td>'
