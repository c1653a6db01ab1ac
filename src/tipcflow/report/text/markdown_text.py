"""Markdown whose cells cannot break out of their table, mention a user or become a link."""

from collections.abc import Iterable, Sequence

from tipcflow.report.text.plain import one_line

# Characters that have a meaning in Markdown or HTML inside a cell.
_ESCAPED = str.maketrans({"|": "\\|", "<": "&lt;", ">": "&gt;", "`": "'", "[": "\\[", "]": "\\]", "@": "&#64;"})


def cell(text: str) -> str:
    """Untrusted text as one line of a cell, heading or paragraph."""
    return one_line(text).translate(_ESCAPED)


def markdown_cell(markdown: str) -> str:
    """Markdown of our own as a cell: a `|` would end the cell."""
    return markdown.replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are escaped, column titles are not."""
    return raw_table(head, (tuple(map(cell, row)) for row in rows))


def raw_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose cells are already Markdown."""
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
