"""Exit records as sent by nodes; anything else is reported with its file and line."""

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tipcflow.domain import ExitRecord

LEGS = "legs.jsonl"
_LINE = 1 << 20
_SHOWN = 60


def exit_record(told: Any) -> ExitRecord | None:
    """Return the exit record, None for any other value."""
    try:
        return ExitRecord.model_validate(told)
    except ValidationError:
        return None


def found(told: Any) -> str:
    """Return the invalid value in a form short enough for a status reason."""
    text = told if isinstance(told, str) else json.dumps(told)
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def garbled_legs(folder: Path, node: str, *, ended: bool) -> str:
    """Return a message about the first line of a node's `legs.jsonl` that is not an exit record; '' if all are.

    Args:
        folder: folder of the job's files on this machine.
        ended: whether the job has an exit record. Only then is an incomplete last line an error: a killed runner
            may leave one.
    """
    path, bad = folder / LEGS, []
    if not path.is_file():
        return ""
    with path.open("rb") as handle:
        for number, line in enumerate(iter(lambda: handle.readline(_LINE), b""), 1):
            text = line.decode("utf-8", "replace").strip()
            if text and (ended or line.endswith(b"\n")) and not _is_record(text):
                bad.append((number, text))
    if not bad:
        return ""
    number, text = bad[0]
    more = f" ({len(bad)} such lines)" if len(bad) > 1 else ""
    return f"node {node}: {LEGS} line {number} is not an exit record: found {found(text)}{more}"


def _is_record(text: str) -> bool:
    try:
        return exit_record(json.loads(text)) is not None
    except ValueError:
        return False
