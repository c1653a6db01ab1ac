"""Selects the most informative lines of a failed log."""

import re
from collections.abc import Sequence

from tipcflow.domain.masking import mask
from tipcflow.parse.failures.failure import RANK_PREFIX, above_summary, innermost
from tipcflow.parse.failures.launch import REPEATS_FROM
from tipcflow.parse.failures.stack_dump import without_stacks
from tipcflow.parse.text import strip_ansi

MAX_LINES = 8
MAX_WIDTH = 300

_TRACEBACK = "Traceback (most recent call last):"
# The last line of a traceback is the first line that is not indented.
_EXCEPTION = re.compile(r"^[A-Za-z_][\w.]*(?::|$)")
# Dumps of environments and settings may contain secrets and are not informative: they are never quoted.
_DUMP = re.compile(
    r"^\s*(?:env \{|(?:declare -x|export) \w+=|[A-Z][A-Z0-9_]{2,}=|LAUNCH (?:INFO|ERROR|WARNING) |"
    r".*(?i:password|passwd|secret|credential|api_?key|(?:access|auth|github|hf)_token|bearer ))"
)
# The message of an exception without a message of its own is below it.
_BELOW = 30
# `ERROR: No matching distribution found for x`, `gcc: error: a.c: No such file`, `fatal: not a git repository`.
_MARKED = re.compile(r"\s*(?:[\w./+-]+: )?(?:(?:ERROR|[Ee]rror|fatal error|fatal): )\S")
_PROGRESS = re.compile(r"(?i:\b(?:epoch|iter|step)\b.*\bloss\b)")


def error_excerpt(text: str) -> str:
    """Return the most informative lines of a failed log, at most 8 of at most 300 characters; '' for an empty
    log.

    If there is a Python traceback other than torchrun's own, these are the end of the last one (its last frames
    and the exception), otherwise the last lines that are neither empty nor a dump of settings. The launcher's
    second copy of the log is excluded.
    """
    # The chosen lines may be within a private key. PyTorch begins each line of a traceback with the rank.
    text = mask(strip_ansi(text).replace("\r", "\n"))
    lines = [RANK_PREFIX.sub("", line.rstrip()) for line in text.split("\n")]
    lines = above_summary(lines)
    # The launcher's copy is the only output if the worker's output was not echoed before.
    first_copy = next((number for number, line in enumerate(lines) if REPEATS_FROM in line), len(lines))
    chosen = _traceback(lines[:first_copy]) or _traceback(lines) or _tail(lines[:first_copy]) or _tail(lines)
    return "\n".join(line[:MAX_WIDTH] for line in mask("\n".join(chosen)).split("\n"))


def last_error(lines: Sequence[str]) -> str | None:
    """Return the last line that a program marks as an error, such as pip, git or a compiler; None if there is
    none."""
    return next((line for line in reversed(lines) if _MARKED.match(line)), None)


def ends_with_message(text: str) -> bool:
    """Whether the last line of a log is neither progress of a training nor a dump of settings; stacks do
    not count."""
    lines = [line for line in strip_ansi(text).replace("\r", "\n").split("\n") if line.strip()]
    lines = without_stacks(lines)
    return bool(lines) and not _PROGRESS.search(lines[-1]) and not _DUMP.match(lines[-1])


def _traceback(lines: list[str]) -> list[str]:
    starts = [number for number, line in enumerate(lines) if line.endswith(_TRACEBACK)]
    if not starts:
        return []
    for end in range(starts[-1] + 1, len(lines)):
        if _EXCEPTION.match(lines[end]):
            frames = [line for line in lines[starts[-1] + 1 : end] if line.strip(" ^~") and not _DUMP.match(line)]
            message = [line for line in lines[end : end + 3] if line and not _DUMP.match(line)]
            inner = innermost(lines[end : end + _BELOW])
            if inner and inner not in message:
                message = [*message[:2], inner]
            return [*frames[-2:], *message[:3]][-MAX_LINES:]
    return []


def _tail(lines: list[str]) -> list[str]:
    useful = [line for line in lines if line.strip() and not _DUMP.match(line)]
    # Progress lines of a training would displace the reason.
    reasons = [line for line in useful if not _PROGRESS.search(line)]
    return (reasons or useful)[-MAX_LINES:]
