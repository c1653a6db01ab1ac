"""Classifies the failure at the end of a log with one table of rules (tipcflow.parse.failures.rules)."""

import re
from collections.abc import Iterable

from tipcflow.domain import Frozen
from tipcflow.domain.masking import mask
from tipcflow.domain.run.failure import FailureClass
from tipcflow.parse.failures.launch import REPEATS_FROM
from tipcflow.parse.failures.rules import ABORT, RULES, Rule
from tipcflow.parse.failures.stack_dump import without_stacks
from tipcflow.parse.text import strip_ansi

# Python's traceback, also with the rank prefix of torchrun, but not the one that Paddle prints of its C++ part.
_TRACEBACK = re.compile(r"(?<!C\+\+ )Traceback \(most recent call last\):$")
RANK_PREFIX = re.compile(r"^(?:\[(?:rank|default)\d+\]:? ?)")
# The last line of a traceback is the first line that is not indented.
_EXCEPTION = re.compile(r"^[A-Za-z_][\w.]*(?:: |:?$)")
# The message of an exception without a message of its own is below it: Paddle prints its C++ part first.
_BELOW = 30
_BELOW_NCCL = 4
_LAST_ERROR = "Last error:"
# Without an exception: messages that a script printed long before its end are not the reason for its end.
_LAST_LINES = 20
_ABORT_LINES = 300
# Frames of a helper process that multiprocessing started: it fails because its parent has ended.
_CHILD = re.compile(r'File "[^"]*multiprocessing[/\\](?:spawn|forkserver|resource_tracker|synchronize)\.py"')
# An exception named within a message: Paddle quotes the innermost one below "In transformed code:".
_INNER = re.compile(r"^\s*(?:[A-Za-z_][\w.]*(?:Error|Exception)|\(\w+\))(?::\s*\S|\s*\(\w+\))")
# torchrun prints `…api.SignalException: Process 4242 got signal: 15` when it is stopped.
_ENDED = re.compile(r"^(?:SystemExit|KeyboardInterrupt|torch\.distributed\.elastic\S*\.SignalException)\b")
# torchrun's own exception, which it raises whatever the reason why a worker failed.
_SUMMARY = re.compile(r"^torch\.distributed\.elastic\S*\.ChildFailedError\b")
_PROGRESS = re.compile(r"(?i:\b(?:epoch|iter|step)\b.*\bloss\b)")
# Longer lines are data, not messages.
_WIDTH = 2000
_LINE_LIMIT = 300
# gloo in Paddle names the peer of a closed connection in this form.
_PEER = re.compile(r"\bpair_rank = (\d+)")


class LogFailure(Frozen):
    """The failure in the log of one process.

    Attributes:
        log_line: the line that reports it, at most 300 characters.
        is_collateral: whether it only reports that a peer disconnected.
        waited: whether it reports that a peer did not arrive in time: no process had ended by then.
        peer: the rank that it reports as missing, -1 for none.
        rule: the name of the rule, '' for an exception that matches no rule.
    """

    failure_class: FailureClass
    log_line: str
    is_collateral: bool = False
    waited: bool = False
    peer: int = -1
    rule: str = ""


def find_failure(text: str) -> LogFailure | None:
    """Classify the failure at the end of a log; None if no line indicates one.

    Lines that name a cause regardless of their position (memory, disk) come first; then the exception that
    ended the process; then, without an exception, any line that matches a rule. An exception that matches no
    rule is a code error. torchrun's own exception counts only if its output contains no other failure.
    """
    lines = _lines(text)
    failure = first_of(
        (rule for rule in RULES if rule.anywhere and rule.failure_class is not FailureClass.CODE_ERROR), lines
    )
    if failure is not None:
        return failure
    above = above_summary(lines)
    failure = _end_of(above)
    if failure is None and len(above) < len(lines):
        return _end_of(lines)
    return failure


def _end_of(lines: list[str]) -> LogFailure | None:
    """Classify the exception that ended a process, or without an exception its last lines."""
    block = _exception(lines)
    if block:
        failure = first_of(RULES, _with_last_error(block))
        return failure or LogFailure(
            failure_class=FailureClass.CODE_ERROR,
            log_line=mask(innermost(block) or block[0].strip())[:_LINE_LIMIT],
        )
    lines = without_stacks(lines)
    failure = first_of(RULES, lines[-_LAST_LINES:])
    if failure is not None and failure.rule == ABORT:
        # C++ code that fails because a peer ended aborts, with its own message above a long stack.
        return first_of((rule for rule in RULES if rule.is_collateral), lines[-_ABORT_LINES:]) or failure
    return failure


def _lines(text: str) -> list[str]:
    """Return the lines without the launcher's copy and without progress lines of a training."""
    lines = [
        RANK_PREFIX.sub("", line.rstrip()[:_WIDTH]) for line in strip_ansi(text).replace("\r", "\n").split("\n")
    ]
    end = next((number for number, line in enumerate(lines) if REPEATS_FROM in line), len(lines))
    # The launcher's copy is the only output if the worker's output was not echoed before.
    kept = lines[:end] if _exception(lines[:end]) or not _exception(lines) else lines
    return [line for line in kept if line and not _PROGRESS.search(line)]


def above_summary(lines: list[str]) -> list[str]:
    """Return the lines above the traceback of torchrun's own exception if it is the last traceback, else all
    lines."""
    starts = [number for number, line in enumerate(lines) if _TRACEBACK.search(line)]
    if starts and any(_SUMMARY.match(line) for line in lines[starts[-1] :]):
        return lines[: starts[-1]]
    return lines


def _exception(lines: list[str]) -> list[str]:
    """Return the last Python exception of a log with its message; [] if there is none.

    A traceback of a helper process of multiprocessing counts only if there is no other one.
    """
    starts = [number for number, line in enumerate(lines) if _TRACEBACK.search(line)]
    secondary: list[str] = []
    for start in reversed(starts):
        for number in range(start + 1, len(lines)):
            if _EXCEPTION.match(lines[number]) and not _ENDED.match(lines[number]):
                block = lines[number : number + _message_lines(lines[number])]
                if not any(_CHILD.search(line) for line in lines[start:number]):
                    return block
                secondary = secondary or block
                break
    return secondary


def _message_lines(exception: str) -> int:
    """Return how many lines the message of an exception may have."""
    if exception.endswith(":"):
        return _BELOW
    # The meaning of the error and NCCL's last message, which shows whether a peer disconnected, are below it.
    return _BELOW_NCCL if "NCCL error" in exception else 1


def _with_last_error(block: list[str]) -> list[str]:
    """Return the message of an exception with NCCL's last error in the line of NCCL's result, which has only the
    class of the error."""
    for number, line in enumerate(block[1:-1], start=1):
        if line.startswith(_LAST_ERROR):
            return [*block[: number - 1], f"{block[number - 1]} {line} {block[number + 1]}", *block[number + 1 :]]
    return block


def innermost(block: list[str]) -> str:
    """Return the innermost exception that the message of an exception quotes; '' if it quotes none.

    Args:
        block: the line of the exception and the lines below it.
    """
    inner = [line.strip() for line in block[1:] if _INNER.match(line)] if block[0].endswith(":") else []
    return inner[-1] if inner else ""


def first_of(rules: Iterable[Rule], lines: list[str]) -> LogFailure | None:
    """Return the failure of the first matching rule, with the last line that matches it."""
    for rule in rules:
        matched_line = next(
            (matched_line for matched_line in reversed(lines) if rule.pattern.search(matched_line)), None
        )
        if matched_line is not None:
            return LogFailure(
                failure_class=rule.failure_class,
                log_line=mask(matched_line.strip())[:_LINE_LIMIT],
                is_collateral=rule.is_collateral,
                waited=rule.waited,
                peer=_peer(matched_line) if rule.is_collateral else -1,
                rule=rule.name,
            )
    return None


def _peer(line: str) -> int:
    match = _PEER.search(line)
    return int(match[1]) if match else -1
