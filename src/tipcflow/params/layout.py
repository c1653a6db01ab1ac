"""Line maps as data: the line of each slot, and the pattern that this line must match."""

import re
from functools import cache, cached_property
from importlib import resources
from typing import Any, Literal

from pydantic import Field, ValidationError

from tipcflow.config.loader import first_error
from tipcflow.config.own_dialects import Source, own_layout
from tipcflow.config.yaml_text.shipped import own_yaml
from tipcflow.domain import ConfigError, Frozen
from tipcflow.params.values import Split

Kind = Literal["plain", "list", "modes", "paired", "key"]


class SlotSpec(Frozen):
    """One slot of a layout.

    Attributes:
        line: 0-based index among the non-empty lines.
        kind: type of the value: plain, a list of alternatives, a mode table, alternatives paired with the
            device groups, or unused (only the key is significant).
        key: regular expression that the whole key must match; '' accepts any key.
        words: the valid values (list items); empty accepts any value.
        split: where the script ends the value, if it differs from the dialect; '' for that of the dialect.
    """

    line: int = Field(ge=0)
    kind: Kind = "plain"
    key: str = ""
    words: tuple[str, ...] = ()
    split: Literal["", Split] = ""


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


def load_layout(name: str) -> Layout:
    """Return the layout of that name: a shipped one, or one in the folder of the configuration.

    Raises:
        ConfigError: the layout does not exist, or its file is wrong.
    """
    return _shipped(name) if name in shipped_layouts() else _own(name)


@cache
def shipped_layouts() -> tuple[str, ...]:
    """Return the names of the shipped layouts."""
    folder = resources.files("tipcflow.params") / "dialects" / "layouts"
    return tuple(sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir()))


@cache
def _shipped(name: str) -> Layout:
    return Layout.model_validate({"name": name, **_layout_data(name, ())})


def _own(name: str) -> Layout:
    source = own_layout(name)
    data = _layout_data(name, ())
    if source is None:  # cannot happen: _layout_data has found it
        raise ConfigError("unknown layout", key="layout", found=name)
    try:
        return Layout.model_validate({"name": name, **data})
    except ValidationError as error:
        raise first_error(error, source.lines or {}, source.file, Layout) from error


def _layout_data(name: str, seen: tuple[str, ...]) -> dict[str, Any]:
    """Return a layout's data over those of the layout that it extends; a null slot removes one."""
    if name in shipped_layouts():
        folder = resources.files("tipcflow.params") / "dialects" / "layouts"
        source = Source(own_yaml((folder / f"{name}.yaml").read_text(encoding="utf-8")))
    else:
        own_source = own_layout(name)
        if own_source is None:
            expected = f"one of {', '.join(shipped_layouts())}, or a file in dialects/layouts"
            raise ConfigError("unknown layout", key="layout", found=name, expected=expected)
        source = own_source
    base = source.data.get("extends")
    data = {key: value for key, value in source.data.items() if key != "extends"}
    if base in (*seen, name):
        raise source.error("the layout extends itself", "extends", found=str(base), expected="another layout")
    return merged(_layout_data(str(base), (*seen, name)), data) if base else data


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Merge `over` recursively into `base`; a null removes the base's value."""
    result = dict(base)
    for key, value in over.items():
        if value is None:
            result.pop(key, None)
            continue
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result
