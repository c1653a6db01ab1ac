"""Streams the samples of a training or evaluation log, line by line, in constant memory."""

from collections.abc import Iterable, Iterator

from tipcflow.parse.sample import Sample
from tipcflow.parse.text import lines_of, strip_ansi
from tipcflow.parse.training.formats import AUTO, line_format, line_formats
from tipcflow.parse.training.scan import MAX_LINE, Scan


def parse_training(lines: Iterable[tuple[int, str]], log_format: str = "models") -> Iterator[Sample]:
    """Yield the samples of all training and evaluation lines, in the order of the log.

    Lines after the launcher's `ERROR LOG DETAIL` repeat lines that were already parsed and are skipped.

    Args:
        lines: (byte offset, line), as `lines_of` yields them.
        log_format: a name in `FORMATS`, as the suite declares it, or `auto`.

    Raises:
        ConfigError: the format does not exist (raised when the first sample is requested).
    """
    scan = Scan(line_formats(log_format))
    for offset, raw in lines:
        yield from scan.samples(offset, raw)


def last_training_line(text: str, log_format: str = AUTO) -> str:
    """Return the last training line of a part of a log for the live display, '' if it has none.

    A last line without a newline is incomplete and is ignored.

    Raises:
        ConfigError: the format does not exist.
    """
    form = line_format(log_format)
    complete = text[: text.rfind("\n") + 1]
    for _, raw in reversed(list(lines_of(complete[-MAX_LINE:]))):
        line = strip_ansi(raw)
        if form.recognises(line):
            return line.strip()
    return ""
