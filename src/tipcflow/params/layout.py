"""Line maps as data: which slot stands at which line, and what a line must look like to be that slot."""

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
        line: 0-based place among the non-empty lines.
        kind: how the value is meant: as it is, a list of alternatives, a mode table, alternatives paired
            with the device groups, or not at all (only the key counts).
        key: regular expression that the whole key must match; '' accepts any.
        words: the only values (list items) that make sense; empty accepts any.
    """

    line: int = Field(ge=0)
    kind: Kind = "plain"
    key: str = ""
    words: tuple[str, ...] = ()


class Layout(Frozen):
    """A line map.

    Attributes:
        lines: how many non-empty lines a file must have at least.
        most: how many it may have at most, 0 for no limit (what follows are sections found by their titles).
        stops: shorter lengths that are complete files too.
        titles: places of `=====name=====` lines.
        fillers: places of lines that carry nothing (`##`, `#`).
    """

    name: str
    lines: int
    most: int = 0
    titles: tuple[int, ...] = ()
    fillers: tuple[int, ...] = ()
    stops: tuple[int, ...] = ()
    slots: dict[str, SlotSpec]

    def at(self, index: int) -> str:
        """The name of what stands at a place, for messages; '' when nothing is declared there."""
        name = self._names.get(index, "")
        return name or ("section title" if index in self.titles else "filler" if index in self.fillers else "")

    def distance(self, count: int) -> int:
        """How many lines a file of `count` non-empty lines has too few or too many."""
        return max(self.lines - count, count - self.most if self.most else 0, 0)

    @cached_property
    def _names(self) -> dict[int, str]:
        return {spec.line: name for name, spec in reversed(self.slots.items())}


TITLE = re.compile(r"=+[^=]+=+\s*")
FILLER = re.compile(r"#+\s*")
# Slots whose value begins a command: a blank before it does no harm.
COMMANDS = frozenset(
    {
        *(f"{name}_train" for name in ("norm", "pact", "fpgm", "distill")),
        *(f"{name}_export" for name in ("norm", "quant", "fpgm", "distill")),
        *("eval", "inference", "converter", "kl_quant", "ptq"),
    }
)


@cache
def load_layout(name: str) -> Layout:
    """The layout of that name from the package's data.

    Raises:
        FileNotFoundError: there is none; only a broken dialect file asks for it.
    """
    folder = resources.files("tipcflow.params") / "dialects" / "layouts"
    data = own_yaml((folder / f"{name}.yaml").read_text(encoding="utf-8"))
    return Layout.model_validate({"name": name, **data})
