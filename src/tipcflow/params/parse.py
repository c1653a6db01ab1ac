"""Text -> typed params, by a dialect's line map."""

from dataclasses import replace

from tipcflow.params.check import check_layout
from tipcflow.params.dialect import Dialect
from tipcflow.params.file import ParamsFile, Slot, text_sha256
from tipcflow.params.lines import TextLine, read_lines
from tipcflow.params.values import full_value, split_line


def parse_params(text: str, *, file: str, dialect: Dialect) -> ParamsFile:
    """Read a params file, and make sure that every line is what its place says.

    Args:
        text: the file's content.
        file: its name, for messages.
        dialect: whose line map counts.

    Raises:
        ConfigError: a line is missing, too many, shifted, blank, or ends in a carriage return. One error, for
            the first place where the file and the line map part, with file, line, slot, found and expected.
    """
    lines = read_lines(text)
    check_layout(lines, file=file, layout=dialect.line_map())
    return _read(text, lines, file=file, dialect=dialect)


def parse_lines(text: str, lines: tuple[TextLine, ...], *, file: str, dialect: Dialect) -> ParamsFile:
    """Like `parse_params`, of some lines of `text` that count as a file of their own.

    Raises:
        ConfigError: as `parse_params`, with the lines' numbers in the whole file.
    """
    mine = tuple(replace(line, index=index) for index, line in enumerate(lines))
    check_layout(mine, file=file, layout=dialect.line_map())
    return _read(text, mine, file=file, dialect=dialect)


def read_params(text: str, *, file: str, dialect: Dialect) -> ParamsFile:
    """Read a params file as the suite's script does: by position alone, cut where it cuts, never refusing."""
    return _read(text, read_lines(text, cut=dialect.cut), file=file, dialect=dialect)


def _read(text: str, lines: tuple[TextLine, ...], *, file: str, dialect: Dialect) -> ParamsFile:
    return ParamsFile(
        file=file,
        dialect=dialect.name,
        layout=dialect.layout,
        sha256=text_sha256(text),
        lines=lines,
        slots={name: _slot(name, spec.line, lines, dialect) for name, spec in dialect.line_map().slots.items()},
    )


def _slot(name: str, index: int, lines: tuple[TextLine, ...], dialect: Dialect) -> Slot:
    if index >= len(lines):
        return Slot(name=name, index=index)
    line = lines[index]
    key, value = split_line(line.text, dialect.split)
    return Slot(
        name=name,
        index=index,
        line=line.number,
        text=line.text,
        key=key,
        value=value,
        full=full_value(line.text),
    )
