"""A training or evaluation log -> samples, line by line, in constant memory."""

from collections.abc import Iterable, Iterator

from tipcflow.parse.sample import Sample
from tipcflow.parse.text import lines_of, strip_ansi
from tipcflow.parse.training.formats import AUTO, line_format, line_formats
from tipcflow.parse.training.scan import MAX_LINE, Scan


def parse_training(lines: Iterable[tuple[int, str]], log_format: str = "models") -> Iterator[Sample]:
    """The samples of all training and evaluation lines, in the order of the log.

    Args:
        lines: (byte offset, line), as `lines_of` gives them.
        log_format: name in `FORMATS`, as the suite declares it, or `auto`.

    What follows the launcher's `ERROR LOG DETAIL` is a second copy of lines that were read already: left out.

    Raises:
        ConfigError: there is no such format (when the first sample is asked for).
    """
    scan = Scan(line_formats(log_format))
    for offset, raw in lines:
        yield from scan.samples(offset, raw)


def last_training_line(text: str, log_format: str = AUTO) -> str:
    """The last training line of a piece of a log, for the live display; '' when there is none yet.

    A last line without its end is still being written and does not count.

    Raises:
        ConfigError: there is no such format.
    """
    form = line_format(log_format)
    complete = text[: text.rfind("\n") + 1]
    for _, raw in reversed(list(lines_of(complete[-MAX_LINE:]))):
        line = strip_ansi(raw)
        if form.recognises(line):
            return line.strip()
    return ""
