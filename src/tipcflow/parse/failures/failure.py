"""The end of a log -> what went wrong, by one table of rules (parse/failure_rules.py)."""

import re
from collections.abc import Iterable

from tipcflow.domain import Frozen
from tipcflow.domain.masking import mask
from tipcflow.domain.run.failure import FailureClass
from tipcflow.parse.failures.launch import REPEATS_FROM
from tipcflow.parse.failures.rules import ABORT, RULES, Rule
from tipcflow.parse.text import strip_ansi

# Python's own, also with the rank that torchrun puts before it; not the one that Paddle prints of its C++ part.
_TRACEBACK = re.compile(r"(?<!C\+\+ )Traceback \(most recent call last\):$")
_PREFIX = re.compile(r"^(?:\[(?:rank|default)\d+\]:? ?)")
# The last line of a traceback is its first one that is not indented.
_EXCEPTION = re.compile(r"^[A-Za-z_][\w.]*(?:: |:?$)")
# An exception without words of its own tells them below: Paddle prints its C++ part first.
_BELOW = 30
# Without an exception: what a script printed long before its end was no reason to end.
_LAST_LINES = 20
_ABORT_LINES = 300
_ENDED = re.compile(r"^(?:SystemExit|KeyboardInterrupt)\b")
_PROGRESS = re.compile(r"(?i:\b(?:epoch|iter|step)\b.*\bloss\b)")
# Longer lines are data, not words.
_WIDTH = 2000
_SAID = 300
# As gloo in Paddle names the other end of a connection that was closed.
_PEER = re.compile(r"\bpair_rank = (\d+)")


class Trouble(Frozen):
    """What the end of one process' log tells.

    Attributes:
        said: the line that tells it, at most 300 characters.
        victim: whether it only says that a peer went away.
        waited: whether it says that a peer did not come in time: nobody had died by then.
        peer: the rank that it says is missing, -1 for none.
        rule: the name of the rule, '' for an exception that no rule knows.
    """

    failure_class: FailureClass
    said: str
    victim: bool = False
    waited: bool = False
    peer: int = -1
    rule: str = ""


def trouble_of(text: str) -> Trouble | None:
    """What went wrong according to the end of a log; None when nothing in it tells.

    What names a cause wherever it stands (memory, disk) counts first; then the exception that ended the process;
    then, without one, any line that a rule knows. What a rule does not know is an error of the code.
    """
    lines = _lines(text)
    found = _first(
        (rule for rule in RULES if rule.anywhere and rule.failure_class is not FailureClass.CODE_ERROR), lines
    )
    if found is not None:
        return found
    block = _exception(lines)
    if block:
        known = _first(RULES, block)
        return known or Trouble(failure_class=FailureClass.CODE_ERROR, said=mask(block[0].strip())[:_SAID])
    found = _first(RULES, lines[-_LAST_LINES:])
    if found is not None and found.rule == ABORT:
        # C++ code that a peer's end surprises aborts, with its own words above a long stack.
        return _first((rule for rule in RULES if rule.victim), lines[-_ABORT_LINES:]) or found
    return found


def _lines(text: str) -> list[str]:
    """Lines without the launcher's repetition and without those of a training that went well so far."""
    lines = [_PREFIX.sub("", line.rstrip()[:_WIDTH]) for line in strip_ansi(text).replace("\r", "\n").split("\n")]
    end = next((number for number, line in enumerate(lines) if REPEATS_FROM in line), len(lines))
    # The repetition is all there is when the worker's output was not echoed before.
    kept = lines[:end] if _exception(lines[:end]) or not _exception(lines) else lines
    return [line for line in kept if line and not _PROGRESS.search(line)]


def _exception(lines: list[str]) -> list[str]:
    """The last exception of Python in a log with its message; [] when there is none."""
    starts = [number for number, line in enumerate(lines) if _TRACEBACK.search(line)]
    for start in reversed(starts):
        for number in range(start + 1, len(lines)):
            if _EXCEPTION.match(lines[number]) and not _ENDED.match(lines[number]):
                return lines[number : number + (_BELOW if lines[number].endswith(":") else 1)]
    return []


def _first(rules: Iterable[Rule], lines: list[str]) -> Trouble | None:
    """What the first rule that fits says, with the last line that it fits."""
    for rule in rules:
        said = next((line for line in reversed(lines) if rule.pattern.search(line)), None)
        if said is not None:
            return Trouble(
                failure_class=rule.failure_class,
                said=mask(said.strip())[:_SAID],
                victim=rule.victim,
                waited=rule.waited,
                peer=_peer(said) if rule.victim else -1,
                rule=rule.name,
            )
    return None


def _peer(said: str) -> int:
    found = _PEER.search(said)
    return int(found[1]) if found else -1
