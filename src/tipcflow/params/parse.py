"""Parser of a params file by a dialect's line map."""

from dataclasses import replace

from tipcflow.params.check import check_characters, check_layout
from tipcflow.params.dialect import Dialect
from tipcflow.params.file import ParamsFile, Slot, text_sha256
from tipcflow.params.layout import SlotSpec
from tipcflow.params.lines import TextLine, read_lines
from tipcflow.params.values import full_value, split_line


def parse_params(text: str, *, file: str, dialect: Dialect) -> ParamsFile:
    """Parse a params file and validate that every line matches its position.

    Args:
        text: the file's content.
        file: the file's name, for messages.
        dialect: the dialect whose line map applies.

    Raises:
        ConfigError: a line is missing, surplus, misplaced, whitespace-only, ends in a carriage return, or has a
            control or invisible character. The error is for the first mismatch of file and line map, with file,
            line, slot, found and expected value.
    """
    lines = read_lines(text)
    check_characters(lines, file=file, layout=dialect.line_map())
    check_layout(lines, file=file, layout=dialect.line_map())
    return _read(text, lines, file=file, dialect=dialect)


def parse_lines(text: str, lines: tuple[TextLine, ...], *, file: str, dialect: Dialect) -> ParamsFile:
    """Like `parse_params`, for lines of `text` that form a separate file.

    Raises:
        ConfigError: as `parse_params`, with line numbers of the whole file.
    """
    renumbered = tuple(replace(line, index=index) for index, line in enumerate(lines))
    check_characters(renumbered, file=file, layout=dialect.line_map())
    check_layout(renumbered, file=file, layout=dialect.line_map())
    return _read(text, renumbered, file=file, dialect=dialect)


def read_params(text: str, *, file: str, dialect: Dialect) -> ParamsFile:
    """Parse a params file like the suite's script: by position only, with its truncations, without errors."""
    return _read(text, read_lines(text, cut=dialect.cut), file=file, dialect=dialect)


def _read(text: str, lines: tuple[TextLine, ...], *, file: str, dialect: Dialect) -> ParamsFile:
    return ParamsFile(
        file=file,
        dialect=dialect.name,
        layout=dialect.layout,
        sha256=text_sha256(text),
        lines=lines,
        slots={name: _slot(name, spec, lines, dialect) for name, spec in dialect.line_map().slots.items()},
    )


def _slot(name: str, spec: SlotSpec, lines: tuple[TextLine, ...], dialect: Dialect) -> Slot:
    index = spec.line
    if index >= len(lines):
        return Slot(name=name, index=index)
    line = lines[index]
    key, value = split_line(line.text, spec.split or dialect.split)
    return Slot(
        name=name,
        index=index,
        line=line.number,
        text=line.text,
        key=key,
        value=value,
        full=full_value(line.text),
    )
