"""User-defined line formats (configs/formats/<name>.yaml): patterns with a time limit per line.

    name: tea
    rules:
      - pattern: 'step (?P<iteration>\\d+) of epoch (?P<epoch>\\d+): loss=(?P<loss>\\S+) speed=(?P<ips>[0-9.]+)'
        sample: 'step 10 of epoch 1: loss=0.25 speed=120.5'

tipcflow cannot assume that digits are interchangeable in a user's pattern, so these lines are parsed one by
one.
"""

from functools import lru_cache

from tipcflow.config.formats import LINE_LIMIT_S, FormatRule, compiled, defined
from tipcflow.domain import Phase
from tipcflow.parse.metrics import normalised, unit_of
from tipcflow.parse.rules.line_format import LineFormat
from tipcflow.parse.rules.pairs import pairs
from tipcflow.parse.rules.reading import Field, Reading, Span

_PLACES = ("epoch", "iteration", "rank")
# After this number of timeouts, a pattern is not tried on further lines: a log is always read to its end.
_TOO_SLOW = 10


class CustomRule:
    """One user-defined pattern."""

    def __init__(self, rule: FormatRule) -> None:
        self._pattern = compiled(rule.pattern)
        self._phase = Phase(rule.phase)
        self._units = rule.units
        self._pairs = rule.pairs
        self._slow = 0

    def read(self, line: str) -> list[Reading]:
        """Parse the line; an empty list if the pattern does not match or exceeds its time limit."""
        if self._slow >= _TOO_SLOW:
            return []
        try:
            match = self._pattern.search(line, timeout=LINE_LIMIT_S)
        except TimeoutError:
            self._slow += 1
            return []
        if match is None:
            return []
        places: dict[str, Span | None] = dict.fromkeys(_PLACES)
        fields: list[Field] = []
        for group in self._pattern.groupindex:
            text, span = match[group], match.span(group)
            if text is None:
                continue
            if group in places:
                places[group] = span if text.isascii() and text.isdigit() and len(text) < 10 else None
            elif _is_number(text):
                metric = normalised(group)
                fields.append(Field(metric, self._units.get(group) or unit_of(metric), span, (0, 0)))
        if self._pairs:
            taken = {field.metric for field in fields}
            for name, unit, number, at in pairs(line, match.end()):
                metric = normalised(name)
                if metric not in taken:
                    fields.append(Field(metric, self._units.get(name) or unit_of(metric, unit), number, at))
        return [Reading(self._phase, tuple(fields), *places.values())] if fields else []


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_definition(name: str) -> bool:
    """Return whether a suite's `log_format` is a definition as JSON (`config.formats.definition`) instead of a
    name."""
    return name.startswith("{")


@lru_cache(maxsize=8)
def custom_format(text: str) -> LineFormat:
    """Return the format of a definition.

    Raises:
        ConfigError: the definition is invalid.
    """
    definition = defined(text)
    rules = [(rule.phase, CustomRule(rule)) for rule in definition.rules]
    return LineFormat(
        definition.name,
        training=tuple(rule for phase, rule in rules if phase == "train"),
        evaluation=tuple(rule for phase, rule in rules if phase == "eval"),
        steady=False,
    )
