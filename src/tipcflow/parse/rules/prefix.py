"""Identifies the rank of a line in a log to which several ranks write.

[rank 3] …  [Rank 3] …  [rank3]: …  [default3]:…   torchrun and similar tees
[1,3]<stdout>: …                                mpirun --tag-output
3: …                                            srun --label
log/workerlog.3:…    workerlog.3-…              grep "" log/workerlog.*
==> log/workerlog.3 <==                         tail -f log/workerlog.*: a separate line, for the lines after it
"""

import re

from tipcflow.parse.rules.reading import INDEX, Span

_PREFIX = re.compile(
    rf"(?:\[(?:default|[Rr]ank)[ _]?(?P<a>{INDEX})\]:?|\[\d{{1,9}},(?P<b>{INDEX})\]<std(?:out|err)>:"
    rf"|\s{{0,5}}(?P<c>{INDEX}):(?=[ \t])|(?:\S*/)?workerlog\.(?P<d>{INDEX})[:-])[ \t]?"
)
_TITLE = re.compile(rf"==> (?:\S*/)?workerlog\.(?P<rank>{INDEX}) <==\s*$")


def rank_prefix(line: str) -> tuple[Span | None, int]:
    """Return the span of the rank in the line (None if it names none), and the position after the prefix."""
    match = _PREFIX.match(line)
    if match is None or match.lastgroup is None:
        return None, 0
    return match.span(match.lastgroup), match.end()


def rank_title(line: str) -> int | None:
    """Return the rank to which all lines after this one belong; None for any other line."""
    match = _TITLE.match(line) if line.startswith("==> ") else None
    return int(match["rank"]) if match else None
