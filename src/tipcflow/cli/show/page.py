"""The page of `tipcflow show`, as lines. Each table lists failures first."""

import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.cli.output.output import columns
from tipcflow.cli.show.failures import failure_lines
from tipcflow.domain import CheckResult, Command, LegKey, NodeFacts, Status, Step
from tipcflow.domain.numbers.units import counted, duration, size, utc
from tipcflow.domain.run.names import FrameworkVersion
from tipcflow.report.again import rerun_command
from tipcflow.report.result_groups import group_results
from tipcflow.report.rows import NOT_GATING, verdict_rows
from tipcflow.report.run.lines import check_reason, leg_lines, scope, step_lines
from tipcflow.report.run.timeline import bars
from tipcflow.report.text.jobs import command_line
from tipcflow.report.text.names import shorten, variant_of

if TYPE_CHECKING:
    from tipcflow.report.run.data import RunData

_FINE = (Status.PASS, Status.IMPROVEMENT, Status.INSUFFICIENT_DATA, Status.NOT_RUN)
_SKIPPED = (Status.NOT_RUN, Status.BLOCKED)
_WITHOUT_DATA = (Status.INSUFFICIENT_DATA, Status.NOT_RUN)
# From this number on, legs that were skipped for one reason share a row, and results of a check without data.
_ALIKE = 4
Row = tuple[str, tuple[str, ...]]


def page(data: "RunData", logs: Path, *, width: int | None, before: str = "", every: bool = False) -> list[str]:
    """All lines of the page.

    Args:
        logs: the folder of the run's fetched files.
        width: columns of the terminal, None for no limit.
        before: ID of the run to compare with; '' for none.
        every: a row per check, also of those that share one because they have no data.
    """
    sections = (
        ("", _header(data, width)),
        ("CHECKS", _table(("STATUS", "CHECK", "ABOUT", "WHY"), _checks(data, every), width)),
        ("STEPS", _table(("STATUS", "STEP", "NODE", "ATTEMPT", "TOOK", "WHY"), _steps(data), width)),
        ("WHAT WENT WRONG", failure_lines(data, logs, width)),
        ("LEGS", _table(("STATUS", "LEG", "STEP", "TOOK", "WHY"), _legs(data), width)),
        ("NODES", [line for facts in data.facts.node_facts for line in _node(facts, width)]),
        ("LOGS", _logs(data, logs)),
        ("COMPARE", [f"tipcflow compare {before} {data.run.id}"] if before else []),
        ("REPRODUCE", _reproduce(data)),
    )
    lines: list[str] = []
    for title, body in sections:
        if body:
            lines += [*([""] if lines else []), *([title] if title else []), *body]
    return lines


def _header(data: "RunData", width: int | None) -> list[str]:
    run = data.run
    status = run.status.value if run.status else "no status yet"
    lines = [f"{status}  {run.id}"]
    for paragraph in run.reason.splitlines():
        lines += textwrap.wrap(paragraph, width) if width else [paragraph]
    seed = "" if run.seed is None else f", seed {run.seed}"
    ended = "" if run.ended_at is None else f", took {duration(run.duration_s)}"
    code = f" at {run.suite_commit[:12]}" if run.suite_commit else ", working tree (no commit)"
    rows = [
        ("chain", run.chain),
        ("variant", variant_of(data.plan)),
        ("mode", f"{run.mode}, compat {run.compat}{seed}"),
        ("suite", f"{run.suite}{code}" + (f", sha256 {run.suite_sha256[:12]}" if run.suite_sha256 else "")),
        ("cluster", f"{run.cluster}: {', '.join(run.nodes)}" if run.nodes else run.cluster),
        ("framework", run.framework),
        ("environment", run.environment),
        ("environment changes", data.unlike_before),
        ("plan", data.plan_problem),
        ("started", f"{utc(run.created_at)} UTC by {run.trigger}{ended}"),
        *((name, _counted(counts)) for name, counts in data.counts.items()),
    ]
    shown = [(name, text) for name, text in rows if text]
    return [*lines, "", *columns(shown[0], shown[1:], width=width)]


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{number} {word}" for word, number in counts.items())


def _table(headers: Sequence[str], rows: Iterable[Row], width: int | None) -> list[str]:
    """Rows with the worst status first, and `running` and `waiting` rows last; stable otherwise."""
    ordered = sorted(rows, key=lambda row: -2 - Status(row[0]).severity if row[0] in set(Status) else -1)
    return columns(headers, [(status, *rest) for status, rest in ordered], width=width) if ordered else []


def _checks(data: "RunData", every: bool) -> list[Row]:
    """One row per result; many results of one check without data share one."""
    rows: list[Row] = []
    for group in group_results(data.checks):
        if group.status in _WITHOUT_DATA and len(group.results) >= _ALIKE and not every:
            (row,) = verdict_rows(group.results)
            text = f"{shorten(data.plan, row.text)} (all: --all)"
            rows.append((row.status.value, (row.name, shorten(data.plan, row.about), text)))
        else:
            rows += [_check(data, result) for result in group.results]
    return rows


def _check(data: "RunData", result: CheckResult) -> Row:
    mark = "" if result.gating else f"({NOT_GATING}) "
    return result.status.value, (result.check, scope(data, result), mark + check_reason(data, result))


def _steps(data: "RunData") -> list[Row]:
    lines = step_lines(data, bars(data.run, data.attempts, now=data.now))
    return [
        (
            line.status,
            (
                line.name,
                line.node,
                str(line.attempt or ""),
                duration(line.seconds),
                (line.reason if line.first else "") or line.end,
            ),
        )
        for line in lines
    ]


def _legs(data: "RunData") -> list[Row]:
    """One row per leg; legs that did not run for the same reason share one."""
    lines = list(leg_lines(data))
    skipped = Counter((line.status, line.reason) for line in lines if line.status in _SKIPPED)
    rows: list[Row] = []
    for line in lines:
        count = skipped[line.status, line.reason]
        if count < _ALIKE:
            rows.append((line.status, (line.leg.id, line.step, duration(line.seconds), line.reason)))
            continue
        shared: Row = (line.status, (f"{count} legs", "", "", line.reason))
        if shared not in rows:
            rows.append(shared)
    return rows


def _node(facts: NodeFacts, width: int | None) -> list[str]:
    gpus = [str(gpu.get("name", "GPU")) for gpu in facts.gpus]
    parts = [
        facts.os,
        f"{facts.cpu_model} x {facts.cpu_count}" if facts.cpu_model else "",
        size(facts.memory_bytes) if facts.memory_bytes else "",
        f"{counted(len(gpus), 'GPU')} ({', '.join(sorted(set(gpus)))})" if gpus else "no GPU",
        f"driver {facts.driver}" if facts.driver else "",
        f"CUDA {facts.cuda}" if facts.cuda else "",
        f"Python {facts.python}" if facts.python else "",
        str(FrameworkVersion(facts.framework, facts.framework_version)),
        facts.container,
    ]
    lines = columns((facts.node, ", ".join(filter(None, parts))), [], width=width)
    for peer, why in facts.unreachable.items():
        lines += columns((f"  cannot reach {peer}", why), [], width=width)
    return lines


def _logs(data: "RunData", logs: Path) -> list[str]:
    if not logs.is_dir():
        return ["nothing was fetched from the nodes"]
    return [str(logs), f"tipcflow logs {data.run.id}"]


def _reproduce(data: "RunData") -> list[str]:
    """The command of the whole run, then those of the failed steps and legs."""
    plan, run = data.plan, data.run
    if plan is None:
        return []
    lines = [rerun_command(run, plan)]
    for step in plan.steps:
        status = data.facts.step_status.get(step.id)
        if status is not None and status not in (*_FINE, Status.BLOCKED):
            lines += _commands(data, step)
    return lines


def _commands(data: "RunData", step: Step) -> list[str]:
    wanted: list[tuple[str, Command]] = list(step.commands.items())
    for leg in step.legs:
        status = data.facts.leg_status.get(LegKey(step.id, leg.id))
        if status is not None and status not in (*_FINE, Status.BLOCKED):
            wanted.append((step.nodes[0], leg.command))
    return [f"[{node}] {command_line(command)}" for node, command in wanted]
