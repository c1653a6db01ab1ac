"""The page of `tipcflow show`, as lines. Each table lists failures first."""

import shlex
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tipcflow.cli.output.names import short_step, variant_of
from tipcflow.cli.output.output import columns, size, took, when
from tipcflow.cli.show.failures import failure_lines
from tipcflow.domain import Command, ExitRecord, NodeFacts, Status, Step
from tipcflow.report.again import again

if TYPE_CHECKING:
    from tipcflow.cli.show.command import Story

_FINE = (Status.PASS, Status.IMPROVEMENT, Status.INSUFFICIENT_DATA, Status.NOT_RUN)
Row = tuple[Status | None, tuple[str, ...]]


def page(story: "Story", *, width: int | None) -> list[str]:
    """All lines of the page. `width`: columns of the terminal, None for no limit."""
    sections = (
        ("", _header(story, width)),
        ("CHECKS", _table(("STATUS", "CHECK", "ABOUT", "WHY"), _checks(story), width)),
        ("STEPS", _table(("STATUS", "STEP", "NODE", "TRY", "TOOK", "WHY"), _steps(story), width)),
        ("WHAT WENT WRONG", failure_lines(story, width)),
        ("LEGS", _table(("STATUS", "LEG", "STEP", "TOOK", "WHY"), _legs(story), width)),
        ("NODES", [line for facts in story.nodes for line in _node(facts, width)]),
        ("LOGS", _logs(story)),
        ("REPRODUCE", _reproduce(story)),
    )
    lines: list[str] = []
    for title, body in sections:
        if body:
            lines += [*([""] if lines else []), *([title] if title else []), *body]
    return lines


def _header(story: "Story", width: int | None) -> list[str]:
    run = story.run
    status = run.status.value if run.status else "no status yet"
    lines = [f"{status}  {run.id}"]
    for paragraph in run.reason.splitlines():
        lines += textwrap.wrap(paragraph, width) if width else [paragraph]
    seed = "" if run.seed is None else f", seed {run.seed}"
    ended = "" if run.ended_at is None else f", took {took(run.ended_at - run.created_at)}"
    code = f" at {run.suite_commit[:12]}" if run.suite_commit else ", working tree (no commit)"
    rows = [
        ("chain", run.chain),
        ("variant", variant_of(story.plan)),
        ("mode", f"{run.mode}, compat {run.compat}{seed}"),
        ("suite", f"{run.suite}{code}" + (f", sha256 {run.suite_sha256[:12]}" if run.suite_sha256 else "")),
        ("cluster", f"{run.cluster}: {', '.join(run.nodes)}" if run.nodes else run.cluster),
        ("framework", run.framework),
        ("environment", run.environment),
        ("env changes", story.unlike_before),
        ("started", f"{when(run.created_at)} UTC by {run.trigger}{ended}"),
        *((name, _counted(counts)) for name, counts in story.counts.items()),
    ]
    shown = [(name, text) for name, text in rows if text]
    return [*lines, "", *columns(shown[0], shown[1:], width=width)]


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{number} {word}" for word, number in counts.items())


def _table(headers: Sequence[str], rows: Iterable[Row], width: int | None) -> list[str]:
    """Rows with the worst status first, and rows without a status (not reached yet) last; stable otherwise."""
    ordered = sorted(rows, key=lambda row: -1 if row[0] is None else -2 - row[0].severity)
    cells = [(status.value if status else "…", *rest) for status, rest in ordered]
    return columns(headers, cells, width=width) if cells else []


def _checks(story: "Story") -> list[Row]:
    return [
        (
            result.status,
            (
                result.check,
                " ".join(filter(None, (short_step(story.plan, result.step), result.leg, result.metric))),
                result.reason if result.gating else f"(not gating) {result.reason}",
            ),
        )
        for result in story.checks
    ]


def _steps(story: "Story") -> list[Row]:
    last = {attempt.step: attempt for attempt in story.attempts}
    rows: list[Row] = []
    for step in story.plan.steps if story.plan else ():
        status, reason = story.steps.get(step.id, (None, ""))
        attempt, name = last.get(step.id), short_step(story.plan, step.id)
        if attempt is None:
            rows.append((status, (name, " ".join(step.nodes), "", "", reason)))
            continue
        records = {record.node: record for record in attempt.records if not record.leg}
        for node in attempt.nodes:
            record = records.get(node)
            own = "" if record is None or record.ok else _ended(record)
            why = reason or own if node == attempt.nodes[0] else own
            spent = took(record.duration_s) if record else ""
            rows.append((status, (name, node, str(attempt.attempt), spent, why)))
    return rows


def _ended(record: ExitRecord) -> str:
    """How a failed job ended."""
    missing = [output.path for output in record.outputs if not (output.exists and output.fresh)]
    how = {
        "exited": f"exit code {record.exit_code}",
        "signaled": f"signal {record.signal}",
    }.get(record.reason.value, record.reason.value.replace("_", " "))
    parts = [how, record.message, "out of memory" if record.oom else ""]
    parts.append(f"not written: {', '.join(missing)}" if missing else "")
    return ", ".join(filter(None, parts))


def _legs(story: "Story") -> list[Row]:
    rows: list[Row] = []
    for step in story.plan.steps if story.plan else ():
        for leg in step.legs:
            key = f"{step.id}/{leg.id}"
            status, reason = story.legs.get(key, (None, ""))
            name = short_step(story.plan, step.id)
            rows.append((status, (leg.id, name, took(story.leg_times.get(key)), reason)))
    return rows


def _node(facts: NodeFacts, width: int | None) -> list[str]:
    gpus = [str(gpu.get("name", "GPU")) for gpu in facts.gpus]
    parts = [
        facts.os,
        f"{facts.cpu_model} x {facts.cpu_count}" if facts.cpu_model else "",
        size(facts.memory_bytes) if facts.memory_bytes else "",
        f"{len(gpus)} GPUs ({', '.join(sorted(set(gpus)))})" if gpus else "no GPU",
        f"driver {facts.driver}" if facts.driver else "",
        f"CUDA {facts.cuda}" if facts.cuda else "",
        f"Python {facts.python}" if facts.python else "",
        f"{facts.framework} {facts.framework_version}".strip(),
        facts.container,
    ]
    lines = columns((facts.node, ", ".join(filter(None, parts))), [], width=width)
    for peer, why in facts.unreachable.items():
        lines += columns((f"  cannot reach {peer}", why), [], width=width)
    return lines


def _logs(story: "Story") -> list[str]:
    if not story.logs.is_dir():
        return ["nothing was fetched from the nodes"]
    return [str(story.logs), f"tipcflow logs {story.run.id}"]


def _reproduce(story: "Story") -> list[str]:
    """The command of the whole run, then those of the failed steps and legs."""
    plan, run = story.plan, story.run
    if plan is None:
        return []
    lines = [again(run, plan)]
    for step in plan.steps:
        status = story.steps.get(step.id, (None, ""))[0]
        if status is not None and status not in (*_FINE, Status.BLOCKED):
            lines += _commands(story, step)
    return lines


def _commands(story: "Story", step: Step) -> list[str]:
    wanted: list[tuple[str, Command]] = list(step.commands.items())
    for leg in step.legs:
        status = story.legs.get(f"{step.id}/{leg.id}", (None, ""))[0]
        if status is not None and status not in (*_FINE, Status.BLOCKED):
            wanted.append((step.nodes[0], leg.command))
    return [f"[{node}] {command_line(command)}" for node, command in wanted]


def command_line(command: Command) -> str:
    """A command to paste into a shell, in the suite's root."""
    place = "" if command.cwd in ("", ".") else f"cd {shlex.quote(command.cwd)} && "
    if command.container:  # the command refers to its folders by variables that only a job has
        place = 'export TIPCFLOW_ROOT="$PWD" TIPCFLOW_BIN="${PWD%/*}/bin" TIPCFLOW_CONTAINER=again; '
    settings = "".join(f"{key}={shlex.quote(value)} " for key, value in sorted(command.env.items()))
    return f"{place}{settings}{command.shell}"
