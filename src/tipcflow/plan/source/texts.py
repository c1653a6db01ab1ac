"""Texts of a file that a shell or a file system would take for something else, in spec semantics."""

import re
from collections.abc import Iterator

from tipcflow.domain import ConfigError
from tipcflow.params.file import Slot
from tipcflow.params.layout import FILLER
from tipcflow.params.shell import Act, ShellAct, shell_acts
from tipcflow.plan.source.reader import Reader

# A name of folders below the output folder: relative, without a parent folder, no option of a program.
_FOLDER = re.compile(r"(?!-)(?!/)(?!(?:.*/)?\.\.(?:/|$)).+")


def slot_acts(reader: Reader) -> Iterator[tuple[Slot, Act]]:
    """Yield the effects of the shell on the slots that become part of commands."""
    for name, slot in reader.params.slots.items():
        if not slot.present or slot.key.strip() == "null" or FILLER.fullmatch(slot.text):
            continue
        text = slot.full.replace(";", "") if name == "gpu_list" else slot.full
        if reader.dialect.kind(name) == "key":
            text = ""
        for act in (*shell_acts(slot.key), *shell_acts(text)):
            # The name of weights is a pattern in some suites.
            if name != "weights_name" or act.kind is not ShellAct.MATCH_FILES:
                yield slot, act


def check_texts(reader: Reader) -> None:
    """Raise ConfigError for a value that would cut, break or replace a command, or leave the output folder."""
    for slot, act in slot_acts(reader):
        if act.breaks:
            raise ConfigError(
                f"{act.what} in this line: {act.does}",
                file=reader.params.file,
                line=slot.line,
                key=slot.key.strip(),
                found=slot.full.strip() or slot.key.strip(),
                expected=f"a value without {act.what}, or in quotes",
            )
    name = reader.value("model")
    if name and not _FOLDER.fullmatch(name):
        raise ConfigError(
            "the model name is not a folder name",
            file=reader.params.file,
            line=reader.line("model"),
            key=reader.key("model"),
            found=name,
            expected="a relative name that does not begin with '-' and has no '..'",
        )
