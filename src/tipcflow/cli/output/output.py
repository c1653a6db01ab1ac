"""Printing of results: columns that never break an id, and strict JSON."""

import csv
import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer

from tipcflow.domain import Status
from tipcflow.report.text.styles import terminal_color

# With less space than this, the last column moves to a line of its own.
_LAST_MIN = 24
_INDENT = "    "


def print_json(value: Any) -> None:
    """Print JSON on stdout. JSON has no nan and inf: they become the strings `NaN`, `Infinity`, `-Infinity`."""
    typer.echo(json.dumps(_strict(value), indent=2, ensure_ascii=False))


def print_csv(header: Iterable[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table as CSV on stdout, the names of its columns first."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    sys.stdout.flush()


def _strict(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def terminal_width() -> int | None:
    """Columns of the terminal; None when stdout is a file or a pipe (no limit)."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def columns(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None, cut: bool = False
) -> list[str]:
    """Lines of a table. All columns but the last are as wide as their content, so ids are never broken.

    Args:
        headers: one per column; the last column is wrapped text.
        rows: cells without line breaks.
        width: columns of the terminal; None for no limit.
        cut: shorten long text with an ellipsis instead of wrapping it.
    """
    table = [list(headers), *(list(row) for row in rows)]
    sizes = [max(len(row[column]) for row in table) for column in range(len(headers) - 1)]
    lines = []
    for number, row in enumerate(table):
        left = "  ".join(cell.ljust(size) for cell, size in zip(row, sizes, strict=False))
        below = width is not None and width - len(left) - 2 < _LAST_MIN
        prose = "" if number == 0 and below and len(headers) > 2 else " ".join(row[-1].split())
        lines += _with_prose(left, prose, width, cut)
    return lines


def _with_prose(left: str, prose: str, width: int | None, cut: bool) -> list[str]:
    gap = "  " if left else ""
    if not prose:
        return [left.rstrip()]
    if width is None or len(left) + len(gap) + len(prose) <= width:
        return [f"{left}{gap}{prose}"]
    room = width - len(left) - len(gap)
    if room >= _LAST_MIN:
        first, *more = [textwrap.shorten(prose, room, placeholder=" …")] if cut else textwrap.wrap(prose, room)
        indent = " " * (width - room)
        return [f"{left}{gap}{first}", *(indent + line for line in more)]
    room = max(width - len(_INDENT), _LAST_MIN)
    below = [textwrap.shorten(prose, room, placeholder=" …")] if cut else textwrap.wrap(prose, room)
    return [left.rstrip(), *(_INDENT + line for line in below)]


def echo_lines(lines: Sequence[str]) -> None:
    """Print lines on stdout; on a terminal, color the status word at the start of a line."""
    for line in lines:
        word = line.split(" ", 1)[0]
        if word in set(Status):
            color, bold = terminal_color(Status(word))
            line = typer.style(word, fg=color, bold=bold) + line[len(word) :]
        elif line.isupper():
            line = typer.style(line, dim=True)
        typer.echo(line)


def without_reader() -> None:
    """Discard all further output: the reader of stdout has closed the pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
