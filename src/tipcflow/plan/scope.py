"""Templates of a dialect, filled in with variables and slots.

`{name}` is the variable or, where there is none of that name, the slot's value; `{slot=}` is `key=value` of the
slot; `{slot=name}` its key with another value; `{!slot=name}` the same even where key or value are null.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from tipcflow.params.values import argument
from tipcflow.plan.reader import Reader

_PLACE = re.compile(r"\{(?P<force>!?)(?P<name>\w+)(?P<set>=(?P<value>\w*))?\}")


@lru_cache(maxsize=4096)
def _tokens(template: str) -> tuple[tuple[str, str, str, bool], ...]:
    """A template as (literal text, name, name of the value or '-', forced) pieces."""
    pieces = []
    end = 0
    for place in _PLACE.finditer(template):
        value = (place["value"] or place["name"]) if place["set"] else "-"
        pieces.append((template[end : place.start()], place["name"], value, bool(place["force"])))
        end = place.end()
    return (*pieces, (template[end:], "", "-", False))


class Scope:
    """Variables on top of a reader. `group` is the index of the device group, for paired slots."""

    def __init__(self, reader: Reader, variables: Mapping[str, str], *, group: int = 0) -> None:
        self.reader = reader
        self.variables = dict(variables)
        self.group = group

    def within(self, **variables: str) -> "Scope":
        """The same with further variables."""
        return Scope(self.reader, {**self.variables, **variables}, group=self.group)

    def get(self, name: str) -> str:
        """The variable, or the slot's value as its kind says; '' when neither exists."""
        if name in self.variables:
            return self.variables[name]
        reader = self.reader
        if not reader.has(name):
            return ""
        kind = reader.dialect.kind(name)
        if kind == "modes":
            return reader.for_mode(name)
        if kind == "paired":
            return reader.paired(name, self.group)
        return reader.value(name)

    def render(self, template: str) -> str:
        """The template with everything filled in."""
        parts = []
        for literal, name, value, forced in _tokens(template):
            parts.append(literal)
            if not name:
                continue
            if value == "-":
                parts.append(self.get(name))
            elif forced:
                parts.append(f"{self.reader.key(name)}={self.get(value)}")
            else:
                parts.append(argument(self.reader.key(name), self.get(value)))
        return "".join(parts)
