"""Which of a suite's dialects a file is written in: the first whose layout fits it, and that has the mode."""

from collections.abc import Sequence

from tipcflow.domain import ConfigError
from tipcflow.params import Dialect, ParamsFile, load_dialect, parse_params
from tipcflow.params.blocks import split_blocks
from tipcflow.params.dialect import family_dialects
from tipcflow.params.kinds import FileKind, recognise
from tipcflow.params.lines import read_lines

# Kinds of files that no dialect of training and inference can read.
_ALONE = ("paddle2onnx", "pipeline", "dy2static")


def choose_dialect(text: str, *, file: str, dialects: Sequence[str], mode: str) -> tuple[Dialect, ParamsFile]:
    """The first dialect that reads the file in this mode, and the file as it reads it.

    For a file of the suite's other scripts their dialects come first; they need not be listed.

    Raises:
        ConfigError: no dialect fits, or none that fits has the mode. Of misfits the error is that of the dialect
            whose number of lines is nearest, and among equals of the one that read furthest.
    """
    if not dialects:
        raise ConfigError("a suite needs at least one dialect", key="dialects", expected="a list of names")
    kind = recognise(text, file)
    _refuse(kind, text, file)
    names = _candidates(kind, dialects, file)
    failed: list[tuple[int, int, str, ConfigError]] = []
    other_modes: list[str] = []
    for name in names:
        dialect = load_dialect(name).for_mode(mode)
        try:
            params = _parsed(text, file, dialect)
        except ConfigError as error:
            count = len(read_lines(text))
            failed.append((dialect.line_map().distance(count), -error.line, name, error))
            continue
        if mode in dialect.run_modes:
            return dialect, params
        other_modes += [each for each in dialect.run_modes if each not in other_modes]
    if other_modes:
        raise ConfigError(
            f"a file of {kind.what} does not run in this mode",
            file=file,
            key="mode",
            found=mode,
            expected=", ".join(other_modes),
        )
    _, _, name, nearest = min(failed, key=lambda each: each[:2])
    if len(names) > 1:
        nearest.hint = f"read as '{name}', the nearest of {', '.join(names)}; {nearest.hint}"
    raise nearest


def file_modes(text: str, *, file: str, dialects: Sequence[str]) -> tuple[str, ...]:
    """The modes that a file may have in a suite, whatever it says in them; none for a kind that is not run."""
    kind = recognise(text, file)
    try:
        _refuse(kind, text, file)
        names = _candidates(kind, dialects, file)
    except ConfigError:
        return ()
    return tuple(dict.fromkeys(mode for name in names for mode in load_dialect(name).run_modes))


def _refuse(kind: FileKind, text: str, file: str) -> None:
    """Raise ConfigError for a kind that is read but not run; what is of no known kind may still fit."""
    if kind.refused and kind.kind != "other":
        raise ConfigError(
            f"files of kind '{kind.kind}' are read but not run: {kind.refused}",
            file=file,
            line=1,
            key="title",
            found=kind.title or text.split("\n", 1)[0],
            expected="a params file of training, export or inference with Python",
        )


def _candidates(kind: FileKind, dialects: Sequence[str], file: str) -> list[str]:
    """Dialects to try, in order.

    Raises:
        ConfigError: the file is for a script that the suite does not have.
    """
    mine = list(dict.fromkeys(name for listed in dialects for name in family_dialects(listed, kind.kind)))
    if kind.kind in _ALONE and not mine:
        raise ConfigError(
            f"the suite has no script for {kind.what}",
            file=file,
            line=1,
            key="title",
            found=kind.title,
            expected="a file of training and inference, or another suite",
        )
    return mine if kind.kind in _ALONE else list(dict.fromkeys([*mine, *dialects]))


def _parsed(text: str, file: str, dialect: Dialect) -> ParamsFile:
    """The file, or its first block where it has blocks: the others are asked for later."""
    if dialect.blocks is None:
        return parse_params(text, file=file, dialect=dialect)
    return split_blocks(text, file=file, dialect=dialect)[0].params
