"""Rows of a run's tables: steps x nodes, legs, files."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from certification.data.files import RunFile, step_folder
from certification.data.run_data import Story
from tipcflow.cli.output.names import short_step
from tipcflow.cli.show.page import command_line
from tipcflow.domain import ExitRecord, Failure, Leg, Plan, Step
from tipcflow.report import leg_rows, step_rows
from tipcflow.report.rows import LegRow
from tipcflow.report.timeline import Bar


@dataclass(frozen=True)
class StepLine:
    """One step on one node; `first` of `rows` lines of that step.

    `bars` are its tries, `command` is as one pastes it, `end` says how a job ended that did not end well,
    `failure` why the step did not.
    """

    step: str
    name: str
    node: str
    first: bool
    rows: int
    status: str
    reason: str
    bars: tuple[Bar, ...]
    command: str
    end: str
    failure: Failure | None


@dataclass(frozen=True)
class LegLine:
    """One inference combination with what was measured of it; None where nothing was.

    `latency_ms` per batch, `memory_mb` of the device it ran on, both medians; `seconds` of the whole process.
    """

    step: str
    leg: Leg
    status: str
    reason: str
    latency_ms: float | None
    memory_mb: float | None
    seconds: float | None
    command: str


@dataclass(frozen=True)
class FileGroup:
    """The files of one step on one node."""

    step: str
    node: str
    files: tuple[RunFile, ...]


def step_lines(story: Story, drawn: Sequence[Bar]) -> list[StepLine]:
    """One line per step and node, in the order of the plan."""
    said = {row.step: row for row in step_rows(story.facts)}
    tries: dict[tuple[str, str], list[Bar]] = {}
    for bar in drawn:
        tries.setdefault((bar.step, bar.node), []).append(bar)
    lines = []
    for step in story.facts.plan.steps:
        for number, node in enumerate(step.nodes):
            own = tuple(tries.get((step.id, node), ()))
            command = step.commands.get(node)
            lines.append(
                StepLine(
                    step=step.id,
                    name=short_step(story.plan, step.id),
                    node=node,
                    first=number == 0,
                    rows=len(step.nodes),
                    status=story.said(step.id, said[step.id].status),
                    reason=said[step.id].reason,
                    bars=own,
                    command=command_line(command) if command else "",
                    end=_end(own[-1].record) if own else "",
                    failure=said[step.id].failure,
                )
            )
    return lines


def _end(record: ExitRecord | None) -> str:
    """How a job ended that did not end well."""
    if record is None or record.ok:
        return ""
    how = {"exited": f"exit code {record.exit_code}", "signaled": f"signal {record.signal}"}
    missing = [output.path for output in record.outputs if not (output.exists and output.fresh)]
    parts = [
        how.get(record.reason.value, record.reason.value.replace("_", " ")),
        record.message,
        "out of memory" if record.oom else "",
        f"not written: {', '.join(missing)}" if missing else "",
        f"{record.killed} left-over processes ended" if record.killed else "",
    ]
    return ", ".join(filter(None, parts))


def leg_lines(story: Story) -> list[LegLine]:
    """Every planned leg, in the order of the plan."""
    spent = {(one.step, one.leg): one.duration_s for one in story.facts.records if one.leg}
    said = {(row.step, row.leg): row for row in leg_rows(story.facts)}
    steps = story.facts.plan.steps
    return [_leg(story, step, leg, said[step.id, leg.id], spent) for step in steps for leg in step.legs]


def _leg(story: Story, step: Step, leg: Leg, row: LegRow, spent: dict[tuple[str, str], float]) -> LegLine:
    memory = "gpu_rss" if leg.device == "gpu" else "cpu_rss"
    return LegLine(
        step=short_step(story.plan, step.id),
        leg=leg,
        status=story.said(f"{step.id}/{leg.id}", row.status),
        reason=row.reason,
        latency_ms=row.latency_ms,
        memory_mb=story.medians.get((step.id, leg.id, memory)),
        seconds=spent.get((step.id, leg.id)),
        command=command_line(leg.command),
    )


def file_groups(plan: Plan | None, files: Iterable[RunFile]) -> tuple[FileGroup, ...]:
    """Files by step and node, steps in the order of the plan and by their short names."""
    names = {step_folder(step.id): short_step(plan, step.id) for step in plan.steps} if plan else {}
    places = {folder: place for place, folder in enumerate(names)}
    ordered = sorted(files, key=lambda one: (places.get(one.step, len(places)), one.step, one.node))
    return tuple(
        FileGroup(names.get(step, step), node, tuple(group))
        for (step, node), group in groupby(ordered, key=lambda one: (one.step, one.node))
    )
