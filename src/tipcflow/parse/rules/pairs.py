"""Finds `name: number unit` pairs in a recognized line, in any order, separated by commas or spaces."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from tipcflow.parse.rules.reading import Span

NUMBER = r"(?>[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|(?i:nan|inf(?:inity)?)))"
# Units: a single word per second (images, samples, instance, ins, tokens …), times, sizes, percentages.
UNIT = r"[A-Za-z]+/s(?:ec|tep)?|sec|ms|s|[KMGT]i?B|%"
# Names contain the characters of the suites' names: lr(Cosine), Acc@1, mAP(0.5). Tensors print as [0.5]; old
# logs quote names. A name starts only where no other name continues, and the match never backtracks into a
# name: linear time on any line. The number must not be followed by more of a word, a date, a time of day, a
# version or the number itself: `1,234.5` yields no value instead of 1.
_PAIR = re.compile(
    rf"(?<![\w@/.()-])(?P<name>[A-Za-z_][\w@/.()-]*+)['\"]?\s*+[:=]\s*+"
    rf"(?P<list>\[)?(?P<number>{NUMBER})\]?(?(list)|(?!,\d))"
    rf"(?:\s*+(?P<unit>{UNIT})(?![\w/:])|(?![\w:/%-])(?!\.\d))",
    re.ASCII,
)


class Pair(NamedTuple):
    """One pair as printed, with the positions of its name and number in the text."""

    name: str
    unit: str
    number: Span
    at: Span


def pairs(text: str, start: int = 0, end: int | None = None) -> Iterator[Pair]:
    """Yield every numeric pair of text[start:end]; nan and inf are numbers.

    A value that is not a plain number (a date, `0:01:40`, a word, `3.3.1`) is skipped.
    """
    for match in _PAIR.finditer(text, start, len(text) if end is None else end):
        yield Pair(match["name"], match["unit"] or "", match.span("number"), match.span("name"))


# Values of a pair that are not numbers: Python's and JSON's null values, tensors, and empty values.
_UNREADABLE = re.compile(
    r"(?<![\w@/.()-])(?P<name>[A-Za-z_][\w@/.()-]*+)['\"]?\s*+(?P<sign>[:=])[ \t]*+"
    r"(?:(?P<word>None|null|NULL|undefined|<[A-Za-z])|(?P<tensor>[Tt]ensor\()|(?=[,;|]|$))",
    re.ASCII,
)
# The number of a tensor if it is on the same line: tensor(0.5, …), Tensor(shape=[1], …, [0.5]).
_IN_TENSOR = re.compile(rf"(?:(?<=ensor\()|(?<=\s)\[)\s{{0,9}}(?P<number>{NUMBER})[\],)]")


def unreadable(text: str, start: int, end: int) -> Iterator[tuple[str, Span, Span]]:
    """Yield (name, span of the value, span of the name) of the pairs whose printed value is not a plain number.

    The value of a tensor that is on the same line is its number. A value without a number is read as nan.
    """
    for match in _UNREADABLE.finditer(text, start, end):
        value = match.span("word")
        if match["word"] is None:
            value = match.span("sign")
        if match["tensor"]:
            inner = _IN_TENSOR.search(text, match.end(), end)
            value = inner.span("number") if inner else match.span("tensor")
        yield match["name"], value, match.span("name")
