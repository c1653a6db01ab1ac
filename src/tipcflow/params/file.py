"""A params file after reading: its slots, each with the place it came from."""

import hashlib
from dataclasses import dataclass

from tipcflow.domain import Frozen
from tipcflow.params.lines import TextLine
from tipcflow.params.values import mode_entries, split_list


@dataclass(frozen=True)
class Slot:
    """One positional line of a params file.

    Attributes:
        name: what the dialect calls it.
        index: place among the non-empty lines, 0-based.
        line: physical line, 1-based; 0 when the file ends before it.
        key, value: as the suite's helper functions cut the line.
        full: everything behind the first colon.
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
        """Whether the file has this line at all."""
        return self.line > 0

    @property
    def items(self) -> list[str]:
        """The alternatives of the value, separated by `|`."""
        return split_list(self.value)

    @property
    def modes(self) -> dict[str, str]:
        """The value read as a mode table."""
        return mode_entries(self.value)


class ParamsFile(Frozen):
    """One params file, read by one dialect's line map. `slots` has every slot of the layout."""

    file: str
    dialect: str
    layout: str
    sha256: str
    lines: tuple[TextLine, ...]
    slots: dict[str, Slot]

    def __getitem__(self, name: str) -> Slot:
        """The slot of that name.

        Raises:
            KeyError: when the layout has no such slot.
        """
        return self.slots[name]


def text_sha256(text: str) -> str:
    """The hash that a plan records for its params file."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
