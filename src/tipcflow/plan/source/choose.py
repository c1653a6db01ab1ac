"""Dialect selection: the first of a suite's dialects whose layout matches the file and that has the mode."""

from collections.abc import Sequence

from tipcflow.domain import ConfigError
from tipcflow.params import Dialect, ParamsFile, load_dialect, parse_params
from tipcflow.params.blocks import split_blocks
from tipcflow.params.kinds import FileKind, recognise
from tipcflow.params.lines import read_lines
from tipcflow.params.registry.names import family_dialects

# Kinds of files that no training and inference dialect can read.
_ALONE = ("paddle2onnx", "pipeline", "dy2static")


def choose_dialect(text: str, *, file: str, dialects: Sequence[str], mode: str) -> tuple[Dialect, ParamsFile]:
    """Return the first dialect that can read the file in this mode, and the parsed file.

    For a file of the suite's other scripts, their dialects come first and need not be listed.

    Raises:
        ConfigError: no dialect matches, or no matching dialect has the mode. If none matches, the error is that of
            the dialect with the nearest number of lines; among equals, of the one that parsed the most lines.
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
        other_modes += [other for other in dialect.run_modes if other not in other_modes]
    if other_modes:
        raise ConfigError(
            f"a file of {kind.what} does not run in this mode",
            file=file,
            key="mode",
            found=mode,
            expected=", ".join(other_modes),
        )
    _, _, name, nearest = min(failed, key=lambda failure: failure[:2])
    if len(names) > 1:
        nearest.hint = f"read as '{name}', the nearest of {', '.join(names)}; {nearest.hint}"
    raise nearest


def file_modes(text: str, *, file: str, dialects: Sequence[str]) -> tuple[str, ...]:
    """Return a file's possible modes in a suite, independent of its content; none for an unsupported kind."""
    kind = recognise(text, file)
    try:
        _refuse(kind, text, file)
        names = _candidates(kind, dialects, file)
    except ConfigError:
        return ()
    return tuple(dict.fromkeys(mode for name in names for mode in load_dialect(name).run_modes))


def _refuse(kind: FileKind, text: str, file: str) -> None:
    """Raise ConfigError for a recognized but unsupported kind; an unknown kind may still match a dialect."""
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
    """Return the dialects to try, in order.

    Raises:
        ConfigError: the suite does not have the file's script.
    """
    family = list(dict.fromkeys(name for listed in dialects for name in family_dialects(listed, kind.kind)))
    if kind.kind in _ALONE and not family:
        raise ConfigError(
            f"the suite has no script for {kind.what}",
            file=file,
            line=1,
            key="title",
            found=kind.title,
            expected="a file of training and inference, or another suite",
        )
    return family if kind.kind in _ALONE else list(dict.fromkeys([*family, *dialects]))


def _parsed(text: str, file: str, dialect: Dialect) -> ParamsFile:
    """Return the parsed file, or its first block if it has blocks; the other blocks are parsed later."""
    if dialect.blocks is None:
        return parse_params(text, file=file, dialect=dialect)
    return split_blocks(text, file=file, dialect=dialect)[0].params
