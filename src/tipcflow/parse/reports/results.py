"""TIPC's results_*.log: what the suites' own script says of each step.

    ESC[33m Run successfully with command - mobilenet_v3_small - python train.py … - log/train.log ! ESC[0m
    ESC[33m Run failed with command - mobilenet_v3_small - python train.py … ! ESC[0m

The status is the script's word, not proof (it may be that of a `cat`). ` - ` may stand inside commands, so the
rest of the line is kept whole. A step that was skipped leaves no line.
"""

import re

from tipcflow.domain import Frozen

# Documents that quote such lines cut their first characters off: `un successfully with command - …`, or the ESC of
# their colours: `[33m Run …! [0m`.
_LINE = re.compile(r"\s*(?:\[\d+m\s*)?(?:R?un) (successfully|failed) with command - (.*)")


class ResultLine(Frozen):
    """One line: whether the script said "successfully", and everything that stands after "command - "."""

    ok: bool
    command: str


def parse_result(line: str) -> ResultLine | None:
    """What a line without colours says; None when it is none of a results log."""
    found = _LINE.match(line) if " with command - " in line else None
    if found is None:
        return None
    command = found[2].rstrip().removesuffix("[0m").rstrip().removesuffix("!").rstrip()
    return ResultLine(ok=found[1] == "successfully", command=command)
