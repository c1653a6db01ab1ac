"""Exit records as sent by nodes; anything else is reported with its file and line."""

import json
from pathlib import Path
from typing import Any

from tipcflow.domain import ExitRecord, JobSpec
from tipcflow.domain.run.job_event import exit_record

EXIT, LEGS = "exit.json", "legs.jsonl"
_LINE = 1 << 20
_SHOWN = 60


def format_invalid(value: Any) -> str:
    """Return the invalid value in a form short enough for a status reason."""
    text = value if isinstance(value, str) else json.dumps(value)
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def invalid_exit_message(spec: JobSpec, record: ExitRecord | None, value: Any) -> str:
    """Return why what a node sent as a job's `exit.json` is not the exit record of that job; '' if it is.

    Any process on the node can write the file. The record of another job proves nothing about this one, and the
    database has no such attempt.

    Args:
        record: `value` as an exit record, None for any other value.
    """
    if record is None:
        return f"{EXIT} is not an exit record: found {format_invalid(value)}"
    other = _other_job(record, spec, legs=("",))
    return f"{EXIT} is the exit record of another job: {other}" if other else ""


def is_leg_of(record: ExitRecord, spec: JobSpec) -> bool:
    """Whether an exit record is that of a leg of the job."""
    return not _other_job(record, spec, legs=_legs_of(spec))


def invalid_legs_message(folder: Path, spec: JobSpec, *, ended: bool) -> str:
    """Return a message about the first line of a job's `legs.jsonl` that is not an exit record of one of its legs;
    '' if all are.

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
            if text and (ended or line.endswith(b"\n")) and (why := _invalid_leg(text, spec)):
                bad.append((number, why))
    if not bad:
        return ""
    number, why = bad[0]
    more = f" ({len(bad)} such lines)" if len(bad) > 1 else ""
    return f"node {spec.node}: {LEGS} line {number} is {why}{more}"


def _invalid_leg(text: str, spec: JobSpec) -> str:
    try:
        record = exit_record(json.loads(text))
    except ValueError:
        record = None
    if record is None:
        return f"not an exit record: found {format_invalid(text)}"
    other = _other_job(record, spec, legs=_legs_of(spec))
    return f"the exit record of another job: {other}" if other else ""


def _legs_of(spec: JobSpec) -> tuple[str, ...]:
    return tuple(command.leg for command in spec.commands)


def _other_job(record: ExitRecord, spec: JobSpec, *, legs: tuple[str, ...]) -> str:
    """Return the first field in which a record differs from its job, with both values; '' for none."""
    for name in ("run", "step", "attempt", "node"):
        actual, expected = getattr(record, name), getattr(spec, name)
        if actual != expected:
            return f"found {name} {format_invalid(actual)}, expected {format_invalid(expected)}"
    if record.leg not in legs:
        expected = "no leg" if legs == ("",) else "a leg of this job"
        return f"found leg {format_invalid(record.leg)}, expected {expected}"
    return ""
