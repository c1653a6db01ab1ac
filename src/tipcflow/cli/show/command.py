"""`tipcflow show RUN`: one run on one page, failures first."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from tipcflow.cli.output.output import echo_lines, print_json, terminal_width
from tipcflow.domain import Attempt, CheckResult, Frozen, NodeFacts, Plan, Run, Status
from tipcflow.domain.run.failure import FAILURES, failure_before, failures_of

Said = dict[str, tuple[Status, str]]


class Story(Frozen):
    """The page's data; `legs` and `leg_times` (seconds) are keyed by step id + '/' + leg id,
    `failures` is the run's failures document."""

    run: Run
    plan: Plan | None
    attempts: tuple[Attempt, ...] = ()
    steps: Said = {}
    legs: Said = {}
    leg_times: dict[str, float] = {}
    checks: tuple[CheckResult, ...] = ()
    nodes: tuple[NodeFacts, ...] = ()
    failures: dict[str, Any] = {}
    unlike_before: str = ""
    logs: Path

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """'steps', 'legs', 'checks' -> status -> count, worst status first."""
        words = {
            "steps": [status for status, _ in self.steps.values()],
            "legs": [status for status, _ in self.legs.values()],
            "checks": [result.status for result in self.checks],
        }
        return {
            name: {
                word.value: number for word, number in sorted(Counter(said).items(), key=lambda i: -i[0].severity)
            }
            for name, said in words.items()
        }


def show(
    run: Annotated[str, typer.Argument(help="Run ID or a prefix of it, or latest.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show a run: status and reason, steps, legs, checks, nodes, logs, and how to reproduce it."""
    from tipcflow.cli.show.page import page

    story = _story(run)
    if as_json:
        print_json(_as_json(story))
    else:
        echo_lines(page(story, width=terminal_width()))


def _story(wanted: str) -> Story:
    from tipcflow.config.settings import settings
    from tipcflow.store import Store

    with Store.open() as store:
        run = store.find_run(wanted)
        return Story(
            run=run,
            plan=store.plan_or_none(run.id),
            attempts=tuple(store.attempts(run.id)),
            steps=store.step_statuses(run.id),
            legs=store.leg_statuses(run.id),
            leg_times={f"{one.step}/{one.leg}": one.duration_s for one in store.leg_records(run.id)},
            checks=tuple(store.check_results(run.id)),
            nodes=tuple(store.node_facts(run.id)),
            failures=store.document(run.id, FAILURES) or {},
            unlike_before=store.unlike_before(run),
            logs=settings().runs_dir / run.id,
        )


def _as_json(story: Story) -> dict[str, Any]:
    def said(statuses: Said) -> dict[str, dict[str, str]]:
        return {key: {"status": status.value, "reason": reason} for key, (status, reason) in statuses.items()}

    return {
        "run": story.run.model_dump(),
        "counts": story.counts,
        "steps": said(story.steps),
        "legs": said(story.legs),
        "checks": [result.model_dump() for result in story.checks],
        "attempts": [attempt.model_dump() for attempt in story.attempts],
        "failures": _failures(story),
        "nodes": [facts.model_dump() for facts in story.nodes],
        "plan": story.plan.model_dump() if story.plan else None,
        "unlike_before": story.unlike_before,
        "logs": str(story.logs),
    }


def _failures(story: Story) -> list[dict[str, Any]]:
    """All failed attempts, each with its remedy. Attempt 0 is the phase before the first step."""
    before = failure_before(story.failures)
    found = {("", 0): before} if before is not None else {}
    return [
        {
            "step": step,
            "attempt": attempt,
            **failure.model_dump(mode="json"),
            "means": failure.remedy.means,
            "advice": failure.remedy.advice,
            "retry_helps": failure.remedy.retries > 0,
        }
        for (step, attempt), failure in (found | failures_of(story.failures, story.attempts)).items()
    ]
