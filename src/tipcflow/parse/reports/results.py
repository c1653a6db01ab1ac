"""Parser of TIPC's results_*.log, in which the suites' own script reports each step.

    ESC[33m Run successfully with command - mobilenet_v3_small - python train.py … - log/train.log ! ESC[0m
    ESC[33m Run failed with command - mobilenet_v3_small - python train.py … ! ESC[0m

The status is the script's claim, not evidence (it may be the status of a `cat`). Commands may contain ` - `,
so the rest of the line is not split. A skipped step leaves no line.
"""

import re

from tipcflow.domain import Frozen

# Documents that quote such lines drop their first characters: `un successfully with command - …`, or the ESC of
# their colors: `[33m Run …! [0m`.
_LINE = re.compile(r"\s*(?:\[\d+m\s*)?(?:R?un) (successfully|failed) with command - (.*)")


class ResultLine(Frozen):
    """One line: whether it reports "successfully", and the text after "command - "."""

    ok: bool
    command: str


def parse_result(line: str) -> ResultLine | None:
    """Parse a line without colors; None if it is not a line of a results log."""
    match = _LINE.match(line) if " with command - " in line else None
    if match is None:
        return None
    command = match[2].rstrip().removesuffix("[0m").rstrip().removesuffix("!").rstrip()
    return ResultLine(ok=match[1] == "successfully", command=command)
