"""What a format's name asks for."""

from tipcflow.parse.rules.line_format import LineFormat
from tipcflow.parse.training.formats import AUTO, line_formats
from tipcflow.parse.training.side import SIDES


def readers_of(log_format: str) -> tuple[tuple[LineFormat, ...], tuple[str, ...]]:
    """What a format's name asks for: formats of lines, and what else to look for.

    Raises:
        ConfigError: there is no such format.
    """
    if log_format == AUTO:
        return line_formats(AUTO), SIDES
    if log_format in SIDES:
        return (), (log_format,)
    return line_formats(log_format), ("benchmark",) if log_format == "dlperf" else ()
