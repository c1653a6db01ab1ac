"""The two main kinds of rules of line formats: named groups, and `name: number` pairs."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tipcflow.domain import Phase
from tipcflow.domain.numbers.metrics import is_loss
from tipcflow.parse.metrics import normalised, unit_of
from tipcflow.parse.rules.pairs import pairs, unreadable
from tipcflow.parse.rules.reading import Field, Reading, Span

# Names of pairs that give the position in the training; they are not metrics.
_EPOCH = frozenset({"epoch", "Epoch"})
_ITERATION = frozenset({"global_step", "iter", "Iter", "step", "Step", "batch_id", "batch"})
# Without `local_rank`: each node has a local rank 0; the rank is that of the file.
_RANK = frozenset({"rank", "rank_id"})
# Names that are not metrics: times of day, ETAs, log levels, source locations.
_NO_METRIC = frozenset({"eta", "ETA", "INFO", "DEBUG", "WARNING", "ERROR", "root", "local_rank"})
_INDEX = re.compile(r"\d{1,9}", re.ASCII)


@dataclass(frozen=True)
class PairsRule:
    """A line with a head, followed by any `name: number unit` pairs, including unknown names.

    Two processes that share a pipe may join two lines: each head starts a new reading.

    Attributes:
        head: required pattern; its groups `epoch`, `iteration` and `rank`, if present, have these values.
        phase: of the values.
        needle: a text in every such line, for fast rejection.
        anywhere: pairs may also precede the head.
        needs: sets of metrics; at least one of each set is required.
        prefix: of the metric names, if they are not the main ones of the phase.
        units: metric -> unit if the line prints none and other lines of the suite define it.
        names: printed name -> metric, if the meaning differs from other formats.
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
        """Parse the line; an empty list if it does not match."""
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
        readings = (self._reading(line, head, start, end) for head, start, end in bounds)
        return [reading for reading in readings if reading is not None]

    def _reading(self, line: str, head: re.Match[str], start: int, end: int) -> Reading | None:
        groups = head.re.groupindex
        places: dict[str, Span | None] = {
            name: head.span(name) if name in groups and head.start(name) >= 0 else None
            for name in ("epoch", "iteration", "rank")
        }
        fields = tuple(_fields(line, (start, end), places, self))
        names = {value.metric for value in fields}
        if not fields or not all(needed & names for needed in self.needs):
            return None
        return Reading(self.phase, fields, places["epoch"], places["iteration"], places["rank"])


def _fields(line: str, bounds: Span, places: dict[str, Span | None], rule: PairsRule) -> Iterator[Field]:
    """Return the values of a part of a line; a loss printed as a non-number (`None`) has no value."""
    seen: set[str] = set()
    for name, unit, number, at in pairs(line, *bounds):
        place = index_place(name, line, number)
        if place:
            places[place] = places[place] or number
        elif is_metric(name):
            metric = rule.names.get(name) or normalised(name)
            # If a line has several learning rates, the first one is `lr` and the others keep their full names.
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
    """Return the position that a pair gives: `epoch`, `iteration`, `rank`, or '' for a metric value."""
    if not _INDEX.fullmatch(line, *number):
        return ""
    if name in _EPOCH:
        return "epoch"
    if name in _ITERATION:
        return "iteration"
    return "rank" if name in _RANK else ""


def is_metric(name: str) -> bool:
    """Return whether a pair of that name may be a metric."""
    return name not in _NO_METRIC and not name.endswith((".py", ".cc", ".cpp", ".h"))


@dataclass(frozen=True)
class GroupsRule:
    """A line of a fixed form: each named group of the pattern is a value.

    Attributes:
        pattern: its groups `epoch`, `iteration` and `rank` have these values; every other named group is a
            metric. With `name`, only the group `value` is a metric.
        units: metric -> unit if it differs from the registry's.
        name: returns the metric name of a match; '' excludes it.
        empty: a matching line is recognized even if it has no value.
        listed: the line belongs to a list whose title may exclude it (`LineFormat.mutes`).
    """

    pattern: re.Pattern[str]
    phase: Phase = Phase.TRAIN
    needle: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    name: Callable[[re.Match[str]], str] | None = None
    listed: bool = False
    empty: bool = False

    def read(self, line: str) -> list[Reading]:
        """Parse the line; an empty list if it does not match."""
        if self.needle not in line:
            return []
        readings = (self._reading(match) for match in self.pattern.finditer(line))
        return [reading for reading in readings if reading.fields or self.empty]

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
    """Common interface of all rules."""

    def read(self, line: str) -> list[Reading]:
        """Parse the line; an empty list if it does not match the rule."""
