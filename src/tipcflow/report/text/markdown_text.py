"""Markdown whose cells cannot break out of their table, mention a user or become a link."""

import re
from collections.abc import Iterable, Sequence

from tipcflow.report.text.plain import one_line

# GitHub looks for mentions, numbers of issues and addresses in the rendered text, so that entities of their
# characters would not help; an invisible character within them does.
_BREAK = "&#8203;"
# Characters that have a meaning in Markdown or HTML inside a cell.
_ESCAPED = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    "\\": "&#92;",  # a second backslash would escape the `\\|` after it
    "|": "\\|",
    "`": "'",
    "[": "\\[",
    "]": "\\]",
    "*": "\\*",
    "~": "\\~",
    "@": f"@{_BREAK}",
    "#": f"#{_BREAK}",
    "://": f":{_BREAK}//",
}
_SPECIAL = re.compile(
    r"[&<>\\|`\[\]*~]"
    # `__init__` would be bold; GitHub ignores underscores within words.
    r"|(?<![A-Za-z0-9_])_+|_+(?![A-Za-z0-9_])"
    r"|@(?=[A-Za-z0-9])|#(?=[0-9])|://|\b(?:GH-(?=[0-9])|www\.)",
    re.IGNORECASE,
)


def cell(text: str) -> str:
    """Untrusted text as one line of a cell, heading or paragraph."""
    return _SPECIAL.sub(_escaped, one_line(text))


def _escaped(found: re.Match[str]) -> str:
    special = found.group()
    if special.startswith("_"):
        return "\\_" * len(special)
    return _ESCAPED.get(special) or f"{special[:-1]}{_BREAK}{special[-1]}"


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
