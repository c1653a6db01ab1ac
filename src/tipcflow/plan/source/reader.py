"""Slot reader: values of a params file in the script's semantics (bash) or the file's (spec)."""

import re

from tipcflow.domain import Compat
from tipcflow.params import Dialect, ParamsFile
from tipcflow.params.modes import TABLE_MODES
from tipcflow.params.values import mode_entries, split_list
from tipcflow.plan.source.files import FileView

_GLOB = re.compile(r"[*?[]")
_SWALLOWED = frozenset({"-n", "-e", "-E", "-ne", "-en"})


_SISTERS = {
    "lite_train_whole_infer": "lite_train_lite_infer",
    "lite_train_lite_infer": "lite_train_whole_infer",
}


def sister_mode(mode: str) -> str:
    """Return the mode with the same training and another inference; '' if none."""
    return _SISTERS.get(mode, "")


def is_mode_table(value: str) -> bool:
    """Whether every alternative of a value is an entry for a mode."""
    return "=" in value and all(entry.partition("=")[0].strip() in TABLE_MODES for entry in split_list(value))


class Reader:
    """Keys and values of one params file in one mode, under one of the two semantics.

    bash: the output of the script's helper functions: truncated at the second colon, spaces kept, patterns
    expanded where files match. spec: the whole text after the first colon, stripped.
    """

    def __init__(
        self, params: ParamsFile, dialect: Dialect, *, mode: str, compat: Compat, files: FileView
    ) -> None:
        self.params = params
        self.dialect = dialect
        self.mode = mode
        self.bash = compat is Compat.BASH
        self._files = files
        self._keys: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._meant: dict[tuple[str, int], str] = {}

    def has(self, slot: str) -> bool:
        """Whether the layout has this slot."""
        return slot in self.params.slots

    def line(self, slot: str) -> int:
        """Return the physical line of a slot, 0 if the file or the layout has none."""
        return self.params.slots[slot].line if self.has(slot) else 0

    def key(self, slot: str) -> str:
        """Return the key of a slot; '' if the layout has no such slot."""
        if slot not in self._keys:
            key = self.params[slot].key if self.has(slot) else ""
            self._keys[slot] = self._echo(key) if self.bash else key.strip()
        return self._keys[slot]

    def value(self, slot: str) -> str:
        """Return the value of a slot; '' if the layout has no such slot."""
        if slot not in self._values:
            entry = self.params.slots.get(slot)
            if entry is None:
                return ""
            self._values[slot] = self._echo(entry.value) if self.bash else entry.full.strip()
        return self._values[slot]

    def items(self, slot: str) -> list[str]:
        """Return the alternatives of a slot."""
        items = split_list(self.value(slot))
        return items if self.bash else [item.strip() for item in items]

    def for_mode(self, slot: str) -> str:
        """Return the entry of the reader's mode in a mode table.

        spec applies a bare value to every mode, and uses the entry of the mode with the same training if the
        mode has no entry; the scripts drop the argument, unless the dialect has a default.
        """
        value = self.value(slot)
        entries = mode_entries(value)
        if self.bash:
            return entries.get(self.mode, "") or self.dialect.defaults.get(slot, "")
        if not entries:
            return "" if "=" in value else value
        return entries.get(self.mode, entries.get(sister_mode(self.mode), "")).strip()

    def meant(self, slot: str, group: int) -> str:
        """Return a slot's value for the device group at index `group`, by kind; '' if there is no such slot."""
        place = (slot, group)
        if place not in self._meant:
            self._meant[place] = self._by_kind(slot, group) if self.has(slot) else ""
        return self._meant[place]

    def _by_kind(self, slot: str, group: int) -> str:
        """Return the value by kind: spec resolves mode tables and splits device words; scripts do not."""
        kind, value = self.dialect.kind(slot), self.value(slot)
        if kind == "modes" or (kind == "plain" and not self.bash and is_mode_table(value)):
            return self.for_mode(slot)
        if kind == "paired" or (slot == "use_gpu" and not self.bash and "|" in value):
            return self.paired(slot, group)
        return value

    def paired(self, slot: str, index: int) -> str:
        """Return the alternative of the device group at `index`.

        spec applies a single alternative to every group; the scripts drop it from the second group on.
        """
        items = self.items(slot)
        if not self.bash and len(items) == 1:
            return items[0]
        return items[index] if index < len(items) else ""

    def _echo(self, text: str) -> str:
        """Return what `echo` prints for an unquoted variable: patterns are replaced by matching files."""
        if text in _SWALLOWED:
            return ""
        if _GLOB.search(text):
            return " ".join(self._files.glob(text)) or text
        return text
