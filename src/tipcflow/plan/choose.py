"""Which of a suite's dialects a file is written in: the first whose layout fits it."""

from collections.abc import Sequence

from tipcflow.domain import ConfigError
from tipcflow.params import Dialect, ParamsFile, load_dialect, parse_params
from tipcflow.params.kinds import recognise
from tipcflow.params.layout import Layout
from tipcflow.params.lines import read_lines


def choose_dialect(text: str, *, file: str, dialects: Sequence[str], mode: str) -> tuple[Dialect, ParamsFile]:
    """The first dialect that reads the file, and the file as it reads it.

    Raises:
        ConfigError: no dialect fits; the error is that of the dialect whose number of lines is nearest, and
            among equals of the one that read furthest.
    """
    if not dialects:
        raise ConfigError("a suite needs at least one dialect", key="dialects", expected="a list of names")
    kind = recognise(text)
    if kind.refused:
        raise ConfigError(
            f"files of kind '{kind.kind}' are read but not run: {kind.refused}",
            file=file,
            line=1,
            key="title",
            found=kind.title or text.split("\n", 1)[0],
            expected="a params file of training, export or inference with Python",
        )
    failed: list[tuple[int, int, str, ConfigError]] = []
    count = len(read_lines(text))
    for name in dialects:
        dialect = load_dialect(name).for_mode(mode)
        try:
            return dialect, parse_params(text, file=file, dialect=dialect)
        except ConfigError as error:
            failed.append((_distance(count, dialect.line_map()), -error.line, name, error))
    _, _, name, nearest = min(failed, key=lambda each: each[:2])
    if len(dialects) > 1:
        nearest.hint = f"read as '{name}', the nearest of {', '.join(dialects)}; {nearest.hint}"
    raise nearest


def _distance(count: int, layout: Layout) -> int:
    """How many lines a file of `count` non-empty lines has too few or too many for a layout."""
    return max(layout.lines - count, count - layout.most if layout.most else 0, 0)
