"""Resolves a format name to the readers that it selects."""

from tipcflow.parse.rules.line_format import LineFormat
from tipcflow.parse.training.formats import AUTO, line_formats
from tipcflow.parse.training.side import AUXILIARY_KINDS


def readers_of(log_format: str) -> tuple[tuple[LineFormat, ...], tuple[str, ...]]:
    """Return the line formats that a format name selects, and the other kinds of lines to collect.

    Raises:
        ConfigError: the format does not exist.
    """
    if log_format == AUTO:
        return line_formats(AUTO), AUXILIARY_KINDS
    if log_format in AUXILIARY_KINDS:
        return (), (log_format,)
    return line_formats(log_format), ("benchmark",) if log_format == "dlperf" else ()
