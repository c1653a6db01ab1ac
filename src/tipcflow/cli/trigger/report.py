"""Results of `tipcflow trigger`: text, JSON, JUnit XML and Markdown."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tipcflow.cli.output.output import columns
from tipcflow.cli.trigger.wait import Watched
from tipcflow.domain import Status, exit_code

if TYPE_CHECKING:
    from tipcflow.report import ReportedRun

_SHOWN_CHECKS = 8


def worst(runs: Sequence[Watched]) -> Status:
    """The worst status of several runs; a run that was only triggered counts as passed."""
    statuses = (run.status or Status.PASS for run in runs)
    return max(statuses, key=lambda status: status.severity, default=Status.PASS)


def code(runs: Sequence[Watched]) -> int:
    """The exit code of the worst status; `unconfirmed` counts as passed if the policy makes it neutral."""
    return exit_code(worst([run for run in runs if not run.neutral]))


def run_url(url: str, run: Watched) -> str:
    """The address of the DAG run in Airflow's UI, '' if there is none."""
    if run.dag_run is None:
        return ""
    return f"{url}/dags/{quote(run.dag_run.dag_id)}/runs/{quote(run.dag_run.run_id, safe='')}"


def page_url(url: str, run: Watched) -> str:
    """The address of the run's Certification page, '' if there is no run."""
    return f"{url}/certification/runs/{run.run}" if run.run else ""


def lines(url: str, runs: Sequence[Watched], *, width: int | None) -> list[str]:
    """Status, chain, run and reason of each run, followed by its failed checks and links."""
    output: list[str] = []
    for run in runs:
        state = run.dag_run.state.value if run.dag_run else ""
        word = run.status.value if run.status else state
        output += columns(("", "", ""), [(word, run.request.chain, _first_line(run.reason))], width=width)[1:]
        about = [("page", page_url(url, run)), ("airflow", run_url(url, run))]
        output += [f"    {label}: {text}" for label, text in about if text]
        output += _checks(run, width)
    return output


def _first_line(text: str) -> str:
    return text.splitlines()[0] if text else ""


def _checks(run: Watched, width: int | None) -> list[str]:
    if run.facts is None:
        return []
    from tipcflow.report import verdict_rows

    bad = [
        row
        for row in verdict_rows(run.facts.checks)
        if row.gating and row.status.severity > Status.BLOCKED.severity
    ]
    rows = [
        (f"    {row.status.value}", row.check, f"{row.about}: {row.reason}" if row.about else row.reason)
        for row in bad
    ]
    output = columns(("", "", ""), rows[:_SHOWN_CHECKS], width=width)[1:] if rows else []
    more = len(rows) - _SHOWN_CHECKS
    return output + ([f"    and {more} more checks"] if more > 0 else [])


def as_json(url: str, runs: Sequence[Watched]) -> dict[str, Any]:
    """The results as JSON."""
    return {"status": worst(runs).value, "runs": [_run_of(url, run) for run in runs]}


def _run_of(url: str, run: Watched) -> dict[str, Any]:
    facts = run.facts
    return {
        "chain": run.request.chain,
        "dag_id": run.request.dag_id,
        "dag_run_id": run.request.run_id,
        "conf": dict(run.request.conf),
        "state": run.dag_run.state.value if run.dag_run else None,
        "run": run.run or None,
        "page": page_url(url, run) or None,
        "url": run_url(url, run) or None,
        "status": run.status.value if run.status else None,
        "neutral": run.neutral,
        "reason": run.reason,
        "checks": [result.model_dump(mode="json") for result in facts.checks] if facts else [],
        "certificate": facts.certificate if facts else None,
    }


def reported(run: Watched) -> "ReportedRun":
    """A run as an entry of the JUnit report."""
    from tipcflow.report import ReportedRun
    from tipcflow.report.rows import LegRow, StepRow

    facts = run.facts
    # In a finished run, a step without a status was never started.
    steps = [
        StepRow(
            step.id,
            step.kind,
            ", ".join(step.nodes),
            step.final or Status.BLOCKED,
            step.reason,
            step.seconds or 0.0,
        )
        for step in (facts.steps if facts else ())
    ]
    legs = [
        LegRow(leg.step, leg.id, leg.settings, leg.final or Status.BLOCKED, leg.reason, leg.latency_ms)
        for leg in (facts.legs if facts else ())
    ]
    checks = facts.checks if facts else ()
    # Names must be the same in every run, so that CI systems can compare them; the run ID is in the reason.
    reason = "; ".join(part for part in (run.reason, run.run and f"run {run.run}") if part)
    return ReportedRun(run.request.chain, run.request.chain, run.status, reason, steps, legs, checks, run.neutral)


def markdown(url: str, runs: Sequence[Watched]) -> str:
    """The verdicts of all runs for a pull request; a run without a verdict is one line."""
    sections = []
    for run in runs:
        verdict = run.facts.verdict_markdown if run.facts and run.status == run.facts.run.status else None
        where = f"\n[Page]({page_url(url, run)}) · [Airflow]({run_url(url, run)})\n" if run.dag_run else ""
        sections.append(
            verdict or f"**{run.status or 'triggered'}** `{run.request.chain}`: {_first_line(run.reason)}\n"
        )
        sections.append(where)
    return "\n".join(sections)
