"""The verdict of a run as Markdown, for a pull request's comment or a job summary."""

from collections.abc import Iterable

from tipcflow.domain import CheckResult, Facts, LegKey, Run, Status
from tipcflow.domain.numbers.units import duration, milliseconds
from tipcflow.report.rows import leg_rows, step_rows, verdict_rows
from tipcflow.report.text.markdown_text import cell, table


def markdown(facts: Facts, run: Run, results: Iterable[CheckResult], *, neutral: bool = False) -> str:
    """Status, reason, suite and cluster, then checks, steps, legs and replacements in the params file.

    Text from logs and params files cannot break out of its cell, mention a user or become a link.

    Args:
        neutral: whether the run is `unconfirmed` and its policy makes that neutral.
    """
    parts = [
        f"## {_status(run.status)}{' (neutral: it does not block)' if neutral else ''}: {cell(run.chain)}",
        cell(run.reason),
        table(("", ""), _about(facts, run)),
    ]
    wrong = [(row.step, row.failure) for row in step_rows(facts) if row.failure is not None]
    if wrong:
        failures = [
            (step, failure.failure_class.value, failure.root_cause, failure.remedy.advice)
            for step, failure in wrong
        ]
        parts += ["### What went wrong", table(("step", "class", "root cause", "what to do"), failures)]
    verdicts = [(row.name, row.about, row.status, row.text) for row in verdict_rows(results)]
    if verdicts:
        parts += ["### Checks", table(("check", "about", "status", "reason"), verdicts)]
    steps = [
        (row.step, row.nodes, row.status, duration(row.seconds or None), row.reason) for row in step_rows(facts)
    ]
    parts += ["### Steps", table(("step", "nodes", "status", "duration", "reason"), steps)]
    parts += _legs(facts)
    if facts.plan.substitutions:
        changed = [
            (substitution.what, substitution.found, substitution.used, substitution.because)
            for substitution in facts.plan.substitutions
        ]
        parts += ["### Replaced in the params file", table(("what", "found", "used", "because"), changed)]
    if facts.plan.quirks:
        quirks = [(quirk.id, str(quirk.line or ""), quirk.bash, quirk.spec) for quirk in facts.plan.quirks]
        parts += [
            "### Differences from the suite's script",
            table(("quirk", "line", "script", "here"), quirks),
        ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _legs(facts: Facts) -> list[str]:
    """Return the section of the inference legs; of those that are blocked, only the number."""
    legs = leg_rows(facts)
    blocked = sum(row.status == Status.BLOCKED for row in legs)
    rows = [
        (str(LegKey(row.step, row.leg)), row.settings, row.status, milliseconds(row.latency_ms), row.reason)
        for row in legs
        if row.status != Status.BLOCKED
    ]
    parts = ["### Inference legs"] if legs else []
    parts += [table(("leg", "settings", "status", "ms per batch", "reason"), rows)] if rows else []
    parts += [f"Blocked legs: {blocked} of {len(legs)}; a step before them did not succeed."] if blocked else []
    return parts


def _about(facts: Facts, run: Run) -> list[tuple[str, str]]:
    plan = facts.plan
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
        ("duration", duration(run.duration_s)),
    ]
    return [row for row in rows if row[1]]


def _status(status: Status | None) -> str:
    return status.value if status else "no status yet"
