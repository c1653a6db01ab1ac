"""Quirks of values: how the helper functions and the shell interpret a line's text."""

import re
from collections.abc import Iterator

from tipcflow.params.layout import COMMANDS
from tipcflow.params.sections import STATIC, find_section
from tipcflow.params.values import is_null, mode_entries
from tipcflow.plan.quirks.match import QuirkMatch
from tipcflow.plan.source.call import Point
from tipcflow.plan.source.reader import Reader, is_mode_table, sister_mode
from tipcflow.plan.source.scope import model_name
from tipcflow.plan.source.texts import slot_acts

_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


def find_values(reader: Reader, points: list[Point]) -> Iterator[QuirkMatch]:
    """Yield every quirk of the file's values."""
    if points:
        yield from _modes(reader)
        yield from _section(reader)
    yield from find_texts(reader)
    yield from _cut(reader)
    name = reader.value("model")
    if name != model_name(reader):
        yield QuirkMatch("model-name-blank", reader.line("model"), {"model": name, "name": model_name(reader)})


def _modes(reader: Reader) -> Iterator[QuirkMatch]:
    for name, slot in reader.params.slots.items():
        kind = reader.dialect.kind(name)
        if is_null(slot.value) or slot.key == "null":
            continue
        other = sister_mode(reader.mode)
        values = {"key": slot.key, "mode": reader.mode, "value": slot.value, "other": other}
        if kind == "plain" and is_mode_table(slot.value):
            yield QuirkMatch("mode-table-unread", slot.line, values)
        if kind != "modes":
            continue
        entries = mode_entries(slot.value)
        if not entries:
            yield QuirkMatch("mode-entry-bare", slot.line, values)
        elif reader.mode not in entries and name in reader.dialect.defaults:
            spec = reader.for_mode(name) or "the framework's default"
            if spec != reader.dialect.defaults[name]:
                values |= {"bash": reader.dialect.defaults[name], "spec": spec}
                yield QuirkMatch("mode-entry-default", slot.line, values)
        elif reader.mode not in entries:
            yield QuirkMatch("mode-entry" if other in entries else "mode-entry-none", slot.line, values)


def _section(reader: Reader) -> Iterator[QuirkMatch]:
    """Yield quirks of a to_static trainer's arguments, whose title the script finds by its physical line."""
    dialect, lines = reader.dialect, reader.params.lines
    if dialect.to_static != "tail":
        return
    section = find_section(lines, STATIC)
    title = next((line for line in lines if section and line.number == section.line), None)
    if title and section and section.lines and title.number != title.index + 1:
        first_line = section.lines[0]
        wrong = lines[title.number].text if title.number < len(lines) else "nothing"
        yield QuirkMatch("section-by-line", first_line.number, {"said": first_line.text, "wrong": wrong})


def find_texts(reader: Reader) -> Iterator[QuirkMatch]:
    """Yield quirks of single values, independent of their slot."""
    for name, slot in reader.params.slots.items():
        kind = reader.dialect.kind(name)
        if kind == "key" or not slot.present or slot.key == "null":
            continue
        if slot.value != slot.full and reader.dialect.split == "first" and not slot.key.endswith("_url"):
            yield QuirkMatch("colon-cut", slot.line, {"cut": slot.value, "value": slot.full})
        begins = slot.full.rstrip() == slot.full and name in COMMANDS and not is_null(slot.full.strip())
        if slot.full != slot.full.strip() and slot.full.strip() and not begins:
            yield QuirkMatch("trailing-blank", slot.line, {"key": slot.key, "value": slot.full})
        bare = _QUOTED.sub("", slot.full)
        if kind == "plain" and "|" in bare and name != "use_gpu" and not is_mode_table(slot.value):
            yield QuirkMatch("pipe-in-value", slot.line, {"key": slot.key, "value": slot.full.strip()})
    yield from _shell(reader)


def _shell(reader: Reader) -> Iterator[QuirkMatch]:
    """Yield effects of the shell: in spec, values that break a command are refused before."""
    for slot, act in slot_acts(reader):
        values = {"what": act.what, "value": slot.full.strip(), "does": act.does}
        yield QuirkMatch("shell-breaks" if act.breaks else "shell-expands", slot.line, values)


def _cut(reader: Reader) -> Iterator[QuirkMatch]:
    cut = reader.dialect.cut
    if cut < 0:
        yield QuirkMatch("klquant-reads-nothing")
    lost = [slot for slot in reader.params.slots.values() if slot.line > cut]
    for slot in lost[:1] if cut > 0 else ():
        yield QuirkMatch("cut", slot.line, {"cut": cut, "lost": slot.text})
