"""Failures in the log of a preparation whose script continues after them and ends with 0."""

from collections.abc import Iterable

from tipcflow.domain.run.failure import FailureClass
from tipcflow.parse.failures.failure import LogFailure, first_of
from tipcflow.parse.failures.rules import RULES
from tipcflow.parse.text import strip_ansi

# Lines that a script with a second source prints, too: alone they prove nothing.
_CAUSES = (FailureClass.DOWNLOAD, FailureClass.DISK)
# A broken archive is the consequence of a failed download.
_BROKEN = "archive broken"
_OURS = [rule for rule in RULES if rule.failure_class in _CAUSES]
_ARCHIVES = [rule for rule in RULES if rule.name == _BROKEN]
_WIDTH = 2000


def preparation_trouble(lines: Iterable[str]) -> LogFailure | None:
    """Return the first failed download or full disk that a preparation reports; otherwise a broken archive, as a
    failed download; None if it reports neither."""
    broken: LogFailure | None = None
    for line in lines:
        text = [strip_ansi(line[:_WIDTH]).rstrip()]
        failure = first_of(_OURS, text)
        if failure is not None:
            return failure
        broken = broken or first_of(_ARCHIVES, text)
    return broken and broken.model_copy(update={"failure_class": FailureClass.DOWNLOAD})
