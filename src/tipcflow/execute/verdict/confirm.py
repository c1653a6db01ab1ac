"""Confirm runs: what looks like a regression is measured once more before it is one.

The judge asks for it; a run of its own does only the steps in doubt, and what they need, on the nodes in another
order: what was measured on the first node is measured on the second, and with one node at a later time. Meanwhile
the run that is confirmed has no status. A confirm run never joins a baseline.

Of a training on all data the speeds are confirmed by one on a little data, whose batches take as long. That says
nothing about accuracy, loss and memory. What an evaluation says is confirmed by evaluating once more, on its node,
what the run has trained; the rest by a run on all data, when there is time for one, or judged alone.
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

# A run with this trigger confirms another one.
TRIGGER = "confirm"
DOCUMENT = "confirmation"
NONE = "the policy asks for none (confirm_minutes: 0)"
# What the speeds of a whole-data training are confirmed in: batches take as long there, and there are few of them.
BENCHMARK_MODE = "lite_train_lite_infer"


@dataclass(frozen=True)
class Asked:
    """What a run's judge asked for.

    Attributes:
        run: the confirm run's id.
        keys: what is in doubt: step id, or step id + '/' + leg id.
        until: when it is no longer waited for, by the database's clock.
        refused: why nobody waits for it, '' when somebody does or did.
        dag_run_id: Airflow's id of it, a run of the DAG `confirm`; '' at the desk.
        mode: what it is done in.
        alone: whether `keys` are evaluations, done without a training.
    """

    run: str
    keys: tuple[str, ...]
    until: float
    refused: str = ""
    dag_run_id: str = ""
    mode: str = ""
    alone: bool = False


def doubted(results: Iterable[CheckResult]) -> tuple[str, ...]:
    """What the answers ask to be measured again: step id, or step id + '/' + leg id."""
    found = {
        f"{one.step}/{one.leg}" if one.leg else one.step
        for one in results
        if one.values.get("confirm") and one.gating and one.step
    }
    return tuple(sorted(found))


def asked_of(store: "Store", run: str) -> Asked | None:
    """What was asked for a run; None when nothing was."""
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
    """Ask for a confirm run when the run's answers want one, once per run; None when there is nothing to ask.

    The confirm run has the policy's `confirm_minutes` from now on, whatever the run itself took: a slow model
    cannot use up the time that would convict it. With `confirm_minutes` 0 nothing is asked for, and the checks say
    so when the run is judged again.

    Args:
        confirm_run: the id that it gets.
        kept: what whoever starts it has to know when it is asked again.
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
    wish = {"run": confirm_run, "keys": list(keys), "until": until, "mode": mode, "alone": bool(alone)}
    if not policy.confirm_minutes:
        store.put_document(run.id, DOCUMENT, {**wish, "until": 0.0, "refused": NONE})
        return None
    store.put_document(run.id, DOCUMENT, {**(kept or {}), **wish})
    return asked_of(store, run.id)


def evaluations_alone(
    others: Iterable[str], speeds: Iterable[str], known: frozenset[str], *, fits: bool
) -> tuple[str, ...]:
    """The evaluations that are done again alone; () when something else is done.

    Not both at once: what else is in doubt needs a training. When there is time for the whole run, that tells of
    everything. When there is not, a run on a little data tells of the speeds, and evaluations are judged alone.

    Args:
        others, speeds: what is in doubt for other numbers than speeds of iterations, and for these.
        known: the evaluations that can be done alone.
        fits: whether there is time to do all of the run again.
    """
    doubts, also = set(others), set(speeds) - known
    if (doubts <= known and not also) or (not fits and not also):
        return tuple(sorted(doubts & known))
    return ()


def evaluable(store: "Store", run: Run, policy: Policy) -> frozenset[str]:
    """The evaluations, of a run on all data, that are confirmed without a training; step ids without repeats."""
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
    """Why an evaluation could not be done again, as when what was trained is gone; '' when it was or may be."""
    known = store.known_runs([asked.run]).get(asked.run)
    if known is None or known.status is not Status.INFRA_FAILURE:
        return ""
    return f"confirm run {asked.run} is {known.status.value}: {known.reason}"


def unconfirmable(store: "Store", run: Run, policy: Policy) -> str:
    """Why no confirm run can tell of the run's accuracy, loss and memory; '' when one can."""
    if not _whole(run.mode):
        return ""
    asked, took_s = asked_of(store, run.id), _took_s(store, run.id)
    if asked and asked.alone and (lost := _lost(store, run.id, asked)):
        return lost
    if asked and asked.mode != run.mode:
        return f"{asked.mode} says nothing about it"
    if took_s > policy.confirm_minutes * 60:
        return f"all of it again would take {took_s / 60:.0f} min and there are {policy.confirm_minutes:g}"
    return ""


def _whole(mode: str) -> bool:
    return mode.startswith("whole_train")


def _took_s(store: "Store", run: str, steps: Collection[str] = ()) -> float:
    """How long the last attempts of these steps (of all, without any) took together, seconds."""
    last = {one.step: one for one in store.attempts(run) if not steps or one.step in steps}
    return sum(one.ended_at - one.started_at for one in last.values() if one.ended_at)


def refuse(store: "Store", run: str, why: str) -> None:
    """The confirm run that was asked for cannot be had, and is waited for no more."""
    store.merge_document(run, DOCUMENT, {"until": 0.0, "refused": why})
    asked = asked_of(store, run)
    if asked and asked.run in store.known_runs([asked.run]):
        store.leave_queue(asked.run)
        store.finish_run(asked.run, Status.INFRA_FAILURE, f"never begun: {why}", time.time())


def forget(store: "Store", run: str) -> None:
    """Something of the run is done again: what was asked for before counts no more."""
    if asked_of(store, run):
        store.put_document(run, DOCUMENT, None)


def open_question(store: "Store", run: str, now: float | None = None) -> bool:
    """Whether a confirm run is still waited for."""
    asked = asked_of(store, run)
    if asked is None or (store.now() if now is None else now) >= asked.until:
        return False
    known = store.known_runs([asked.run]).get(asked.run)
    return known is None or known.status is None


def request_for(request: RunRequest, run: Run, asked: Asked, now: float) -> RunRequest:
    """The request of the confirm run: the same chain, of the same commit where there is one.

    Args:
        now: the time by the database's clock.
    """
    return replace(
        request,
        mode=asked.mode or request.mode,
        # Without a ref the suite's folder is tested as it is, committed or not.
        suite_ref=request.suite_ref and (run.suite_commit or request.suite_ref),
        # Each repeat has trained weights of its own.
        repeats=request.repeats if asked.alone else 1,
        trigger=TRIGGER,
        wait_s=max(1.0, asked.until - now),
        ends_at=asked.until,
        confirms=run.id,
        only=asked.keys,
        evaluates=asked.alone,
    )


def in_words(note: Callable[[str], None]) -> Listener:
    """A listener that tells of a confirm run as notes of the run that it confirms."""

    def take(event: Event) -> None:
        if event.kind is Kind.STEP_STARTED:
            note(f"confirming: {event.step} {event.text}".rstrip())
        elif event.kind is Kind.STEP_ENDED and event.status:
            note(f"confirming: {event.step} {event.status.value} {event.text}".rstrip())
        elif event.kind is Kind.CHECKS and event.status:
            note(f"confirming: {event.status.value}")

    return take


def cut(plan: Plan, keys: Iterable[str]) -> Plan:
    """Only the steps and legs in doubt, and the steps that they need."""
    wanted = set(keys)
    legs = {
        step.id: tuple(leg for leg in step.legs if f"{step.id}/{leg.id}" in wanted or step.id in wanted)
        for step in plan.steps
    }
    kept = {step.id for step in plan.steps if step.id in wanted or legs[step.id]}
    for step in reversed(plan.steps):  # in an order in which each comes after what it needs
        if step.id in kept:
            kept.update(step.after)
    steps = [step.model_copy(update={"legs": legs[step.id]}) for step in plan.steps if step.id in kept]
    return plan.model_copy(update={"steps": tuple(steps)})


def cut_alone(plan: Plan, keys: Iterable[str]) -> Plan:
    """Only these evaluations, in all their repeats: what they need is there already."""
    wanted = set(keys)
    steps = [step.model_copy(update={"after": ()}) for step in plan.steps if without_repeat(step.id) in wanted]
    return plan.model_copy(update={"steps": tuple(steps)})
