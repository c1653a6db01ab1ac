"""A training or evaluation log -> samples, line by line, in constant memory."""

from collections.abc import Iterable, Iterator

from tipcflow.parse.formats import line_format
from tipcflow.parse.launch import REPEATS_FROM
from tipcflow.parse.sample import Sample
from tipcflow.parse.text import lines_of, strip_ansi

# Longer lines are binary rubbish or dumps: they are skipped before any pattern looks at them.
MAX_LINE = 20_000


def parse_training(lines: Iterable[tuple[int, str]], log_format: str = "models") -> Iterator[Sample]:
    """The samples of all training and evaluation lines, in the order of the log.

    Args:
        lines: (byte offset, line), as `lines_of` gives them.
        log_format: name in `FORMATS`, as the suite declares it.

    What follows the launcher's `ERROR LOG DETAIL` is a second copy of lines that were read already: left out.

    Raises:
        ConfigError: there is no such format (when the first sample is asked for).
    """
    form = line_format(log_format)
    for offset, raw in lines:
        if len(raw) > MAX_LINE:
            continue
        line = strip_ansi(raw)
        if REPEATS_FROM in line:
            return
        yield from form.training(offset, line)
        yield from form.evaluation(offset, line)


def last_training_line(text: str, log_format: str = "models") -> str:
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
