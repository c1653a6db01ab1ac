"""Execution of the parts: a failure ends its part, and the others follow."""

import contextlib
import csv
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devcluster.gpu_day.parts import Command, Part, shown
from devcluster.signals import Interrupted
from tipcflow.domain import Status, exit_code
from tipcflow.domain.numbers.units import counted, limit
from tipcflow.install.uv import requirements_dir

# Exit codes of tipcflow, and of the sample suites' scripts (3: the machine cannot do what is declared).
_STATUSES = {2: Status.CONFIG_ERROR, 4: Status.UNCONFIRMED, 5: Status.INFRA_FAILURE}
_END_S = 30.0
_TEXT_LINES = 5


@dataclass
class Ran:
    """A command that was started: exit code (None if it was ended), seconds, and the names of its two logs."""

    command: str
    code: int | None
    seconds: float
    logs: tuple[str, str]


@dataclass
class Outcome:
    """The result of a part; `figures` by kind, as read from the output of its commands."""

    part: Part
    status: Status = Status.PASS
    reason: str = ""
    seconds: float = 0.0
    ran: list[Ran] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)


def execute(
    parts: Sequence[Part],
    *,
    gpus: int,
    output: Path,
    report: Callable[[str], None],
    save: Callable[[list[Outcome]], None],
) -> list[Outcome]:
    """Execute all parts; parts that clean run last, also after a signal.

    Args:
        gpus: GPUs of this machine.
        output: folder of the report; logs are in its folder `logs`.
        report: receives a line per part.
        save: receives all outcomes after each part.
    """
    outcomes: list[Outcome] = []
    (output / "logs").mkdir(parents=True, exist_ok=True)
    stopped = ""
    for part in in_order(parts):
        outcome = Outcome(part)
        outcomes.append(outcome)
        hindered = _hindrance(part, outcomes, gpus)
        if stopped and not part.cleans:
            outcome.status, outcome.reason = Status.CANCELLED, stopped
        elif hindered:
            outcome.status, outcome.reason = hindered
        else:
            report(f"{part.id}: {part.title}")
            try:
                _run_part(outcome, output)
            except Interrupted as stop:
                stopped = str(stop)
                outcome.status, outcome.reason = Status.CANCELLED, stopped
        report(f"{part.id}: {outcome.status.value}{f': {outcome.reason}' if outcome.reason else ''}")
        save(outcomes)
    return outcomes


def _hindrance(part: Part, outcomes: list[Outcome], gpus: int) -> tuple[Status, str] | None:
    """Return why a part is not started; None if it is."""
    if part.missing:
        return Status.NOT_RUN, part.missing
    before = {outcome.part.id: outcome for outcome in outcomes}
    for need in part.needs:
        other = before[need]
        if other.status is Status.NOT_RUN or (part.cleans and not other.ran):
            return Status.NOT_RUN, other.reason if other.status is Status.NOT_RUN else f"{need} was not started"
        if other.status is not Status.PASS and not part.cleans:
            return Status.BLOCKED, f"{need} is {other.status.value}"
    missing = too_few_gpus(part, gpus)
    return (Status.NOT_RUN, missing) if missing else None


def in_order(parts: Sequence[Part]) -> list[Part]:
    """Return the parts in the order of their execution: those that clean are the last ones."""
    return sorted(parts, key=lambda part: part.cleans)


def too_few_gpus(part: Part, gpus: int) -> str:
    """Return why this machine has too few GPUs for a part; '' if it has enough."""
    return f"{counted(part.gpus, 'GPU')} needed, this machine has {gpus}" if part.gpus > gpus else ""


def _run_part(outcome: Outcome, output: Path) -> None:
    started = time.monotonic()
    try:
        for number, command in enumerate(outcome.part.commands, start=1):
            name = f"logs/{outcome.part.id}_{number}"
            run = outcome.figures.get("run", {}).get("id", "")
            if "{run}" in command.argv and not run:
                break
            words = tuple(word.replace("{run}", run) for word in command.argv)
            ran = _run(command, words, output, name)
            outcome.ran.append(ran)
            text = (output / ran.logs[0]).read_text(errors="replace")
            status, reason = _status(command, ran, text, output)
            if command.reads:
                outcome.figures.update(_figures(command, text))
            if command.optional or status is Status.PASS:
                continue
            if outcome.status is Status.PASS:
                outcome.status, outcome.reason = status, reason
            # The legs of a failed run are part of the report, too.
            if command.reads != "run":
                break
    finally:
        outcome.seconds = time.monotonic() - started


def _run(command: Command, words: tuple[str, ...], output: Path, name: str) -> Ran:
    """Run a command to its end; a deadline or a signal ends it with its children."""
    root = requirements_dir().parent
    logs = (f"{name}.out", f"{name}.err")
    line = shown(Command(words, command.env, command.cwd), output)
    started = time.monotonic()
    with (output / logs[0]).open("wb") as out, (output / logs[1]).open("wb") as err:
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=root / command.cwd,
                env={**os.environ, **command.env},
                start_new_session=True,
            )
        except OSError as error:
            err.write(f"{words[0]}: {error.strerror}\n".encode())
            return Ran(line, 127, 0.0, logs)
        code: int | None = None
        try:
            code = process.wait(command.limit_s)
        except subprocess.TimeoutExpired:
            err.write(f"ended after {limit(command.limit_s)}\n".encode())
        finally:
            if code is None:
                _end(process)
    return Ran(line, code, time.monotonic() - started, logs)


def _end(process: "subprocess.Popen[bytes]") -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_S)
            return


def _status(command: Command, ran: Ran, text: str, output: Path) -> tuple[Status, str]:
    """Return the status of a command, and the reason if it is not `pass`."""
    if command.reads == "run" and (run := _json(text).get("run")):
        status = Status(run["status"]) if run.get("status") else Status.INFRA_FAILURE
        return (Status.PASS if status is Status.IMPROVEMENT else status), _first_line(run.get("reason", ""))
    if ran.code == 0:
        return Status.PASS, ""
    status = _STATUSES.get(ran.code or 0, Status.FAILED) if command.argv[0] == "tipcflow" else Status.FAILED
    if command.reads == "scaling" and (reason := _failed_topologies(_json(text))):
        return status, reason
    errors = (output / ran.logs[1]).read_text(errors="replace").strip() or text.strip()
    last = next((line.strip() for line in reversed(errors.splitlines()) if _tells(line)), "no message")
    return status, f"exit code {ran.code}: {last}" if ran.code is not None else last


def _failed_topologies(document: dict[str, Any]) -> str:
    """Return the topologies of a scaling series that failed, with their reasons; '' without any."""
    failed = [entry for entry in document.get("topologies", []) if exit_code(Status(entry["status"]))]
    return "; ".join(f"{entry['topology']}: {_first_line(entry['reason'])}" for entry in failed)


def _first_line(text: str) -> str:
    """Return a reason without its hint."""
    return text.split("\n", 1)[0]


def _tells(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("hint:")


def _figures(command: Command, text: str) -> dict[str, Any]:
    """Return what a command printed for the report."""
    if command.reads == "text":
        return {"text": [line for line in text.splitlines() if line.strip()][-_TEXT_LINES:]}
    if command.reads == "legs":
        return {"legs": list(csv.DictReader(text.splitlines()))}
    document = _json(text)
    if command.reads == "run":
        run = document.get("run", {})
        checks: dict[str, int] = {}
        for check in document.get("checks", []):
            checks[check["status"]] = checks.get(check["status"], 0) + 1
        return {"run": {"id": run.get("id", ""), "checks": checks}} if run else {}
    return {command.reads: document} if document else {}


def _json(text: str) -> dict[str, Any]:
    """Return the JSON object of an output; {} if it has none."""
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
