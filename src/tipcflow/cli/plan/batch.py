"""`tipcflow plan --batch`: the commands of the suites' scripts, for many params files at once.

Input and output are JSON lines. A record has the fields suite, dialect_name, config, mode, variant, config_text,
and family and params where relevant. A result has config, mode, variant and commands; input order is kept.
"""

import gzip
import json
import sys
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from tipcflow import plan
from tipcflow.domain import ConfigError

Record = Mapping[str, Any]

_VARIANTS = ("files", "nofiles")
_GZIP = b"\x1f\x8b"


def plan_record(record: Record, *, where: str = "", mode: str = "lite_train_lite_infer") -> dict[str, Any]:
    """The commands that a suite's script would run for a record; see `tipcflow.plan.plan_record`.

    Args:
        record: its fields are listed in `tipcflow.plan.record_commands`.
        where: the record's location, for messages.
        mode: default for records without a mode; a record without a variant is one of `files`.

    Returns:
        config, mode, variant, commands; for each command its folder (`cwd`, relative to the suite's root) and
        its CUDA_VISIBLE_DEVICES (`cuda_visible_devices`, None if unset). A record that cannot be planned has
        no commands and an `error`.
    """
    full = {**record, "mode": record.get("mode") or mode, "variant": record.get("variant") or "files"}
    try:
        _check(full, where)
        return plan.plan_record(full, where=where)
    except ConfigError as error:
        names = {name: full.get(name, "") for name in ("config", "mode", "variant")}
        return {**names, "commands": [], "error": str(error)}


def _check(record: Record, where: str) -> None:
    for name in ("params", "family"):
        if not isinstance(record.get(name), str | None):
            raise ConfigError(
                "is not a string", file=where, key=name, found=repr(record[name]), expected="a string or null"
            )
    if record["variant"] not in _VARIANTS:
        value, expected = str(record["variant"]), " or ".join(_VARIANTS)
        raise ConfigError("no such variant", file=where, key="variant", found=value, expected=expected)


def print_plans(path: Path, *, mode: str, out: IO[str]) -> int:
    """Plan every record of a file, one JSON line each, in order; empty lines are skipped.

    Returns:
        The number of records that could not be planned.

    Raises:
        ConfigError: the file cannot be read; earlier results are already written to `out`.
    """
    wrong = 0
    for number, line in _lines(path):
        try:
            record = json.loads(line)
        except ValueError as error:
            record = error
        if isinstance(record, dict):
            result = plan_record(record, where=f"{path}:{number}", mode=mode)
        else:
            problem = ConfigError(
                "a line is not a JSON object", file=str(path), line=number, found=line.strip()[:80], expected="{…}"
            )
            result = {"config": "", "mode": "", "variant": "", "commands": [], "error": str(problem)}
        wrong += "error" in result
        out.write(json.dumps(result, ensure_ascii=False) + "\n")
    out.flush()
    return wrong


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Physical line numbers and non-empty lines of a plain or gzip-compressed file."""
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
            expected="JSON lines in UTF-8, plain or gzip-compressed",
        ) from error


def run_batch(path: str, *, mode: str) -> int:
    """Plan a file of records on stdout; `-` does not mean stdin.

    Returns:
        The exit code: 0, or 2 when a record could not be planned.

    Raises:
        ConfigError: the file cannot be read.
    """
    wrong = print_plans(Path(path), mode=mode, out=sys.stdout)
    if wrong:
        print(f"{wrong} records could not be planned: see `error` in their lines", file=sys.stderr)  # noqa: T201
    return 2 if wrong else 0
