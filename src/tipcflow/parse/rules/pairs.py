"""`name: number unit` pairs inside a recognised line, in any order, separated by commas or blanks."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from tipcflow.parse.rules.reading import Span

NUMBER = r"(?>[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|(?i:nan|inf(?:inity)?)))"
# One letter word per second (images, samples, instance, ins, tokens …), times, sizes, shares.
UNIT = r"[A-Za-z]+/s(?:ec|tep)?|sec|ms|s|[KMGT]i?B|%"
# The name may hold what the suites' names hold: lr(Cosine), Acc@1, mAP(0.5). Tensors print as [0.5], old logs put
# names into quotes. A name starts where no other one goes on, and is never taken apart again: linear time on any
# line. What follows the number must not be more of a word, a date, a time of day, a version, or of the number: of
# `1,234.5` nothing is read, rather than 1.
_PAIR = re.compile(
    rf"(?<![\w@/.()-])(?P<name>[A-Za-z_][\w@/.()-]*+)['\"]?\s*+[:=]\s*+"
    rf"(?P<list>\[)?(?P<number>{NUMBER})\]?(?(list)|(?!,\d))"
    rf"(?:\s*+(?P<unit>{UNIT})(?![\w/:])|(?![\w:/%-])(?!\.\d))",
    re.ASCII,
)


class Pair(NamedTuple):
    """One pair as printed, with the places of its name and number in the text."""

    name: str
    unit: str
    number: Span
    at: Span


def pairs(text: str, start: int = 0, end: int | None = None) -> Iterator[Pair]:
    """Every numeric pair of text[start:end]; nan and inf are numbers.

    What follows a name but is no plain number (a date, `0:01:40`, a word, `3.3.1`) is skipped.
    """
    for found in _PAIR.finditer(text, start, len(text) if end is None else end):
        yield Pair(found["name"], found["unit"] or "", found.span("number"), found.span("name"))


# Values of a pair that are no number: Python's and JSON's words for nothing, tensors, and nothing at all.
_UNREADABLE = re.compile(
    r"(?<![\w@/.()-])(?P<name>[A-Za-z_][\w@/.()-]*+)['\"]?\s*+(?P<sign>[:=])[ \t]*+"
    r"(?:(?P<word>None|null|NULL|undefined|<[A-Za-z])|(?P<tensor>[Tt]ensor\()|(?=[,;|]|$))",
    re.ASCII,
)
# A tensor's own number, as far as it stands in the same line: tensor(0.5, …), Tensor(shape=[1], …, [0.5]).
_IN_TENSOR = re.compile(rf"(?:(?<=ensor\()|(?<=\s)\[)\s{{0,9}}(?P<number>{NUMBER})[\],)]")


def unreadable(text: str, start: int, end: int) -> Iterator[tuple[str, Span, Span]]:
    """(name, place of the value, place of the name) of the pairs whose value is printed but is no plain number.

    The value of a tensor that stands in the same line is its number. A value without a number is read as nan.
    """
    for found in _UNREADABLE.finditer(text, start, end):
        value = found.span("word")
        if found["word"] is None:
            value = found.span("sign")
        if found["tensor"]:
            inner = _IN_TENSOR.search(text, found.end(), end)
            value = inner.span("number") if inner else found.span("tensor")
        yield found["name"], value, found.span("name")
