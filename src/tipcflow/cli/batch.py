"""`tipcflow plan --batch`: what the suites' scripts would run, for many params files at once.

Input and output are JSON lines. A record has the fields suite, dialect_name, config, mode, variant, config_text,
and family and params where they matter; an answer has config, mode, variant and commands, in the records' order.
"""

import gzip
import json
import sys
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from tipcflow.domain import Command, ConfigError
from tipcflow.params import load_dialect
from tipcflow.plan import ListedFiles, benchmark_commands, plan_commands

Record = Mapping[str, Any]

# Suites of which a record's variant `files` means that trainings left what successful ones leave; in the records
# of all others every training leaves nothing.
_LEAVES_FILES = frozenset({"PaddleClas", "PaddleSeg", "PaddleGAN"})
_GZIP = b"\x1f\x8b"
BENCHMARK = "benchmark_train"


def answer(record: Record, *, mode: str = "lite_train_lite_infer") -> dict[str, Any]:
    """What a suite's script would run for a record.

    Args:
        record: see the module's text. A family is read by the dialect `<dialect_name>/<family>`. `mutation: crlf`
            says that the text had Windows line endings, which its recorder lost.
        mode: what counts for a record without a mode.

    Returns:
        config, mode, variant, commands; and of each command its folder (`cwd`, relative to the suite's root) and
        its CUDA_VISIBLE_DEVICES (`cuda_visible_devices`, None where unset). A record that cannot be planned has
        no commands and an `error`.
    """
    said = {
        "config": record.get("config", ""),
        "mode": record.get("mode") or mode,
        "variant": record.get("variant") or "files",
    }
    try:
        commands = _commands(record, str(said["mode"]), str(said["variant"]))
    except ConfigError as error:
        return {**said, "commands": [], "error": str(error)}
    return {
        **said,
        "commands": [command.text for command in commands],
        "cwd": [command.cwd for command in commands],
        "cuda_visible_devices": [command.env.get("CUDA_VISIBLE_DEVICES") for command in commands],
    }


def _commands(record: Record, mode: str, variant: str) -> list[Command]:
    config = _text(record, "config")
    if variant not in ("files", "nofiles"):
        raise ConfigError(
            "there is no such variant", file=config, key="variant", found=variant, expected="files or nofiles"
        )
    text = _text(record, "config_text")
    if record.get("mutation") == "crlf" and "\r" not in text:
        text = text.replace("\n", "\r\n")
    leaves = variant == "files" and record.get("suite") in _LEAVES_FILES
    files = ListedFiles(["test_tipc"], trainings_leave_files=leaves)
    family = record.get("family")
    name = _text(record, "dialect_name")
    dialect = load_dialect(f"{name}/{_text(record, 'family')}" if family else name)
    if mode == BENCHMARK:
        word = _text(record, "params") if record.get("params") is not None else ""
        return benchmark_commands(text, file=config, dialect=dialect, word=word, files=files)
    return plan_commands(text, file=config, dialect=dialect, mode=mode, files=files)


def _text(record: Record, key: str) -> str:
    value = record.get(key)
    if not isinstance(value, str):
        found = "nothing" if value is None else json.dumps(value)[:80]
        raise ConfigError("the record lacks a text", key=key, found=found, expected="a text")
    return value


def print_answers(path: Path, *, mode: str, out: IO[str]) -> int:
    """Answer every record of a file, one JSON line each, in order; an empty line is no record.

    Returns:
        How many records could not be planned.

    Raises:
        ConfigError: the file cannot be read; what was answered before stands on `out`.
    """
    wrong = 0
    for number, line in _lines(path):
        try:
            record = json.loads(line)
        except ValueError as error:
            record = error
        if isinstance(record, dict):
            said = answer(record, mode=mode)
        else:
            problem = ConfigError(
                "a line is no JSON object", file=str(path), line=number, found=line.strip()[:80], expected="{…}"
            )
            said = {"config": "", "mode": "", "variant": "", "commands": [], "error": str(problem)}
        wrong += "error" in said
        out.write(json.dumps(said, ensure_ascii=False) + "\n")
    out.flush()
    return wrong


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Physical line numbers and lines that are not empty, of a plain or gzip-compressed file."""
    try:
        with path.open("rb") as probe:
            packed = probe.read(2) == _GZIP
        with gzip.open(path, "rt", encoding="utf-8") if packed else path.open(encoding="utf-8") as lines:
            yield from ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise ConfigError(
            "the records cannot be read",
            file=str(path),
            key="--batch",
            found=str(error),
            expected="JSON lines in UTF-8, plain or compressed by gzip",
        ) from error


def run_batch(path: str, *, mode: str) -> int:
    """Answer a file of records on stdout; `-` is not taken for stdin.

    Returns:
        The exit code: 0, or 2 when a record could not be planned.

    Raises:
        ConfigError: the file cannot be read.
    """
    wrong = print_answers(Path(path), mode=mode, out=sys.stdout)
    if wrong:
        print(f"{wrong} records could not be planned: see `error` in their lines", file=sys.stderr)  # noqa: T201
    return 2 if wrong else 0
