"""What `tipcflow trigger` prints and writes at its end."""

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
    """The worst status of several runs; one that was triggered and not waited for counts as good."""
    statuses = (run.status or Status.PASS for run in runs)
    return max(statuses, key=lambda status: status.severity, default=Status.PASS)


def code(runs: Sequence[Watched]) -> int:
    """The exit code: that of the worst status; a doubt that its policy calls neutral counts as good."""
    return exit_code(worst([run for run in runs if not run.neutral]))


def run_url(url: str, run: Watched) -> str:
    """Where Airflow shows a run, '' when there is none."""
    if run.dag_run is None:
        return ""
    return f"{url}/dags/{quote(run.dag_run.dag_id)}/runs/{quote(run.dag_run.run_id, safe='')}"


def page_url(url: str, run: Watched) -> str:
    """Its page with steps, legs and checks, '' when there is no run."""
    return f"{url}/certification/runs/{run.run}" if run.run else ""


def lines(url: str, runs: Sequence[Watched], *, width: int | None) -> list[str]:
    """Status, chain, run and reason of each; below it, what was not as it should be and where to look."""
    said: list[str] = []
    for run in runs:
        state = run.dag_run.state.value if run.dag_run else ""
        word = run.status.value if run.status else state
        said += columns(("", "", ""), [(word, run.wish.chain, _first_line(run.reason))], width=width)[1:]
        about = [("page", page_url(url, run)), ("airflow", run_url(url, run))]
        said += [f"    {label}: {text}" for label, text in about if text]
        said += _checks(run, width)
    return said


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
    said = columns(("", "", ""), rows[:_SHOWN_CHECKS], width=width)[1:] if rows else []
    more = len(rows) - _SHOWN_CHECKS
    return said + ([f"    and {more} more checks"] if more > 0 else [])


def as_json(url: str, runs: Sequence[Watched]) -> dict[str, Any]:
    """The same for programs."""
    return {"status": worst(runs).value, "runs": [_one(url, run) for run in runs]}


def _one(url: str, run: Watched) -> dict[str, Any]:
    facts = run.facts
    return {
        "chain": run.wish.chain,
        "dag_id": run.wish.dag_id,
        "dag_run_id": run.wish.run_id,
        "conf": dict(run.wish.conf),
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
    """A run as a JUnit report has it."""
    from tipcflow.report import ReportedRun
    from tipcflow.report.rows import LegRow, StepRow

    facts = run.facts
    # A judged run's step without a status was never begun.
    steps = [
        StepRow(one.id, one.kind, one.nodes, one.status or Status.BLOCKED, one.reason, one.seconds or 0.0)
        for one in (facts.steps if facts else ())
    ]
    legs = [
        LegRow(one.step, one.id, one.settings, one.status or Status.BLOCKED, one.reason, one.latency_ms)
        for one in (facts.legs if facts else ())
    ]
    checks = facts.checks if facts else ()
    # Names that stay from run to run, so that a CI system can compare; the run's id is in the reason.
    reason = "; ".join(part for part in (run.reason, run.run and f"run {run.run}") if part)
    return ReportedRun(run.wish.chain, run.wish.chain, run.status, reason, steps, legs, checks, run.neutral)


def markdown(url: str, runs: Sequence[Watched]) -> str:
    """The verdicts of all runs, for a pull request; what has none is one line."""
    said = []
    for run in runs:
        verdict = run.facts.verdict_markdown if run.facts and run.status == run.facts.run.status else None
        where = f"\n[Page]({page_url(url, run)}) · [Airflow]({run_url(url, run)})\n" if run.dag_run else ""
        said.append(verdict or f"**{run.status or 'triggered'}** `{run.wish.chain}`: {_first_line(run.reason)}\n")
        said.append(where)
    return "\n".join(said)
