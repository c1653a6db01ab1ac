"""The last progress line of a training log: the iteration and how many there are, where the line has both."""

import re
from typing import NamedTuple

from tipcflow.parse.text import strip_ansi

# `Iter: 5/10`, `iter: 10/20`, `Step=10/50`, `iteration 3 / 100`; not dates and not sizes.
_PROGRESS = re.compile(r"(?i)\b(?:iter(?:ation)?s?|step|global_step)\b\s*[:=]?\s*\[?(\d{1,9})\s*/\s*(\d{1,9})\b")
_NO_TRAINING = re.compile(r"(?i)\b(?:eval|evaluat\w*|val|valid\w*|test|testing|predict|infer|inference)\b")
# A training line has a loss or a speed.
_TRAINING = re.compile(r"(?i)loss|ips|batch_cost|\blr\b")


class Progress(NamedTuple):
    """The printed iteration and the printed number of iterations, of the epoch or of the whole training."""

    iteration: int
    total: int


def last_progress(text: str) -> Progress | None:
    """Return the progress in the last training line of a log; None if that line, or the log, has none.

    Args:
        text: the end of the log.
    """
    for line in reversed(strip_ansi(text).replace("\r", "\n").split("\n")):
        if not _TRAINING.search(line) or _NO_TRAINING.search(line):
            continue
        match = _PROGRESS.search(line)
        if match is None:
            return None
        iteration, total = int(match[1]), int(match[2])
        return Progress(iteration, total) if total > 0 and iteration <= total else None
    return None
