"""Confirmation runs: a suspected regression is re-measured before it counts.

The judge requests one; a separate run then executes only the suspected steps and their dependencies, with the
nodes in another order: work of the first node runs on the second one; with one node, at a later time. Until then
the confirmed run has no status. A confirmation run never joins a baseline.

Speeds of a training on the full data set are confirmed by a training on little data, whose batches take the same
time but which is not comparable in accuracy, loss and memory. Evaluations are confirmed by repeating them on their
node with the run's trained weights; other metrics by a run on the full data set if time permits, or not at all.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tipcflow.config.policy import Policy
from tipcflow.domain import CheckResult, Plan, Run, Status, StepKind, without_repeat
from tipcflow.domain.numbers.metrics import by_iteration
from tipcflow.execute.progress import Event, Kind, Listener
from tipcflow.execute.request import RunRequest

if TYPE_CHECKING:
    from tipcflow.store import Store

# Trigger of runs that confirm another run.
TRIGGER = "confirm"
DOCUMENT = "confirmation"
NONE = "the policy disables confirmation runs (confirm_minutes: 0)"
# Mode that confirms speeds of a full-data training: batches take the same time, and there are few of them.
BENCHMARK_MODE = "lite_train_lite_infer"


@dataclass(frozen=True)
class Asked:
    """A confirmation request of a run's judge.

    Attributes:
        run: id of the confirmation run.
        keys: suspected parts: step id, or step id + '/' + leg id.
        until: deadline of the confirmation, by the database's clock.
        refused: why the confirmation was cancelled, '' if it was not.
        dag_run_id: id of its run of the DAG `confirm` in Airflow; '' for a run of the CLI.
        mode: mode of the confirmation run.
        alone: whether `keys` are evaluations that are repeated without a training.
    """

    run: str
    keys: tuple[str, ...]
    until: float
    refused: str = ""
    dag_run_id: str = ""
    mode: str = ""
    alone: bool = False


def doubted(results: Iterable[CheckResult]) -> tuple[str, ...]:
    """Return what the check results want re-measured: step id, or step id + '/' + leg id."""
    found = {
        f"{one.step}/{one.leg}" if one.leg else one.step
        for one in results
        if one.values.get("confirm") and one.gating and one.step
    }
    return tuple(sorted(found))


def asked_of(store: "Store", run: str) -> Asked | None:
    """Return the confirmation request of a run; None without one."""
    kept = store.document(run, DOCUMENT)
    if not kept:
        return None
    return Asked(
        run=str(kept["run"]),
        keys=tuple(kept["keys"]),
        until=float(kept["until"]),
        refused=str(kept.get("refused", "")),
        dag_run_id=str(kept.get("dag_run_id", "")),
        mode=str(kept.get("mode", "")),
        alone=bool(kept.get("alone", False)),
    )


def ask(
    store: "Store",
    run: Run,
    policy: Policy,
    confirm_run: str,
    *,
    kept: Mapping[str, str] | None = None,
) -> Asked | None:
    """Request a confirmation run if the check results need one, once per run; None if there is nothing to confirm.

    The confirmation run has the policy's `confirm_minutes` from now on, whatever the run itself took: a slow model
    cannot use up the time needed to confirm its regression. With `confirm_minutes` 0 nothing is requested, and the
    checks report that when the run is judged again.

    Args:
        confirm_run: id for the confirmation run.
        kept: data for the process that starts it, stored for repeated calls.
    """
    if run.trigger == TRIGGER or asked_of(store, run.id):
        return None
    results, now = store.check_results(run.id), store.now()
    until, mode = now + policy.confirm_minutes * 60, run.mode
    alone: tuple[str, ...] = ()
    if _whole(mode):
        speeds = [one for one in results if by_iteration(one.metric)]
        others = doubted(one for one in results if not by_iteration(one.metric))
        fits = bool(others) and _took_s(store, run.id) <= until - now
        alone = evaluations_alone(others, doubted(speeds), evaluable(store, run, policy), fits=fits)
        if not alone and not fits:
            mode, results = BENCHMARK_MODE, speeds
    keys = alone or doubted(results)
    if not keys:
        return None
    entry = {"run": confirm_run, "keys": list(keys), "until": until, "mode": mode, "alone": bool(alone)}
    if not policy.confirm_minutes:
        store.put_document(run.id, DOCUMENT, {**entry, "until": 0.0, "refused": NONE})
        return None
    store.put_document(run.id, DOCUMENT, {**(kept or {}), **entry})
    return asked_of(store, run.id)


def evaluations_alone(
    others: Iterable[str], speeds: Iterable[str], known: frozenset[str], *, fits: bool
) -> tuple[str, ...]:
    """Return the evaluations that are repeated without a training; () if another way is chosen.

    The two ways are not combined: other suspected metrics need a training. If time permits, a full run re-measures
        everything. Otherwise a run on little data re-measures the speeds, and evaluations are judged without
        confirmation.

    Args:
        others, speeds: suspected parts for metrics other than iteration speeds, and for iteration speeds.
        known: evaluations that can be repeated alone.
        fits: whether a full run fits into the time limit.
    """
    doubts, also = set(others), set(speeds) - known
    if (doubts <= known and not also) or (not fits and not also):
        return tuple(sorted(doubts & known))
    return ()


def evaluable(store: "Store", run: Run, policy: Policy) -> frozenset[str]:
    """Return the evaluations of a full-data run that are confirmed without a training; step ids without
    repeats."""
    if not _whole(run.mode):
        return frozenset()
    if asked := asked_of(store, run.id):
        return frozenset(
            asked.keys if asked.alone and not asked.refused and not _lost(store, run.id, asked) else ()
        )
    plan = store.plan_or_none(run.id)
    steps = [step.id for step in plan.steps if step.kind is StepKind.EVAL] if plan else []
    if policy.confirm_minutes * 60 < _took_s(store, run.id, steps):
        return frozenset()
    return frozenset(without_repeat(step) for step in steps)


def _lost(store: "Store", run: str, asked: Asked) -> str:
    """Return why an evaluation could not be repeated, for example without the weights; '' if it could or still
    may."""
    known = store.known_runs([asked.run]).get(asked.run)
    if known is None or known.status is not Status.INFRA_FAILURE:
        return ""
    return f"confirm run {asked.run} is {known.status.value}: {known.reason}"


def unconfirmable(store: "Store", run: Run, policy: Policy) -> str:
    """Return why no confirmation run can measure accuracy, loss and memory of the run; '' if one can."""
    if not _whole(run.mode):
        return ""
    asked, took_s = asked_of(store, run.id), _took_s(store, run.id)
    if asked and asked.alone and (lost := _lost(store, run.id, asked)):
        return lost
    if asked and asked.mode != run.mode:
        return f"not measurable in {asked.mode}"
    if took_s > policy.confirm_minutes * 60:
        return f"a full run takes {took_s / 60:.0f} min, confirm_minutes is {policy.confirm_minutes:g}"
    return ""


def _whole(mode: str) -> bool:
    return mode.startswith("whole_train")


def _took_s(store: "Store", run: str, steps: Collection[str] = ()) -> float:
    """Return the duration of the last attempts of these steps (default: all steps) together, seconds."""
    last = {one.step: one for one in store.attempts(run) if not steps or one.step in steps}
    return sum(one.ended_at - one.started_at for one in last.values() if one.ended_at)


def refuse(store: "Store", run: str, why: str) -> None:
    """Cancel the requested confirmation run: it is unavailable and no longer awaited."""
    store.merge_document(run, DOCUMENT, {"until": 0.0, "refused": why})
    asked = asked_of(store, run)
    if asked and asked.run in store.known_runs([asked.run]):
        store.leave_queue(asked.run)
        store.finish_run(asked.run, Status.INFRA_FAILURE, f"never started: {why}", time.time())


def forget(store: "Store", run: str) -> None:
    """Drop the confirmation request, because a part of the run is repeated."""
    if asked_of(store, run):
        store.put_document(run, DOCUMENT, None)


def open_question(store: "Store", run: str, now: float | None = None) -> bool:
    """Whether a confirmation run is still awaited."""
    asked = asked_of(store, run)
    if asked is None or (store.now() if now is None else now) >= asked.until:
        return False
    known = store.known_runs([asked.run]).get(asked.run)
    return known is None or known.status is None


def request_for(request: RunRequest, run: Run, asked: Asked, now: float) -> RunRequest:
    """Return the request for the confirmation run: the same chain at the same commit, if there is one.

    Args:
        now: the time by the database's clock.
    """
    return replace(
        request,
        mode=asked.mode or request.mode,
        # Without a ref the suite's working tree is tested as it is, committed or not.
        suite_ref=request.suite_ref and (run.suite_commit or request.suite_ref),
        # Each repeat has its own trained weights.
        repeats=request.repeats if asked.alone else 1,
        trigger=TRIGGER,
        wait_s=max(1.0, asked.until - now),
        ends_at=asked.until,
        confirms=run.id,
        only=asked.keys,
        evaluates=asked.alone,
    )


def in_words(note: Callable[[str], None]) -> Listener:
    """Return a listener that reports events of a confirmation run as notes of the confirmed run."""

    def take(event: Event) -> None:
        if event.kind is Kind.STEP_STARTED:
            note(f"confirming: {event.step} {event.text}".rstrip())
        elif event.kind is Kind.STEP_ENDED and event.status:
            note(f"confirming: {event.step} {event.status.value} {event.text}".rstrip())
        elif event.kind is Kind.CHECKS and event.status:
            note(f"confirming: {event.status.value}")

    return take


def cut(plan: Plan, keys: Iterable[str]) -> Plan:
    """Return a plan with only the suspected steps and legs, and their dependencies."""
    wanted = set(keys)
    legs = {
        step.id: tuple(leg for leg in step.legs if f"{step.id}/{leg.id}" in wanted or step.id in wanted)
        for step in plan.steps
    }
    kept = {step.id for step in plan.steps if step.id in wanted or legs[step.id]}
    for step in reversed(plan.steps):  # each step comes after its dependencies in the plan
        if step.id in kept:
            kept.update(step.after)
    steps = [step.model_copy(update={"legs": legs[step.id]}) for step in plan.steps if step.id in kept]
    return plan.model_copy(update={"steps": tuple(steps)})


def cut_alone(plan: Plan, keys: Iterable[str]) -> Plan:
    """Return a plan with only these evaluations, in all repeats: their dependencies exist already."""
    wanted = set(keys)
    steps = [step.model_copy(update={"after": ()}) for step in plan.steps if without_repeat(step.id) in wanted]
    return plan.model_copy(update={"steps": tuple(steps)})
