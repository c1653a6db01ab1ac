"""A step's logs -> this machine -> measurements. Called at the end of each step, so that nothing is lost later.

Logs are kept below TIPCFLOW_HOME/runs/<run>/<step>/<node>/. The launcher's environment dumps are never fetched.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tipcflow.domain import ExitRecord, InfraError, Measurement, Phase, RankReport, Step, StepKind
from tipcflow.execute.counted_once import own_samples
from tipcflow.execute.member import Member
from tipcflow.execute.nodes import Nodes
from tipcflow.execute.telling import Telling, telling
from tipcflow.parse import (
    InferenceLog,
    parse_inference,
    parse_predictions,
    parse_ranks,
    parse_training,
    peak_measurements,
    to_measurements,
)
from tipcflow.remote import paths

# More of one file than this is not fetched; the cut is said in the step's reason.
LOG_LIMIT = 64 * 1024 * 1024
TAIL = 64 * 1024
_WORKER = re.compile(r"workerlog\.(\d+)")


@dataclass
class Collected:
    """What one step's nodes gave.

    Attributes:
        log_format: the suite's format of training lines.
        told: node name (steps) or leg id (inference) -> what the end of its logs tells of a failure.
        inference: leg id -> what its log says.
        predictions: image -> class scores, of a step without legs that prints them (export, evaluation).
        ranks: what the training processes said of themselves.
        notes: what was cut, in words.
        lost: what could not be fetched, in words: what it would have shown is not known.
    """

    log_format: str
    told: dict[str, Telling] = field(default_factory=dict)
    measurements: list[Measurement] = field(default_factory=list)
    inference: dict[str, InferenceLog] = field(default_factory=dict)
    predictions: dict[str, tuple[float, ...]] = field(default_factory=dict)
    ranks: list[RankReport] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


def step_folder(home: Path, run: str, step: str) -> Path:
    """Where the files of a step are kept on this machine."""
    return home / "runs" / run / paths.safe_name(step)


def collect(
    step: Step, members: Sequence[Member], nodes: Nodes, *, home: Path, attempt: int, log_format: str
) -> Collected:
    """Fetch the logs of every member that can be reached, and read them."""
    run = members[0].spec.run
    collected = Collected(log_format)
    for member in members:
        folder = step_folder(home, run, step.id) / member.name
        folder.mkdir(parents=True, exist_ok=True)
        try:
            fetched = nodes.fetch(member.spec, member.artefacts, folder, limit=LOG_LIMIT, sent=member.sent)
            collected.notes += fetched.notes
            collected.lost += fetched.spoiled
        except InfraError as error:
            collected.lost.append(f"the logs of node {member.name} could not be fetched: {error}")
        _read_member(step, member, folder, collected, attempt)
    return collected


def _read_member(step: Step, member: Member, folder: Path, collected: Collected, attempt: int) -> None:
    if step.kind in (StepKind.INFER_CPU, StepKind.INFER_GPU):
        for leg in step.legs:
            _read_leg(step, leg.id, member, folder, collected, attempt)
    else:
        collected.told[member.name] = _tell(step, member, folder)
    if step.kind is StepKind.TRAIN:
        _read_training(step, member, folder, collected, attempt)
    if step.kind in (StepKind.EVAL, StepKind.EXPORT) and _log(member, folder).is_file():
        collected.predictions |= parse_predictions(text_of(_log(member, folder)))
    if step.kind is StepKind.EVAL:
        collected.measurements += to_measurements(
            parse_training(numbered_lines(_log(member, folder)), collected.log_format),
            run=member.spec.run,
            step=step.id,
            attempt=attempt,
            node=member.name,
            source=_source(_log(member, folder), folder),
        )
    records = list(member.legs.values()) if step.legs else [member.record] if member.record else []
    collected.measurements += [m for record in records for m in [*peak_measurements(record), wall_time(record)]]


def _read_training(step: Step, member: Member, folder: Path, collected: Collected, attempt: int) -> None:
    """Every rank's own log where the launcher wrote one; else the step's output, which is rank 0's."""
    first, logs = _first_rank(step, member), _worker_logs(step, member, folder)
    for rank, path in sorted(logs.items() if logs else {first: _log(member, folder)}.items()):
        if not path.is_file():
            continue
        samples = parse_training(numbered_lines(path), collected.log_format)
        collected.measurements += to_measurements(
            own_samples(samples, path, folder),
            run=member.spec.run,
            step=step.id,
            attempt=attempt,
            node=member.name,
            rank=rank,
            source=_source(path, folder),
        )
        collected.ranks += parse_ranks(text_of(path), node=member.name)[-1:]


def _read_leg(step: Step, leg: str, member: Member, folder: Path, collected: Collected, attempt: int) -> None:
    path = _log(member, folder, leg)
    if not path.is_file():
        return
    log = parse_inference(text_of(path))
    collected.told[leg] = telling(tail(path), {})
    collected.inference[leg] = log
    collected.measurements += to_measurements(
        log.samples,
        run=member.spec.run,
        step=step.id,
        leg=leg,
        attempt=attempt,
        node=member.name,
        source=_source(path, folder),
    )


def wall_time(record: ExitRecord) -> Measurement:
    """How long a job or leg took on its node, seconds."""
    return Measurement(
        run=record.run,
        step=record.step,
        leg=record.leg,
        attempt=record.attempt,
        node=record.node,
        metric="wall_time",
        phase=Phase.RESOURCE,
        value=record.duration_s,
        unit="s",
        source="exit record",
    )


def _source(path: Path, folder: Path) -> str:
    """A log's path relative to the step's folder: `<node>/logs/main.log`."""
    return str(path.relative_to(folder.parent))


def _log(member: Member, folder: Path, leg: str = "") -> Path:
    """The output of a leg or of a step's command: what was captured, or, where a command of a suite's own script
    redirects its output, the file that it wrote."""
    captured = folder / paths.log_file("", leg).lstrip("/")
    own = next((command.log for command in member.spec.commands if command.leg == leg and command.log), "")
    if own and (folder / "files" / own).is_file():
        return folder / "files" / own
    return captured


def _first_rank(step: Step, member: Member) -> int:
    """The lowest rank on a node."""
    return step.nodes.index(member.name) * max(1, step.world_size // max(1, len(step.nodes)))


def _worker_logs(step: Step, member: Member, folder: Path) -> dict[int, Path]:
    """Rank -> that worker's own log, where a launcher wrote one: of several the largest, the others are copies.

    Logs of other names (`workerlog.0.bak`, `workerlog.0.1`) are nobody's: a copy counts no rank twice.
    """
    found = ((_WORKER.fullmatch(path.name), path) for path in folder.rglob("workerlog.*"))
    logs = sorted((path.stat().st_size, str(path), int(name[1])) for name, path in found if name)
    return {_first_rank(step, member) + local: Path(path) for _, path, local in logs}


def _tell(step: Step, member: Member, folder: Path) -> Telling:
    """What the logs of one node tell of a failure."""
    workers = {rank: tail(path) for rank, path in _worker_logs(step, member, folder).items()}
    return telling(tail(_log(member, folder)), workers, _first_rank(step, member))


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """(byte offset, line) of a log; bad bytes become replacement characters. Nothing when there is no file."""
    if not path.is_file():
        return
    offset = 0
    with path.open("rb") as file:
        for line in file:
            yield offset, line.decode("utf-8", errors="replace")
            offset += len(line)


def text_of(path: Path) -> str:
    """A whole log as text."""
    return path.read_bytes().decode("utf-8", errors="replace")


def tail(path: Path) -> str:
    """The last 64 KiB of a log, '' when there is none."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL))
        return file.read().decode("utf-8", errors="replace")
