"""Rows of a run's tables, the same for the CLI and the pages: steps x nodes, legs, scopes of checks."""

from collections.abc import Sequence
from dataclasses import dataclass

from tipcflow.domain import CheckResult, Failure, Leg, LegKey, MetricKey, Step
from tipcflow.report.rows import LegRow, StepRow, leg_rows, step_rows
from tipcflow.report.run.data import RunData
from tipcflow.report.run.timeline import Bar
from tipcflow.report.text.jobs import command_line, job_end
from tipcflow.report.text.names import short_step, shorten


@dataclass(frozen=True)
class StepLine:
    """One step on one node; `first` of `rows` lines of that step.

    Attributes:
        name: the step's short name.
        status: a status, `running` or `waiting`.
        reason: why the step has its status, with short step names.
        attempt: number of the last attempt, 0 if none was started.
        seconds: time of the last job, or of its attempt until now if the job has no record; None if not started.
        bars: its attempts.
        command: to paste into a shell.
        end: how the last job ended; '' for a job that succeeded.
        failure: the failure of the step's last attempt.
    """

    step: str
    name: str
    node: str
    first: bool
    rows: int
    status: str
    reason: str
    attempt: int
    seconds: float | None
    bars: tuple[Bar, ...]
    command: str
    end: str
    failure: Failure | None


@dataclass(frozen=True)
class LegLine:
    """One leg with its medians; None where nothing was measured.

    Attributes:
        step: short name of the step.
        latency_ms: per batch.
        memory_mb: of the device on which it ran.
        seconds: of the whole process.
    """

    step: str
    leg: Leg
    status: str
    reason: str
    latency_ms: float | None
    memory_mb: float | None
    seconds: float | None
    command: str


def step_lines(data: RunData, drawn: Sequence[Bar]) -> list[StepLine]:
    """One line per step and node, in the order of the plan.

    Args:
        drawn: the attempts, `report.run.timeline.bars`.
    """
    known = {row.step: row for row in step_rows(data.facts)}
    attempts: dict[tuple[str, str], list[Bar]] = {}
    for bar in drawn:
        attempts.setdefault((bar.step, bar.node), []).append(bar)
    return [
        _step_line(data, step, node, tuple(attempts.get((step.id, node), ())), known[step.id])
        for step in data.facts.plan.steps
        for node in step.nodes
    ]


def _step_line(data: RunData, step: Step, node: str, own: tuple[Bar, ...], row: StepRow) -> StepLine:
    last = own[-1] if own else None
    command = step.commands.get(node)
    return StepLine(
        step=step.id,
        name=short_step(data.plan, step.id),
        node=node,
        first=node == step.nodes[0],
        rows=len(step.nodes),
        status=data.status_word(LegKey(step.id), row.status),
        reason=shorten(data.plan, row.reason),
        attempt=last.attempt if last else 0,
        seconds=_seconds(last),
        bars=own,
        command=command_line(command) if command else "",
        end=job_end(last.record) if last else "",
        failure=row.failure,
    )


def _seconds(bar: Bar | None) -> float | None:
    if bar is None:
        return None
    return bar.seconds if bar.record is None else bar.record.duration_s


def leg_lines(data: RunData) -> list[LegLine]:
    """Every planned leg, in the order of the plan."""
    spent = {(record.step, record.leg): record.duration_s for record in data.facts.records if record.leg}
    rows = {(row.step, row.leg): row for row in leg_rows(data.facts)}
    steps = data.facts.plan.steps
    return [_leg_line(data, step, leg, rows[step.id, leg.id], spent) for step in steps for leg in step.legs]


def _leg_line(data: RunData, step: Step, leg: Leg, row: LegRow, spent: dict[tuple[str, str], float]) -> LegLine:
    memory = "gpu_rss" if leg.device == "gpu" else "cpu_rss"
    return LegLine(
        step=short_step(data.plan, step.id),
        leg=leg,
        status=data.status_word(LegKey(step.id, leg.id), row.status),
        reason=shorten(data.plan, row.reason),
        latency_ms=row.latency_ms,
        memory_mb=data.medians.get(MetricKey(step.id, leg.id, memory)),
        seconds=spent.get((step.id, leg.id)),
        command=command_line(leg.command),
    )


def check_reason(data: RunData, result: CheckResult) -> str:
    """The reason of a check result, with short step names."""
    return shorten(data.plan, result.reason)


def scope(data: RunData, result: CheckResult) -> str:
    """What a check result is about: short step name, leg and metric; '' for the whole run."""
    return " ".join(filter(None, (short_step(data.plan, result.step), result.leg, result.metric)))
