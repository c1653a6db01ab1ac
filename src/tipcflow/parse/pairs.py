"""`name: number unit` pairs inside a recognised line, in any order, separated by commas or blanks."""

import re
from collections.abc import Iterator

NUMBER = r"[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf(?:inity)?)"
# The name may hold what the suites' names hold: lr(Cosine), Acc@1, mAP(0.5). Tensors print as [0.5].
# It starts where no other name goes on, and is never taken apart again: linear time on any line.
_PAIR = re.compile(
    rf"(?<![\w@/.()-])(?P<name>[A-Za-z_][\w@/.()-]*+)\s*[:=]\s*\[?(?P<number>{NUMBER})\]?(?![\w:/-])\s*"
    r"(?P<unit>(?:images/sec|images/s|sec|s|ms|MB|%)(?![\w/:]))?",
    re.IGNORECASE,
)


def pairs(text: str) -> Iterator[tuple[str, float, str]]:
    """(name, value, unit as printed) of every numeric pair; nan and inf are values.

    What follows a name but is no plain number (a date, `0:01:40`, a word) is skipped.
    """
    for found in _PAIR.finditer(text):
        yield found["name"], float(found["number"]), (found["unit"] or "")
