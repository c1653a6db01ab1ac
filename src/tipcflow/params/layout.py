"""Line maps as data: the line of each slot, and the pattern that this line must match."""

import re
from functools import cache, cached_property
from importlib import resources
from typing import Literal

from pydantic import Field

from tipcflow.config.own_yaml import own_yaml
from tipcflow.domain import Frozen

Kind = Literal["plain", "list", "modes", "paired", "key"]


class SlotSpec(Frozen):
    """One slot of a layout.

    Attributes:
        line: 0-based index among the non-empty lines.
        kind: type of the value: plain, a list of alternatives, a mode table, alternatives paired with the
            device groups, or unused (only the key is significant).
        key: regular expression that the whole key must match; '' accepts any key.
        words: the valid values (list items); empty accepts any value.
    """

    line: int = Field(ge=0)
    kind: Kind = "plain"
    key: str = ""
    words: tuple[str, ...] = ()


class Layout(Frozen):
    """A line map.

    Attributes:
        lines: minimum number of non-empty lines of a file.
        most: maximum number of lines, 0 for no limit (sections found by their titles may follow).
        stops: shorter valid lengths of complete files.
        titles: positions of `=====name=====` lines.
        fillers: positions of lines without content (`##`, `#`).
    """

    name: str
    lines: int
    most: int = 0
    titles: tuple[int, ...] = ()
    fillers: tuple[int, ...] = ()
    stops: tuple[int, ...] = ()
    slots: dict[str, SlotSpec]

    def at(self, index: int) -> str:
        """Return the name of the line at a position, for messages; '' if the layout declares none."""
        name = self._names.get(index, "")
        return name or ("section title" if index in self.titles else "filler" if index in self.fillers else "")

    def distance(self, count: int) -> int:
        """Return by how many lines a file of `count` non-empty lines is too short or too long."""
        return max(self.lines - count, count - self.most if self.most else 0, 0)

    @cached_property
    def _names(self) -> dict[int, str]:
        return {spec.line: name for name, spec in reversed(self.slots.items())}


TITLE = re.compile(r"=+[^=]+=+\s*")
FILLER = re.compile(r"#+\s*")
# Slots whose value begins a command: a leading space is harmless.
COMMANDS = frozenset(
    {
        *(f"{name}_train" for name in ("norm", "pact", "fpgm", "distill")),
        *(f"{name}_export" for name in ("norm", "quant", "fpgm", "distill")),
        *("eval", "inference", "converter", "kl_quant", "ptq"),
    }
)


@cache
def load_layout(name: str) -> Layout:
    """Return the layout of that name from the package's data.

    Raises:
        FileNotFoundError: the layout does not exist; only a broken dialect file requests one.
    """
    folder = resources.files("tipcflow.params") / "dialects" / "layouts"
    data = own_yaml((folder / f"{name}.yaml").read_text(encoding="utf-8"))
    return Layout.model_validate({"name": name, **data})
