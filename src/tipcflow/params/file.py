"""Parsed params file: its slots with their locations."""

import hashlib
from dataclasses import dataclass

from tipcflow.domain import Frozen
from tipcflow.params.lines import TextLine
from tipcflow.params.values import mode_entries, split_list


@dataclass(frozen=True)
class Slot:
    """One positional line of a params file.

    Attributes:
        name: the slot's name in the dialect.
        index: 0-based index among the non-empty lines.
        line: physical line, 1-based; 0 if the file ends before the slot.
        key, value: split by the rules of the suite's helper functions.
        full: the text after the first colon.
    """

    name: str
    index: int
    line: int = 0
    text: str = ""
    key: str = ""
    value: str = ""
    full: str = ""

    @property
    def present(self) -> bool:
        """Whether the file has this line."""
        return self.line > 0

    @property
    def items(self) -> list[str]:
        """Return the alternatives of the value, separated by `|`."""
        return split_list(self.value)

    @property
    def modes(self) -> dict[str, str]:
        """Return the value parsed as a mode table."""
        return mode_entries(self.value)


class ParamsFile(Frozen):
    """One params file, parsed by a dialect's line map. `slots` has every slot of the layout."""

    file: str
    dialect: str
    layout: str
    sha256: str
    lines: tuple[TextLine, ...]
    slots: dict[str, Slot]

    def __getitem__(self, name: str) -> Slot:
        """Return the slot of that name.

        Raises:
            KeyError: the layout has no such slot.
        """
        return self.slots[name]


def text_sha256(text: str) -> str:
    """Return the hash that a plan records for its params file."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
