"""Rule for lines with both training and test values, as printed by examples and tutorials.

Epoch: 1/20, train loss: 0.452341, train acc: 87.00%, test loss: 0.193412, test acc: 94.10%, time: 12.3s
Epoch 2 | loss 0.5 | val acc 0.9
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tipcflow.domain import Phase
from tipcflow.parse.metrics import METRICS, normalised, unit_of
from tipcflow.parse.rules.groups_and_pairs import index_place, is_metric
from tipcflow.parse.rules.pairs import NUMBER, UNIT, pairs
from tipcflow.parse.rules.reading import Field, Reading, Span

_WHO = r"(?i:(?P<train>train(?:ing)?)|test(?:ing)?|val(?:id(?:ation)?)?|eval(?:uation)?)"
_PART = re.compile(r"(?:(?!\s-\s)(?:[^,|;]|,(?=\d)))+")
_WORDS = re.compile(
    rf"\s*(?P<who>{_WHO}[ _])?(?P<name>(?i:learning rate)|[A-Za-z][\w@()-]*)\s(?P<number>{NUMBER})"
    rf"(?:\s?(?P<unit>{UNIT}))?\s*\.?\s*"
)
_BEFORE = re.compile(rf"\b{_WHO}[ _]\Z")
_IN_FRONT = re.compile(rf"{_WHO}_(?=[A-Za-z])")
# A line without any of these metrics is an ordinary sentence that contains numbers.
_INFORMATIVE = frozenset({name for name, metric in METRICS.items() if metric.family == "quality"} | {"epoch_time"})


@dataclass(frozen=True)
class PhrasesRule:
    """Phrases of a name and a number, separated by commas or bars; a `train` or `test` prefix gives the phase.

    Attributes:
        head: required pattern; its groups `epoch`, `iteration` and `rank`, if present, have these values.
        phase: the phase whose values are read.
        needle: a text in every such line.
        other: phase of names without a `train` or `test` prefix.
    """

    head: re.Pattern[str]
    phase: Phase
    needle: str
    other: Phase = Phase.TRAIN

    def read(self, line: str) -> list[Reading]:
        """Parse the line's values of the phase; an empty list if it does not match."""
        heads = list(self.head.finditer(line)) if self.needle in line else []
        ends = [*(head.start() for head in heads[1:]), len(line)]
        readings = (self._reading(line, head, end) for head, end in zip(heads, ends, strict=False))
        return [reading for reading in readings if reading is not None]

    def _reading(self, line: str, head: re.Match[str], end: int) -> Reading | None:
        groups = head.re.groupindex
        places: dict[str, Span | None] = {
            name: head.span(name) if name in groups and head.start(name) >= 0 else None
            for name in ("epoch", "iteration", "rank")
        }
        fields: dict[tuple[Phase, str], Field] = {}
        for phase, name, unit, number, at in _phrases(line, head.end(), end):
            place = index_place(name.lower(), line, number)
            if place:
                places[place] = places[place] or number
            elif is_metric(name):
                metric = _metric(name, of_epoch=places["iteration"] is None)
                key = (phase or self.other, metric)
                fields.setdefault(key, Field(metric, unit_of(metric, unit), number, at))
        of_phase = tuple(field for (phase, _), field in fields.items() if phase is self.phase)
        if not of_phase or not any(metric in _INFORMATIVE for _, metric in fields):
            return None
        return Reading(self.phase, of_phase, places["epoch"], places["iteration"], places["rank"])


def _phrases(line: str, start: int, end: int) -> Iterator[tuple[Phase | None, str, str, Span, Span]]:
    """Yield (phase, name, unit, span of the number, span of the name) of each phrase."""
    for part in _PART.finditer(line, start, end):
        words = _WORDS.fullmatch(line, part.start(), part.end())
        if words:
            who = words if words["who"] else None
            yield _phase(who), words["name"], words["unit"] or "", words.span("number"), words.span("name")
            continue
        for name, unit, number, at in pairs(line, part.start(), part.end()):
            who = _IN_FRONT.match(name) or _BEFORE.search(line, max(part.start(), at[0] - 12), at[0])
            short = name[who.end() :] if who and who.string is name else name
            yield _phase(who), short, unit, number, at


def _phase(who: re.Match[str] | None) -> Phase | None:
    if who is None:
        return None
    return Phase.TRAIN if who["train"] else Phase.EVAL


def _metric(name: str, *, of_epoch: bool) -> str:
    small = name.lower().replace(" ", "_")
    if of_epoch and small == "time":
        return "epoch_time"
    known = normalised(small)
    return known if known in METRICS else normalised(name)
