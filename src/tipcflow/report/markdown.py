"""The verdict of a run as Markdown, for a pull request's comment or a job summary."""

from collections.abc import Iterable

from tipcflow.domain import CheckResult, Facts, Run, Status
from tipcflow.report.rows import leg_rows, one_line, step_rows, verdict_rows

# Characters that have a meaning in Markdown or HTML inside a cell.
_ESCAPED = str.maketrans({"|": "\\|", "<": "&lt;", ">": "&gt;", "`": "'", "[": "\\[", "]": "\\]", "@": "&#64;"})


def markdown(facts: Facts, run: Run, results: Iterable[CheckResult], *, neutral: bool = False) -> str:
    """Status, reason, suite and cluster, then checks, steps, legs and replacements in the params file.

    Text from logs and params files cannot break out of its cell, mention a user or become a link.

    Args:
        neutral: whether the run is `unconfirmed` and its policy makes that neutral.
    """
    parts = [
        f"## {_status(run.status)}{' (neutral: it does not block)' if neutral else ''}: {_cell(run.chain)}",
        _cell(run.reason),
        _table(("", ""), _about(facts, run)),
        "### Checks",
        _table(
            ("check", "about", "status", "reason"),
            [
                (
                    row.check
                    + (f" × {row.count}" if row.count > 1 else "")
                    + ("" if row.gating else " (does not count)"),
                    row.about,
                    row.status,
                    row.reason,
                )
                for row in verdict_rows(results)
            ],
        ),
        "### Steps",
        _table(
            ("step", "nodes", "status", "seconds", "reason"),
            [(row.step, row.nodes, row.status, _seconds(row.seconds), row.reason) for row in step_rows(facts)],
        ),
    ]
    wrong = [(row.step, row.failure) for row in step_rows(facts) if row.failure is not None]
    if wrong:
        said = [(step, one.failure_class.value, one.culprit, one.remedy.advice) for step, one in wrong]
        parts += ["### What went wrong", _table(("step", "class", "root cause", "what to do"), said)]
    legs = leg_rows(facts)
    if legs:
        rows = [
            (f"{row.step}/{row.leg}", row.settings, row.status, _ms(row.latency_ms), row.reason) for row in legs
        ]
        parts += ["### Inference legs", _table(("leg", "settings", "status", "ms per batch", "reason"), rows)]
    if facts.plan.substitutions:
        changed = [(one.what, one.found, one.used, one.because) for one in facts.plan.substitutions]
        parts += ["### Replaced in the params file", _table(("what", "found", "used", "because"), changed)]
    if facts.plan.quirks:
        quirks = [(one.id, str(one.line or ""), one.bash, one.spec) for one in facts.plan.quirks]
        parts += [
            "### Where the suite's script does otherwise",
            _table(("quirk", "line", "script", "here"), quirks),
        ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _about(facts: Facts, run: Run) -> list[tuple[str, str]]:
    plan = facts.plan
    took = "" if run.ended_at is None else f"{run.ended_at - run.created_at:.0f} s"
    rows = [
        ("run", run.id),
        ("model", run.model),
        ("suite", " ".join(part for part in (run.suite, run.suite_commit or run.suite_sha256[:12]) if part)),
        ("params file", f"{plan.params_file} ({plan.params_sha256[:12]})"),
        ("mode", f"{run.mode}, {run.compat}"),
        ("framework", run.framework),
        ("cluster", f"{run.cluster}: {', '.join(run.nodes)}"),
        ("environment", run.environment),
        ("seed", "" if run.seed is None else str(run.seed)),
        ("AutoLog", facts.reporter),
        ("took", took),
    ]
    return [row for row in rows if row[1]]


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    lines += [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    word = text.value if isinstance(text, Status) else text
    return one_line(word).translate(_ESCAPED)


def _status(status: Status | None) -> str:
    return status.value if status else "no status yet"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f}" if seconds else ""


def _ms(latency: float | None) -> str:
    return "" if latency is None else f"{latency:.2f}"
