"""Fetch a step's logs to this machine and parse them. Called at the end of each step, so that no log is lost.

Logs are stored in TIPCFLOW_HOME/runs/<run>/<step>/<node>/. The launcher's environment dumps are never fetched.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tipcflow.config.formats import PredictionRule
from tipcflow.config.settings import settings
from tipcflow.domain import (
    ExitRecord,
    InfraError,
    LogLines,
    Measurement,
    Phase,
    PrintedProgress,
    RankReport,
    Series,
    Step,
    StepKind,
)
from tipcflow.domain.keys import PredictionKey
from tipcflow.domain.plan import TOPOLOGY_LOGS
from tipcflow.domain.run.failure import Suspicion
from tipcflow.execute.collect.deduplicate import recorded_start
from tipcflow.execute.collect.folders import step_folder
from tipcflow.execute.collect.log_reader import Deadline, LogRead, Origin, own_lines, read_numbers
from tipcflow.execute.failure.diagnosis import LogDiagnosis, diagnose_logs
from tipcflow.execute.job.exit_records import invalid_legs_message
from tipcflow.execute.job.member import Member
from tipcflow.execute.node.nodes import Nodes
from tipcflow.parse import (
    InferenceLog,
    peak_measurements,
    probe_measurements,
    read_inference,
    read_predictions,
    to_measurements,
)
from tipcflow.parse.failures.preparation import preparation_trouble
from tipcflow.parse.training.progress import last_progress
from tipcflow.remote import paths

TAIL = 64 * 1024
_WORKER, _SERVER = re.compile(r"workerlog\.(\d+)"), re.compile(r"serverlog\.(\d+)")
StoreSeries = Callable[[Iterator[Series]], object]


@dataclass
class Collected:
    """The results of one step's nodes.

    Attributes:
        log_format: the suite's format of training log lines.
        rules: the suite's own lines of predictions.
        diagnoses: node name (steps) or leg id (inference) -> diagnosis from the end of its logs.
        measurements: metrics outside training and evaluation logs; those of training and evaluation are stored
            already.
        inference: leg id -> parsed log of the leg.
        predictions: class scores and results, for a step without legs that prints them (export, evaluation).
        ranks: reports of the training processes.
        progress: the last printed progress of the training processes.
        lines: number of recognized lines of the training logs.
        losses: (node, rank) -> number of training losses in its log.
        notes: messages about weight files that were truncated, and about parameter servers that were ended.
        lost: messages about files that could not be fetched or read completely; their content is unknown.
        lost_on: the first node with such a file, '' without one.
        is_away: whether that node could not be reached.
        garbled: messages about lines of `legs.jsonl` that are not exit records; included in `lost`.
    """

    log_format: str
    rules: Sequence[PredictionRule] = ()
    diagnoses: dict[str, LogDiagnosis] = field(default_factory=dict)
    measurements: list[Measurement] = field(default_factory=list)
    inference: dict[str, InferenceLog] = field(default_factory=dict)
    predictions: dict[PredictionKey, tuple[float, ...]] = field(default_factory=dict)
    ranks: list[RankReport] = field(default_factory=list)
    progress: list[PrintedProgress] = field(default_factory=list)
    lines: LogLines = field(default_factory=LogLines)
    losses: dict[tuple[str, int], int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    lost_on: str = ""
    is_away: bool = False
    garbled: list[str] = field(default_factory=list)
    suspicions: list[Suspicion] = field(default_factory=list)


def collect(
    step: Step,
    members: Sequence[Member],
    nodes: Nodes,
    *,
    home: Path,
    attempt: int,
    log_format: str,
    keep: StoreSeries,
    into: Path | None = None,
    rules: Sequence[PredictionRule] = (),
) -> Collected:
    """Fetch and parse the logs of every reachable member.

    Args:
        into: folder for the step's files; None: the folder of the step's last attempt.
        rules: the suite's own lines of predictions.
        keep: receives the series of a training or evaluation log one by one, so that a step's metrics are never in
            memory together. It may receive the same log twice if an earlier closer died before the end.
    """
    reader = _Reader(step, attempt, Collected(log_format, rules), keep)
    limit = settings().log_limit_mb * 1_000_000
    for member in members:
        folder = (into or step_folder(home, member.spec.run, step.id)) / member.name
        folder.mkdir(parents=True, exist_ok=True)
        is_away = False
        try:
            written = member.artefacts if member.record else None
            fetched = nodes.fetch(member.spec, written, folder, limit=limit, sent=member.sent)
            reader.collected.notes += fetched.notes
            reader.collected.lost += fetched.spoiled
        except InfraError as error:
            is_away = error.passing
            reader.collected.lost.append(f"the logs of node {member.name} could not be fetched: {error}")
        if member.record is not None and member.record.servers_finished:
            reader.collected.notes.append(f"node {member.name}: {member.record.message}")
        try:
            reader.read(member, folder)
        except InfraError as error:
            reader.collected.lost.append(f"the logs of node {member.name} could not be read: {error}")
        if reader.collected.lost and not reader.collected.lost_on:
            reader.collected.lost_on, reader.collected.is_away = member.name, is_away
    return reader.collected


class _Reader:
    """Parses the logs of a step's members, one after the other."""

    def __init__(self, step: Step, attempt: int, collected: Collected, keep: StoreSeries) -> None:
        self.step, self.attempt, self.collected, self._keep = step, attempt, collected, keep
        self._deadline = Deadline()

    def read(self, member: Member, folder: Path) -> None:
        """Parse the logs of a member.

        Raises:
            InfraError: parsing took too long.
        """
        step, collected = self.step, self.collected
        self._deadline = Deadline()
        if garbled := invalid_legs_message(folder, member.spec, ended=member.record is not None):
            collected.garbled.append(garbled)
            collected.lost.append(garbled)
        records = list(member.legs.values()) if step.legs else [member.record] if member.record else []
        collected.measurements += [
            m for record in records for m in [*peak_measurements(record), wall_time(record)]
        ]
        collected.measurements += probe_measurements(member.record) if member.record else []
        if member.record is not None and member.record.is_unstarted:
            return  # the logs that the suite's folder has are those of an earlier attempt
        if step.kind not in (StepKind.INFER_CPU, StepKind.INFER_GPU):
            collected.diagnoses[member.name] = _diagnose(step, member, folder)
        if step.kind in (StepKind.INFER_CPU, StepKind.INFER_GPU):
            for leg in step.legs:
                self._read_leg(leg.id, member, folder)
        if step.kind is StepKind.TRAIN:
            self._read_training(member, folder)
        log = _log(member, folder)
        if step.kind is StepKind.PREPARE and member.record is not None and member.record.ok and log.is_file():
            trouble = preparation_trouble(line for _, line in own_lines(log, folder, self._deadline))
            if trouble is not None:
                kind, message = trouble.failure_class, trouble.log_line
                suspicion = Suspicion(failure_class=kind, step=step.id, node=member.name, log_line=message)
                collected.suspicions.append(suspicion)
        if step.kind in (StepKind.EVAL, StepKind.EXPORT) and log.is_file():
            collected.predictions |= read_predictions(own_lines(log, folder, self._deadline), collected.rules)
        if step.kind is StepKind.EVAL and log.is_file():
            self._numbers(log, folder, member, rank=-1, guess=False)

    def _read_training(self, member: Member, folder: Path) -> None:
        """Parse each rank's own log if the launcher wrote one, else the output that a node's ranks share."""
        first, logs = _first_rank(self.step, member), _worker_logs(self.step, member, folder)
        for rank, path in sorted(logs.items() if logs else {first: _training_log(member, folder)}.items()):
            if path.is_file():
                read = self._numbers(path, folder, member, rank=rank)
                self.collected.ranks += read.ranks[-1:] if logs else _last_of_each(read.ranks)
                self.collected.lines += read.lines
                if (last := last_progress(tail(path, folder))) is not None:
                    self.collected.progress.append(PrintedProgress(node=member.name, rank=rank, **last._asdict()))

    def _numbers(self, path: Path, folder: Path, member: Member, *, rank: int, guess: bool = True) -> LogRead:
        origin = Origin(member.spec.run, self.step.id, self.attempt, member.name, _source(path, folder))
        return read_numbers(
            path, folder, origin, self.collected.log_format,
            rank=rank, deadline=self._deadline, keep=self._count_and_keep, guess=guess,
        )  # fmt: skip

    def _count_and_keep(self, series: Iterator[Series]) -> object:
        return self._keep(map(self._counted, series))

    def _counted(self, series: Series) -> Series:
        if series.metric == "loss" and series.phase is Phase.TRAIN:
            losses, place = self.collected.losses, (series.node, series.rank)
            losses[place] = losses.get(place, 0) + len(series.values)
        return series

    def _read_leg(self, leg: str, member: Member, folder: Path) -> None:
        path = _log(member, folder, leg)
        if not path.is_file():
            return
        log = read_inference(own_lines(path, folder, self._deadline), self.collected.rules)
        self.collected.diagnoses[leg] = diagnose_logs(tail(path, folder), {})
        self.collected.inference[leg] = log
        self.collected.measurements += to_measurements(
            log.samples,
            run=member.spec.run,
            step=self.step.id,
            leg=leg,
            attempt=self.attempt,
            node=member.name,
            source=_source(path, folder),
        )


def wall_time(record: ExitRecord) -> Measurement:
    """Return the duration of a job or leg on its node, seconds."""
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
    """Return a log's path relative to the step's folder: `<node>/logs/main.log`."""
    return str(path.relative_to(folder.parent))


def _log(member: Member, folder: Path, leg: str = "") -> Path:
    """Return the output of a leg or of a step's command: the captured log or, if the command of a suite's own
    script redirects its output, the file it wrote."""
    captured = folder / paths.log_file("", leg).lstrip("/")
    own = next((command.log for command in member.spec.commands if command.leg == leg and command.log), "")
    if own and (folder / "files" / own).is_file():
        return folder / "files" / own
    return captured


def _training_log(member: Member, folder: Path) -> Path:
    """Return the log of a training without worker logs: a file in DLPerf's layout, of several the last by name;
    otherwise the output of the step's command."""
    patterns = [pattern for pattern in member.spec.artefacts if pattern.startswith(TOPOLOGY_LOGS)]
    logs = sorted(path for pattern in patterns for path in (folder / "files").glob(pattern) if path.is_file())
    return logs[-1] if logs else _log(member, folder)


def _first_rank(step: Step, member: Member) -> int:
    """Return the lowest rank on a node."""
    return step.nodes.index(member.name) * max(1, step.world_size // max(1, len(step.nodes)))


def _last_of_each(reports: tuple[RankReport, ...]) -> tuple[RankReport, ...]:
    """Return the last report of each rank: processes without a launcher's logs share one."""
    return tuple({report.rank: report for report in reports}.values())


def _worker_logs(step: Step, member: Member, folder: Path) -> dict[int, Path]:
    """Map each rank to its worker log if a launcher wrote one; of several files the largest, the others are
    copies.

    Files with other names (`workerlog.0.bak`, `workerlog.0.1`) are ignored, so that copies count no rank twice.
    """
    matches = ((_WORKER.fullmatch(path.name), path) for path in folder.rglob("workerlog.*"))
    logs = sorted((path.stat().st_size, str(path), int(name[1])) for name, path in matches if name)
    return {_first_rank(step, member) + local: Path(path) for _, path, local in logs}


def _diagnose(step: Step, member: Member, folder: Path) -> LogDiagnosis:
    """Diagnose a failure from the logs of one node."""
    workers = {rank: tail(path, folder) for rank, path in _worker_logs(step, member, folder).items()}
    record, output = member.record, tail(_log(member, folder), folder)
    if record is None:
        return diagnose_logs(output, workers, _first_rank(step, member))
    diagnosis = diagnose_logs(output, workers, _first_rank(step, member), record.ranks, record.unmet)
    return replace(diagnosis, servers=_server_logs(step, member, folder)) if step.servers else diagnosis


def _server_logs(step: Step, member: Member, folder: Path) -> dict[int, str]:
    """Map the rank of each parameter server on a node to the end of its log."""
    first = step.nodes.index(member.name) * (step.servers // len(step.nodes))
    names = ((_SERVER.fullmatch(path.name), path) for path in folder.rglob("serverlog.*"))
    return {first + int(name[1]): tail(path, folder) for name, path in names if name}


def tail(path: Path, folder: Path) -> str:
    """Return the last 64 KiB that an attempt wrote to a log, '' if it wrote none.

    Args:
        folder: folder of the step and node; it contains the log.
    """
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        file.seek(max(recorded_start(path, folder) or 0, path.stat().st_size - TAIL))
        return file.read().decode("utf-8", errors="replace")
