"""The results of a confirmation run, why some are missing, and whether it found the model's code broken."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tipcflow.check import Confirmation
from tipcflow.domain import Facts, Status, StepKind, without_repeat
from tipcflow.domain.numbers.metrics import by_iteration
from tipcflow.domain.run.failure import FailureClass
from tipcflow.execute.verdict.confirm import asked_of

if TYPE_CHECKING:
    from tipcflow.store import Store

# Different batch sizes, derived from duration and throughput, differ by at least this factor.
_SAME_SIZE = 1.4
# Measurements of such a run before its end prove nothing: the cause of its end may have slowed it down.
_PROVES_NOTHING = frozenset({Status.INFRA_FAILURE, Status.CANCELLED, Status.CONFIG_ERROR})
_LATE = "has not ended in time"


def confirmation_of(store: "Store", run_id: str) -> Confirmation | None:
    """Return the results of a run's confirmation run; None if none was requested.

    Only steps and legs that passed count; from a confirmation run in another mode only iteration speeds. Nothing
    counts from a confirmation run that was late or ended as `infra_failure`, `cancelled` or `config_error`.
    """
    asked = asked_of(store, run_id)
    if asked is None:
        return None
    if asked.refused:
        return Confirmation(asked.run, {}, f"is not waited for: {asked.refused}")
    known = store.known_runs([asked.run]).get(asked.run)
    if known is None or known.status is None:
        return Confirmation(asked.run, {}, _LATE if store.now() >= asked.until else "has not ended yet")
    ended = f"is {known.status.value}" + (f": {known.reason}" if known.reason else "")
    facts = store.facts(asked.run)
    if known.status in (Status.INFRA_FAILURE, Status.FAILED) and _is_cut(facts):
        return Confirmation(asked.run, {}, f"{_LATE}: {known.reason}")
    if known.status in _PROVES_NOTHING:
        return Confirmation(asked.run, {}, ended)
    confirmed = store.get_run(run_id)
    # A confirmation run without an environment ended before its start, and its own reason explains that.
    if known.environment and known.environment != confirmed.environment:
        return Confirmation(asked.run, {}, f"ran in another environment: {known.environment}")
    medians = {key: value for key, value in store.past_run(asked.run).medians.items() if _well(facts, key)}
    missing, failed = ended, ""
    if known.status is Status.FAILED:
        failed = known.reason or "no reason is stored"
    if known.mode != confirmed.mode:
        medians, missing = _of_another_mode(medians, store.past_run(run_id).medians, missing)
    return Confirmation(asked.run, medians, missing, failed)


def _is_cut(facts: Facts) -> bool:
    """Whether a confirmation run ended only at its deadline, which is no evidence about the model's code.

    In that case a step was ended or not started because of the budget, and no step or leg is `failed` itself.
    """
    tried = {record.step for record in facts.records} | set(facts.failures)
    cut = any(failure.failure_class is FailureClass.BUDGET for failure in facts.failures.values())
    cut = cut or any(
        status is Status.INFRA_FAILURE and step not in tried for step, status in facts.step_status.items()
    )
    return cut and Status.FAILED not in (*facts.step_status.values(), *facts.leg_status.values())


def _of_another_mode(
    medians: Mapping[str, float], ours: Mapping[str, float], missing: str
) -> tuple[dict[str, float], str]:
    """Return the metrics that are comparable between the two modes, and why others are missing."""
    alike = {key: value for key, value in medians.items() if _comparable(key, medians, ours)}
    other = {key.split("|")[0] for key in medians.keys() - alike.keys() if by_iteration(key.rpartition("|")[2])}
    if other:
        missing = f"different batch size in {', '.join(sorted(other))}"
    return alike, missing


def _comparable(key: str, theirs: Mapping[str, float], ours: Mapping[str, float]) -> bool:
    """Whether a metric of a run in another mode measures the same work: one iteration of the same batch size."""
    about, _, name = key.rpartition("|")
    sizes = [known.get(f"{about}|batch_cost", 0) * known.get(f"{about}|ips", 0) for known in (theirs, ours)]
    return by_iteration(name) and (min(sizes) <= 0 or max(sizes) <= _SAME_SIZE * min(sizes))


def _well(facts: Facts, key: str) -> bool:
    step, leg, _ = key.split("|")
    repeats = [one for one in facts.plan.steps if without_repeat(one.id) == step]
    preparing = any(one.kind is StepKind.PREPARE for one in repeats)
    statuses: list[Any] = [
        facts.leg_status.get(f"{one.id}/{leg}") if leg else facts.step_status.get(one.id) for one in repeats
    ]
    return bool(statuses) and all(status is Status.PASS for status in statuses) and not preparing
