"""Rule for lines of the form `Name 0.5 Name 0.7`, as printed by PyTorch's examples."""

import re
from dataclasses import dataclass

from tipcflow.domain import Phase
from tipcflow.parse.metrics import normalised, unit_of
from tipcflow.parse.rules.reading import Field, Reading


@dataclass(frozen=True)
class WordsRule:
    """A head, followed by names and numbers that are separated by spaces only.

    Attributes:
        head: its groups `epoch` and `iteration`, if present, have these values.
        word: pattern with the groups `name` and `number`.
        unit: of all values, if it differs from the registry's.
    """

    head: re.Pattern[str]
    word: re.Pattern[str]
    phase: Phase
    needle: str
    unit: str = ""

    def read(self, line: str) -> list[Reading]:
        """Parse the line; an empty list if it does not match."""
        head = self.head.search(line) if self.needle in line else None
        if head is None:
            return []
        fields = tuple(
            Field(
                normalised(match["name"]),
                self.unit or unit_of(normalised(match["name"])),
                match.span("number"),
                match.span("name"),
            )
            for match in self.word.finditer(line, head.end())
        )
        groups = head.re.groupindex
        epoch, iteration = (head.span(name) if name in groups else None for name in ("epoch", "iteration"))
        return [Reading(self.phase, fields, epoch, iteration)] if fields else []
