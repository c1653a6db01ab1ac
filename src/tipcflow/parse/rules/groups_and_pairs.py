"""The two kinds of rules that line formats are made of."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tipcflow.domain import Phase
from tipcflow.domain.numbers.metrics import is_loss
from tipcflow.parse.metrics import normalised, unit_of
from tipcflow.parse.rules.pairs import pairs, unreadable
from tipcflow.parse.rules.reading import Field, Reading, Span

# Words of a pair that say where the training stands; they are no metrics.
_EPOCH = frozenset({"epoch", "Epoch"})
_ITERATION = frozenset({"global_step", "iter", "Iter", "step", "Step", "batch_id", "batch"})
# Not `local_rank`: each node has a local rank 0, the rank is that of the file.
_RANK = frozenset({"rank", "rank_id"})
# Times of day and of arrival, levels of a logger, places in source code: numbers that measure nothing.
_NO_METRIC = frozenset({"eta", "ETA", "INFO", "DEBUG", "WARNING", "ERROR", "root", "local_rank"})
_INDEX = re.compile(r"\d{1,9}", re.ASCII)


@dataclass(frozen=True)
class PairsRule:
    """A line with a head, and after it any `name: number unit` pairs, unknown ones included.

    Two processes that share a pipe may glue two lines together: each head starts anew.

    Attributes:
        head: what the line must have; its groups `epoch`, `iteration` and `rank`, where it has them, are those.
        phase: what the numbers are of.
        needle: a text that every such line has: the quick way to say no.
        anywhere: the pairs may stand before the head too.
        needs: sets of metrics; of each set one at least must be there.
        prefix: stands before the metrics' names, where they are not the phase's main ones.
        units: metric -> unit where the line prints none, and the suite's other lines tell it.
        names: names as printed -> metric, where they mean something else than in other formats.
    """

    head: re.Pattern[str]
    phase: Phase = Phase.TRAIN
    needle: str = ""
    anywhere: bool = False
    needs: tuple[frozenset[str], ...] = ()
    prefix: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    def read(self, line: str) -> list[Reading]:
        """What the line says; nothing when it is none of these."""
        if self.needle not in line:
            return []
        heads = list(self.head.finditer(line))
        if not heads:
            return []
        if self.anywhere:
            bounds = [(heads[0], 0, len(line))]
        else:
            ends = [*(head.start() for head in heads[1:]), len(line)]
            bounds = [(head, head.end(), end) for head, end in zip(heads, ends, strict=True)]
        found = (self._reading(line, head, start, end) for head, start, end in bounds)
        return [one for one in found if one is not None]

    def _reading(self, line: str, head: re.Match[str], start: int, end: int) -> Reading | None:
        groups = head.re.groupindex
        places: dict[str, Span | None] = {
            name: head.span(name) if name in groups and head.start(name) >= 0 else None
            for name in ("epoch", "iteration", "rank")
        }
        fields = tuple(_fields(line, (start, end), places, self))
        names = {one.metric for one in fields}
        if not fields or not all(needed & names for needed in self.needs):
            return None
        return Reading(self.phase, fields, places["epoch"], places["iteration"], places["rank"])


def _fields(line: str, bounds: Span, places: dict[str, Span | None], rule: PairsRule) -> Iterator[Field]:
    """The numbers of a part of a line; a loss that is printed but is no number (`None`) is one without a value."""
    seen: set[str] = set()
    for name, unit, number, at in pairs(line, *bounds):
        place = index_place(name, line, number)
        if place:
            places[place] = places[place] or number
        elif is_metric(name):
            metric = rule.names.get(name) or normalised(name)
            # Several learning rates of one line: the first is `lr`, the others keep their full names.
            metric = name if metric in seen else metric
            seen.add(metric)
            known = unit_of(metric, unit or rule.units.get(metric, ""))
            yield Field(rule.prefix + metric, known, number, at)
    if rule.phase is Phase.TRAIN and not rule.anywhere:
        for name, value, at in unreadable(line, *bounds):
            metric = rule.names.get(name) or normalised(name)
            if is_loss(metric) and metric not in seen:
                yield Field(rule.prefix + metric, unit_of(metric), value, at)


def index_place(name: str, line: str, number: Span) -> str:
    """What a pair tells of where the training stands: `epoch`, `iteration`, `rank`, or '' for a value."""
    if not _INDEX.fullmatch(line, *number):
        return ""
    if name in _EPOCH:
        return "epoch"
    if name in _ITERATION:
        return "iteration"
    return "rank" if name in _RANK else ""


def is_metric(name: str) -> bool:
    """Whether a pair of that name may measure something."""
    return name not in _NO_METRIC and not name.endswith((".py", ".cc", ".cpp", ".h"))


@dataclass(frozen=True)
class GroupsRule:
    """A line of a fixed form: each named group of the pattern is a number.

    Attributes:
        pattern: its groups `epoch`, `iteration`, `rank` are those; every other named group is a metric. With
            `name`, only the group `value` is one.
        units: metric -> unit where it is not the registry's.
        name: what the value is called, from the match; '' leaves it out.
        empty: a line that fits is recognised even when it gives no number.
        listed: the line is one of a list whose title may say that it does not count (`LineFormat.mutes`).
    """

    pattern: re.Pattern[str]
    phase: Phase = Phase.TRAIN
    needle: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    name: Callable[[re.Match[str]], str] | None = None
    listed: bool = False
    empty: bool = False

    def read(self, line: str) -> list[Reading]:
        """What the line says; nothing when it is none of these."""
        if self.needle not in line:
            return []
        found = (self._reading(match) for match in self.pattern.finditer(line))
        return [one for one in found if one.fields or self.empty]

    def _reading(self, match: re.Match[str]) -> Reading:
        places: dict[str, Span | None] = dict.fromkeys(("epoch", "iteration", "rank"))
        fields = []
        for group in match.re.groupindex:
            if match.start(group) < 0:
                continue
            if group in places:
                places[group] = match.span(group)
                continue
            if self.name is None:
                metric, at = normalised(group), (0, 0)
            else:
                metric, at = self.name(match), (match.start(), match.start(group))
            if metric and (self.name is None or group == "value"):
                unit = self.units.get(group) or unit_of(metric)
                fields.append(Field(metric, unit, match.span(group), at))
        return Reading(self.phase, tuple(fields), places["epoch"], places["iteration"], places["rank"])


class Rule(Protocol):
    """What all rules can do."""

    def read(self, line: str) -> list[Reading]:
        """What the line says; nothing when it is none of the rule's."""
