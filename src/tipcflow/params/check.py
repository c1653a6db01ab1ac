"""Layout check: slots are identified by position, so one missing line shifts all later slots."""

import re

from tipcflow.domain import ConfigError
from tipcflow.domain.characters import first_invisible
from tipcflow.params.layout import FILLER, TITLE, Layout, SlotSpec
from tipcflow.params.lines import TextLine
from tipcflow.params.values import is_null, split_list

_HINT = "a missing or extra line shifts all lines below it: compare with a working file of the suite"


def check_characters(lines: tuple[TextLine, ...], *, file: str, layout: Layout) -> None:
    """Raise ConfigError for the first invisible character; a final carriage return has its own check."""
    for line in lines:
        character = first_invisible(line.text.removesuffix("\r"))
        if character:
            place, what = character
            raise ConfigError(
                f"character {place + 1} is invisible",
                file=file,
                line=line.number,
                key=layout.at(line.index),
                found=what,
                expected="visible text, ASCII spaces and tabs",
            )


def check_layout(lines: tuple[TextLine, ...], *, file: str, layout: Layout) -> None:
    """Raise ConfigError for the first of `lines` that does not match `layout`."""
    for line in lines:
        _check_line(line, file=file, layout=layout)
    if len(lines) < layout.lines and len(lines) not in layout.stops:
        last = lines[-1].number if lines else 0
        raise ConfigError(
            "unexpected end of file",
            file=file,
            line=last,
            key=layout.at(len(lines)),
            found=f"{len(lines)} non-empty lines",
            expected=f"{'' if layout.most else 'at least '}{layout.lines}",
            hint=_HINT,
        )
    if layout.most and len(lines) > layout.most:
        extra = lines[layout.most]
        raise ConfigError(
            f"there are {len(lines)} non-empty lines",
            file=file,
            line=extra.number,
            key="end of file",
            found=extra.text,
            expected=f"{layout.most} lines",
            hint=_HINT,
        )


def _check_line(line: TextLine, *, file: str, layout: Layout) -> None:
    name = layout.at(line.index)
    expected = _complaint(line, layout)
    if expected:
        raise ConfigError(
            f"this is not line {line.index + 1} of the layout '{layout.name}'",
            file=file,
            line=line.number,
            key=name,
            found=line.text if line.text.strip() else repr(line.text),
            expected=expected,
            hint=_HINT,
        )


def _complaint(line: TextLine, layout: Layout) -> str:
    """Return the expected content of the line; '' if the line is plausible."""
    if line.text.endswith("\r"):
        return "a line that ends in a newline alone (this file has Windows line endings)"
    if not line.text.strip():
        return "a line that is not only whitespace"
    if line.index in layout.titles:
        return "" if TITLE.fullmatch(line.text) else "a section title '=====name====='"
    if line.index in layout.fillers:
        return "" if FILLER.fullmatch(line.text) else "a filler line '##'"
    spec = layout.slots.get(layout.at(line.index))
    return _slot_complaint(line.text, spec) if spec else ""


def _slot_complaint(text: str, spec: SlotSpec) -> str:
    key, colon, value = text.partition(":")
    if spec.key and (not colon or not re.fullmatch(spec.key, key.strip())):
        return _readable(spec.key)
    if TITLE.fullmatch(text):
        return "'key:value', not a section title"
    if spec.words and not is_null(value):
        unknown = [item for item in split_list(value) if item.strip() not in spec.words]
        if unknown:
            return "one or several of " + ", ".join(spec.words)
    return ""


def _readable(pattern: str) -> str:
    """Return a key pattern in words: `.*(gpu|device).*|null` is "a key with 'gpu' or 'device'"."""
    within = re.match(r"\.\*\(?(?P<words>[\w|]+)\)?\.\*", pattern)
    if within:
        return "a key with " + " or ".join(f"'{word}'" for word in within["words"].split("|"))
    plain = pattern.replace("(ed)?", "").replace("\\w+", "<name>").split("|")
    return " or ".join(f"'{word}:…'" for word in plain)
