"""The results of a confirm run, why some are missing, and whether it found the model's code broken."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tipcflow.check import Confirmation
from tipcflow.domain import Facts, LegKey, MetricKey, Status, StepKind, without_repeat
from tipcflow.domain.keys import SLOWEST
from tipcflow.domain.numbers.metrics import by_iteration
from tipcflow.domain.run.failure import FailureClass
from tipcflow.domain.run_documents import ConfirmationDocument
from tipcflow.execute.verdict.confirm import confirm_request_of

if TYPE_CHECKING:
    from tipcflow.store import Store

# Different batch sizes, derived from duration and throughput, differ by at least this factor.
_SAME_SIZE = 1.4
# Measurements of such a run before its end prove nothing: the cause of its end may have slowed it down.
_PROVES_NOTHING = frozenset({Status.INFRA_FAILURE, Status.CANCELLED, Status.CONFIG_ERROR})
_LATE = "did not finish before its deadline"


def confirmation_of(store: "Store", run_id: str) -> Confirmation | None:
    """Return the results of a run's confirm run; None if none was requested.

    Only steps and legs that passed count; from a confirm run in another mode only iteration speeds. Nothing
    counts from a confirm run that was late or ended as `infra_failure`, `cancelled` or `config_error`. Of several
    confirm runs, the last one states what is missing; the measurements of the earlier ones remain.
    """
    confirmation = confirm_request_of(store, run_id)
    if confirmation is None:
        return None
    last = _of(store, run_id, confirmation)
    if not confirmation.earlier:
        return last
    values: dict[MetricKey, tuple[float, ...]] = {}
    requests = [confirmation.model_copy(update={"run": run, "refused": ""}) for run in confirmation.earlier]
    for results in (*(_of(store, run_id, request) for request in requests), last):
        for key, value in results.medians.items():
            values[key] = (*values.get(key, ()), value)
    return replace(
        last,
        medians={key: known[0] for key, known in values.items()},
        more={key: known[1:] for key, known in values.items() if known[1:]},
        runs=1 + len(confirmation.earlier),
    )


def _of(store: "Store", run_id: str, confirmation: ConfirmationDocument) -> Confirmation:
    """Return the results of one confirm run."""
    if confirmation.refused:
        return Confirmation(confirmation.run, {}, f"is not waited for: {confirmation.refused}")
    stored = store.runs.known([confirmation.run]).get(confirmation.run)
    if stored is None or stored.status is None:
        return Confirmation(
            confirmation.run, {}, _LATE if store.now() >= confirmation.until else "is still running"
        )
    ended = f"is {stored.status.value}" + (f": {stored.reason}" if stored.reason else "")
    facts = store.history.facts(confirmation.run)
    if stored.status in (Status.INFRA_FAILURE, Status.FAILED) and _is_cut(facts):
        return Confirmation(confirmation.run, {}, f"{_LATE}: {stored.reason}")
    if stored.status in _PROVES_NOTHING:
        return Confirmation(confirmation.run, {}, ended)
    confirmed = store.runs.get(run_id)
    # A confirm run without an environment ended before its start, and its own reason explains that.
    if stored.environment and stored.environment != confirmed.environment:
        return Confirmation(confirmation.run, {}, f"ran in another environment: {stored.environment}")
    medians = {
        key: value
        for key, value in store.history.past_run(confirmation.run).medians.items()
        if _succeeded(facts, key)
    }
    missing, failed = ended, ""
    if stored.status is Status.FAILED:
        failed = stored.reason or "no reason is stored"
    if stored.mode != confirmed.mode:
        medians, missing = _of_another_mode(medians, store.history.past_run(run_id).medians, missing)
    last = f"the confirm run {confirmation.run} failed" if failed else ""
    return Confirmation(confirmation.run, medians, missing, failed, last=last)


def _is_cut(facts: Facts) -> bool:
    """Whether a confirm run ended only at its deadline, which is not evidence about the model's code.

    In that case a step was ended or not started because of the budget, and no step or leg is `failed` itself.
    """
    tried = {record.step for record in facts.records} | set(facts.failures)
    cut = any(failure.failure_class is FailureClass.BUDGET for failure in facts.failures.values())
    cut = cut or any(
        status is Status.INFRA_FAILURE and step not in tried for step, status in facts.step_status.items()
    )
    return cut and Status.FAILED not in (*facts.step_status.values(), *facts.leg_status.values())


def _of_another_mode(
    medians: Mapping[MetricKey, float], ours: Mapping[MetricKey, float], missing: str
) -> tuple[dict[MetricKey, float], str]:
    """Return the metrics that are comparable between the two modes, and why others are missing."""
    alike = {key: value for key, value in medians.items() if _comparable(key, medians, ours)}
    other = {key.step for key in medians.keys() - alike.keys() if by_iteration(_sampled(key))}
    if other:
        missing = f"different batch size in {', '.join(sorted(other))}"
    return alike, missing


def _comparable(key: MetricKey, theirs: Mapping[MetricKey, float], ours: Mapping[MetricKey, float]) -> bool:
    """Whether a metric of a run in another mode measures the same work: one iteration of the same batch size."""
    cost, rate = key.of("batch_cost"), key.of("ips")
    sizes = [known.get(cost, 0) * known.get(rate, 0) for known in (theirs, ours)]
    return by_iteration(_sampled(key)) and (min(sizes) <= 0 or max(sizes) <= _SAME_SIZE * min(sizes))


def _sampled(key: MetricKey) -> str:
    """Return the metric whose samples a number is made of."""
    return key.metric.removesuffix(SLOWEST)


def _succeeded(facts: Facts, key: MetricKey) -> bool:
    repeats = [step for step in facts.plan.steps if without_repeat(step.id) == key.step]
    preparing = any(step.kind is StepKind.PREPARE for step in repeats)
    statuses: list[Any] = [
        facts.leg_status.get(LegKey(step.id, key.leg)) if key.leg else facts.step_status.get(step.id)
        for step in repeats
    ]
    return bool(statuses) and all(status is Status.PASS for status in statuses) and not preparing
