"""Confirm runs: a suspected regression is re-measured before it counts.

The judge requests one; a separate run then executes only the suspected steps and their dependencies, with the
nodes in another order: work of the first node runs on the second one; with one node, at a later time. Until then
the confirmed run has no status. A confirm run never joins a baseline. If the policy wants
several (`confirm_runs`), each further one follows one that showed the change.

Speeds of a training on the full dataset are confirmed by a training on little data, whose batches take the same
time but which is not comparable in accuracy, loss and memory. Evaluations are confirmed by repeating them on their
node with the run's trained weights; other metrics by a run on the full dataset if time permits, or not at all.
"""

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from tipcflow.config.policy import Policy
from tipcflow.domain import CheckResult, LegKey, PartKey, Plan, Run, Status, StepKind, without_repeat
from tipcflow.domain.numbers.metrics import by_iteration
from tipcflow.domain.numbers.units import minutes
from tipcflow.domain.run_documents import ConfirmationDocument
from tipcflow.domain.triggers import CONFIRM
from tipcflow.execute.progress import Event, Kind, Listener
from tipcflow.execute.request import RunRequest

if TYPE_CHECKING:
    from tipcflow.store import Store

# Trigger of runs that confirm another run.
TRIGGER = CONFIRM
NONE = "the policy disables confirm runs (confirm_minutes: 0)"
# Mode that confirms speeds of a full-data training: batches take the same time, and there are few of them.
BENCHMARK_MODE = "lite_train_lite_infer"
# No further confirm run follows one that has not ended, or has not measured.
_ENDS = frozenset({None, Status.FAILED, Status.INFRA_FAILURE, Status.CANCELLED, Status.CONFIG_ERROR})


def suspected(results: Iterable[CheckResult]) -> tuple[PartKey, ...]:
    """Return the steps and legs that the check results want re-measured.

    A quarantined metric is measured like any other: clean runs end its quarantine, and an unconfirmed change is
    not clean.
    """
    keys = {
        LegKey(result.step, result.leg).part
        for result in results
        if result.measured.needs_confirm
        and result.step
        and (result.gating or result.measured.quarantine is not None)
    }
    return tuple(sorted(keys))


def confirm_request_of(store: "Store", run: str) -> ConfirmationDocument | None:
    """Return the confirmation request of a run; None without one."""
    return store.documents.get(run, ConfirmationDocument)


def request_confirmation(
    store: "Store",
    run: Run,
    policy: Policy,
    confirm_run: str,
    *,
    dag_run_id: str = "",
    run_after: str = "",
) -> ConfirmationDocument | None:
    """Request a confirm run if the check results need one; None if there is nothing to confirm.

    A further one is requested only if the last one ended and the checks want the change to be shown again. The
    confirm run has the policy's `confirm_minutes` from now on, whatever the run itself took: a slow model cannot
    use up the time needed to confirm its regression. With `confirm_minutes` 0 nothing is requested, and the
    checks report that when the run is judged again.

    Args:
        confirm_run: id for the confirm run.
        dag_run_id, run_after: id and time of its DAG run, stored for repeated calls.
    """
    if run.trigger == TRIGGER:
        return None
    if before := confirm_request_of(store, run.id):
        further = _further(store, run, before, policy, confirm_run)
        if further is not None:
            further = further.model_copy(update={"dag_run_id": dag_run_id, "run_after": run_after})
            store.documents.put(run.id, further)
        return further
    results, now = store.checks.results(run.id), store.now()
    until, mode = now + policy.confirm_minutes * 60, run.mode
    alone: tuple[PartKey, ...] = ()
    if _whole(mode):
        speeds = [result for result in results if by_iteration(result.metric)]
        others = suspected(result for result in results if not by_iteration(result.metric))
        fits = bool(others) and _took_s(store, run.id) <= until - now
        alone = evaluations_alone(others, suspected(speeds), evaluable(store, run, policy), fits=fits)
        if not alone and not fits:
            mode, results = BENCHMARK_MODE, speeds
    keys = alone or suspected(results)
    if not keys:
        return None
    confirmation = ConfirmationDocument(run=confirm_run, keys=keys, until=until, mode=mode, alone=bool(alone))
    if not policy.confirm_minutes:
        store.documents.put(run.id, confirmation.model_copy(update={"until": 0.0, "refused": NONE}))
        return None
    confirmation = confirmation.model_copy(update={"dag_run_id": dag_run_id, "run_after": run_after})
    store.documents.put(run.id, confirmation)
    return confirmation


def _further(
    store: "Store", run: Run, before: ConfirmationDocument, policy: Policy, confirm_run: str
) -> ConfirmationDocument | None:
    """Return the request for one more confirm run like the last one; None if none is needed or may follow."""
    stored = store.runs.known([before.run]).get(before.run)
    if before.refused or stored is None or stored.status in _ENDS:
        return None
    if len(before.earlier) + 1 >= policy.confirm_runs:
        return None
    keys = suspected(result for result in store.checks.results(run.id) if result.measured.needs_another)
    until = store.now() + policy.confirm_minutes * 60
    update = {"run": confirm_run, "keys": keys, "until": until, "earlier": (*before.earlier, before.run)}
    return before.model_copy(update=update) if keys else None


def may_be_followed(store: "Store", request: RunRequest, run: str, policy: Policy) -> bool:
    """Whether a further confirm run may follow this run, which is about to release its slots.

    Whether one is needed is decided after its end; until then its slots are kept free for the further one.
    """
    confirmation = confirm_request_of(store, request.confirms) if request.confirms else None
    if confirmation is None or confirmation.run != run or confirmation.refused:
        return False
    ended = {status for status, _ in store.steps.statuses(run).values()}
    return len(confirmation.earlier) + 1 < policy.confirm_runs and not ended & _ENDS


def evaluations_alone(
    others: Iterable[PartKey], speeds: Iterable[PartKey], known: frozenset[str], *, fits: bool
) -> tuple[PartKey, ...]:
    """Return the evaluations that are repeated without a training; () if another way is chosen.

    The two ways are not combined: other suspected metrics need a training. If time permits, a full run re-measures
        everything. Otherwise a run on little data re-measures the speeds, and evaluations are judged without
        confirmation.

    Args:
        others, speeds: suspected parts for metrics other than iteration speeds, and for iteration speeds.
        known: ids of evaluations that can be repeated alone.
        fits: whether a full run fits into the time limit.
    """
    repeatable = {LegKey(step).part for step in known}
    doubts, also = set(others), set(speeds) - repeatable
    if (doubts <= repeatable and not also) or (not fits and not also):
        return tuple(sorted(doubts & repeatable))
    return ()


def evaluable(store: "Store", run: Run, policy: Policy) -> frozenset[str]:
    """Return the evaluations of a full-data run that are confirmed without a training; step ids without
    repeats."""
    if not _whole(run.mode):
        return frozenset()
    if confirmation := confirm_request_of(store, run.id):
        return frozenset(
            map(str, confirmation.keys)
            if confirmation.alone and not confirmation.refused and not _lost(store, run.id, confirmation)
            else ()
        )
    plan = store.plans.get_or_none(run.id)
    steps = [step.id for step in plan.steps if step.kind is StepKind.EVAL] if plan else []
    if policy.confirm_minutes * 60 < _took_s(store, run.id, steps):
        return frozenset()
    return frozenset(without_repeat(step) for step in steps)


def _lost(store: "Store", run: str, confirmation: ConfirmationDocument) -> str:
    """Return why an evaluation could not be repeated, for example without the weights; '' if it could or still
    may."""
    stored = store.runs.known([confirmation.run]).get(confirmation.run)
    if stored is None or stored.status is not Status.INFRA_FAILURE:
        return ""
    return f"confirm run {confirmation.run} is {stored.status.value}: {stored.reason}"


def unconfirmable(store: "Store", run: Run, policy: Policy) -> str:
    """Return why no confirm run can measure accuracy, loss and memory of the run; '' if one can."""
    if not _whole(run.mode):
        return ""
    confirmation, took_s = confirm_request_of(store, run.id), _took_s(store, run.id)
    if confirmation and confirmation.alone and (lost := _lost(store, run.id, confirmation)):
        return lost
    if confirmation and confirmation.mode != run.mode:
        return f"not measurable in {confirmation.mode}"
    if took_s > policy.confirm_minutes * 60:
        return f"a full run takes {minutes(took_s)} min, confirm_minutes is {policy.confirm_minutes:g}"
    return ""


def _whole(mode: str) -> bool:
    return mode.startswith("whole_train")


def _took_s(store: "Store", run: str, steps: Collection[str] = ()) -> float:
    """Return the duration of the last attempts of these steps (default: all steps) together, seconds."""
    last = {attempt.step: attempt for attempt in store.attempts.of(run) if not steps or attempt.step in steps}
    return sum(attempt.duration_s or 0.0 for attempt in last.values())


def cancel_request(store: "Store", run: str, why: str) -> None:
    """Cancel the requested confirm run: it is unavailable and no longer awaited."""
    store.documents.change(run, ConfirmationDocument, until=0.0, refused=why)
    confirmation = confirm_request_of(store, run)
    if confirmation and confirmation.run in store.runs.known([confirmation.run]):
        store.queue.leave(confirmation.run)
        store.runs.finish(confirmation.run, Status.INFRA_FAILURE, f"never started: {why}", time.time())


def drop_request(store: "Store", run: str) -> None:
    """Drop the confirmation request, because a part of the run is repeated."""
    store.documents.remove(run, ConfirmationDocument)


def is_awaited(store: "Store", run: str, now: float | None = None) -> bool:
    """Whether a confirm run is still awaited."""
    confirmation = confirm_request_of(store, run)
    if confirmation is None or (store.now() if now is None else now) >= confirmation.until:
        return False
    stored = store.runs.known([confirmation.run]).get(confirmation.run)
    return stored is None or stored.status is None


def request_for(request: RunRequest, run: Run, confirmation: ConfirmationDocument, now: float) -> RunRequest:
    """Return the request for the confirm run: the same chain at the same commit, if there is one.

    Args:
        now: the time by the database's clock.
    """
    return replace(
        request,
        mode=confirmation.mode or request.mode,
        # Without a ref the suite's working tree is tested as it is, committed or not.
        suite_ref=request.suite_ref and (run.suite_commit or request.suite_ref),
        # Each repeat has its own trained weights.
        repeats=request.repeats if confirmation.alone else 1,
        trigger=TRIGGER,
        wait_s=max(1.0, confirmation.until - now),
        ends_at=confirmation.until,
        confirms=run.id,
        only=confirmation.keys,
        evaluates=confirmation.alone,
    )


def note_listener(note: Callable[[str], None]) -> Listener:
    """Return a listener that reports events of a confirm run as notes of the confirmed run."""

    def take(event: Event) -> None:
        """Note an event."""
        if event.kind is Kind.STEP_STARTED:
            note(f"confirming: {event.step} {event.text}".rstrip())
        elif event.kind is Kind.STEP_ENDED and event.status:
            note(f"confirming: {event.step} {event.status.value} {event.text}".rstrip())
        elif event.kind is Kind.CHECKS and event.status:
            note(f"confirming: {event.status.value}")

    return take


def cut(plan: Plan, keys: Iterable[PartKey]) -> Plan:
    """Return a plan with only the suspected steps and legs, and their dependencies."""
    ids = {step.id for step in plan.steps}
    wanted = {key.within(ids) for key in keys}
    legs = {
        step.id: tuple(leg for leg in step.legs if {LegKey(step.id), LegKey(step.id, leg.id)} & wanted)
        for step in plan.steps
    }
    needed = {step.id for step in plan.steps if LegKey(step.id) in wanted or legs[step.id]}
    for step in reversed(plan.steps):  # each step comes after its dependencies in the plan
        if step.id in needed:
            needed.update(step.after)
    steps = [step.model_copy(update={"legs": legs[step.id]}) for step in plan.steps if step.id in needed]
    return plan.model_copy(update={"steps": tuple(steps)})


def with_only(plan: Plan, keys: Collection[PartKey]) -> Plan:
    """Return a plan with only these steps and legs, and their dependencies; all steps if it has none of them."""
    part = cut(plan, keys) if keys else plan
    return part if part.steps else plan


def cut_alone(plan: Plan, keys: Iterable[PartKey]) -> Plan:
    """Return a plan with only these evaluations, in all repeats: their dependencies exist already."""
    wanted = set(keys)
    steps = [
        step.model_copy(update={"after": ()})
        for step in plan.steps
        if LegKey(without_repeat(step.id)).part in wanted
    ]
    return plan.model_copy(update={"steps": tuple(steps)})
