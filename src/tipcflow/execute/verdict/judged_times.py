"""A run that is judged again is judged as of its first judgement (ADR 54).

Otherwise an operator, who may clear the task `judge`, could turn a red run green: later runs and later decisions,
such as an accepted change, would count for it. A step that was executed again is a new measurement.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tipcflow.check import CheckContext, judge
from tipcflow.domain import CheckResult, Facts, Run, StepKind, without_repeat
from tipcflow.domain.run.judged import JudgedDocument

if TYPE_CHECKING:
    from tipcflow.store import Store


@dataclass(frozen=True)
class JudgedTimes:
    """When measurements were judged first, seconds since the epoch; None: not yet.

    Attributes:
        run: of the run.
        steps: step id without its repeat -> the same, where it differs from that of the run.
    """

    run: float | None = None
    steps: Mapping[str, float | None] = field(default_factory=dict)

    def of(self, step: str) -> float | None:
        """Return the time of a step, or of the run for '' and for steps that were not executed again."""
        return self.steps.get(without_repeat(step), self.run)

    def document(self, now: float) -> JudgedDocument:
        """Return the document of a run whose other measurements are judged now."""
        steps = {step: now if at is None else at for step, at in self.steps.items()}
        return JudgedDocument(at=now if self.run is None else self.run, steps=steps)


def judged_times(store: "Store", run: Run) -> JudgedTimes:
    """Return when a run and its steps were judged first.

    A step whose last attempt began later was executed again, and is not judged yet; with several repeats, all of
    them. If that applies to all steps that measure, the run is not judged yet either. A run that an earlier
    version has judged was judged at its end.
    """
    judged = store.documents.get(run.id, JudgedDocument)
    ended_at = run.ended_at if run.status is not None else None
    if judged is None and ended_at is None:
        return JudgedTimes()
    times = [at for at in (judged.at if judged else None, ended_at) if at is not None]
    since, known, began = times[0], judged.steps if judged else {}, _began(store, run)
    steps: dict[str, float | None] = {
        step: None if at > known.get(step, since) else known[step]
        for step, at in began.items()
        if step in known or at > since
    }
    if began and all(step in steps and steps[step] is None for step in began):
        return JudgedTimes()
    return JudgedTimes(min(times), steps)


def _began(store: "Store", run: Run) -> dict[str, float]:
    """Return step id without its repeat -> start of the first repeat's last attempt, without preparations."""
    last = {attempt.step: attempt.started_at for attempt in store.attempts.of(run.id)}
    plan = store.plans.get_or_none(run.id)
    prepares = {step.id for step in plan.steps if step.kind is StepKind.PREPARE} if plan else set()
    began: dict[str, float] = {}
    for step, at in last.items():
        if step not in prepares:
            began[without_repeat(step)] = min(at, began.get(without_repeat(step), at))
    return began


def judge_as_of(
    facts: Facts, times: JudgedTimes, context_at: Callable[[float | None], CheckContext]
) -> tuple[CheckContext, tuple[CheckResult, ...]]:
    """Return the run's context, and the results of all checks: those of each step as of its own time.

    Args:
        context_at: returns the context with the runs and decisions of a time, None for now.
    """
    context = context_at(times.run)
    results = [result for result in judge(facts, context) if times.of(result.step) == times.run]
    for at in dict.fromkeys(times.steps.values()):
        if at != times.run:
            later = judge(facts, context_at(at))
            results += [result for result in later if result.step and times.of(result.step) == at]
    return context, tuple(results)
