"""Runs all checks on a run's facts, and derives the run's status and reason."""

from collections.abc import Callable, Iterable
from textwrap import shorten

from tipcflow.check.baseline.baseline import against_baseline
from tipcflow.check.baseline.merge_base import NAME as MERGE_BASE
from tipcflow.check.baseline.merge_base import merge_base
from tipcflow.check.baseline.node_health import node_health
from tipcflow.check.baseline.pinned import against_pinned
from tipcflow.check.compression.content import ran_compression
from tipcflow.check.compression.speed import compression_speed
from tipcflow.check.context import CheckContext
from tipcflow.check.evidence import ran_evidence, ran_files, ran_log, ran_removed, require_proofs
from tipcflow.check.numeric.accuracy import accuracy_final
from tipcflow.check.numeric.evaluation import accuracy_evaluation
from tipcflow.check.numeric.loss import loss_falling, loss_finite
from tipcflow.check.numeric.reproducible import loss_reproducible
from tipcflow.check.predictions.golden import golden_results
from tipcflow.check.predictions.parity import parity_onednn
from tipcflow.check.predictions.parity_chain import parity_chain
from tipcflow.check.proof.confirm_run import confirm_run
from tipcflow.check.proof.engine import ran_engine
from tipcflow.check.proof.environment import NAME as ENVIRONMENT
from tipcflow.check.proof.environment import environment_class
from tipcflow.check.proof.group import ran_group
from tipcflow.check.proof.steps import executed_steps, ran_steps
from tipcflow.check.proof.training import ran_training
from tipcflow.check.proof.weights import ran_weights
from tipcflow.check.proof.world import ran_world_size
from tipcflow.check.quarantine import quarantine_reasons, with_quarantines
from tipcflow.check.select import trained, training_steps
from tipcflow.check.summary import summary
from tipcflow.domain import CheckResult, Facts, LegKey, Status, run_status

Check = Callable[[Facts, CheckContext], list[CheckResult]]

# In display order.
CHECKS: tuple[Check, ...] = (
    ran_removed,
    environment_class,
    merge_base,
    ran_steps,
    ran_evidence,
    ran_files,
    ran_log,
    ran_world_size,
    ran_group,
    ran_training,
    ran_weights,
    ran_compression,
    ran_engine,
    confirm_run,
    node_health,
    loss_finite,
    loss_falling,
    loss_reproducible,
    accuracy_final,
    accuracy_evaluation,
    parity_onednn,
    parity_chain,
    compression_speed,
    golden_results,
    against_baseline,
    against_pinned,
)

REMOVED = "ran.removed"
MAX_PROBLEMS = 3
MAX_WIDTH = 300


def judge(facts: Facts, context: CheckContext) -> tuple[CheckResult, ...]:
    """The results of all checks, in a fixed order."""
    results = [result for check in CHECKS for result in check(facts, context)]
    # Before proofs are required: a missing proof is never covered by a quarantine.
    return require_proofs(facts, context, with_quarantines(results, context.quarantines))


def verdict(facts: Facts, results: Iterable[CheckResult]) -> tuple[Status, str]:
    """The run's status, and one line with its worst problems (at most three) or what was proven."""
    all_results = tuple(results)
    gating = [result.status for result in all_results if result.gating]
    status = run_status(
        [*facts.step_status.values(), *facts.leg_status.values(), *gating],
        executed_steps=executed_steps(facts),
        trained=bool(training_steps(facts)) and all(trained(facts, step) for step in training_steps(facts)),
        trains=facts.plan.trains,
    )
    return status, "; ".join(verdict_reasons(facts, all_results))


def verdict_reasons(facts: Facts, results: Iterable[CheckResult]) -> list[str]:
    """The parts of the verdict's line: the worst problems, at most three, or what was proven and what was not.

    Removed work and another history come first, even if allowed, because they must not be overlooked. Quarantined
    failures follow; if something blocks, they come last.
    """
    all_results = tuple(results)
    first = [
        result
        for result in all_results
        if result.check in (REMOVED, ENVIRONMENT, MERGE_BASE) and result.status is not Status.PASS
    ]
    others = tuple(result for result in all_results if result not in first)
    reasons, problems = [result.reason for result in first], _problems(facts, others)
    if not problems and not any(result.gating and result.status in _BAD for result in first):
        return [*reasons, *quarantine_reasons(others), *summary(facts, others)]
    parts = [*reasons, *problems]
    more = [f"and {len(parts) - MAX_PROBLEMS} more"] if len(parts) > MAX_PROBLEMS else []
    return [*parts[:MAX_PROBLEMS], *more, *quarantine_reasons(others)]


def _problems(facts: Facts, results: tuple[CheckResult, ...]) -> list[str]:
    """Problems, worst first; steps before the legs and checks that depend on them."""
    problems: list[tuple[int, str]] = []
    steps = {LegKey(step): status for step, status in facts.step_status.items()}
    for key, status in (*steps.items(), *facts.leg_status.items()):
        if status in _BAD and not (key in steps and _is_reported_by_leg(facts, key.step, status)):
            reason = facts.step_reason.get(key, "")
            problems.append((status.severity, f"{key}: {reason or status.value}"))
    has_problems = bool(problems)
    for result in results:
        # A summary only repeats the problems of steps, if there are any.
        repeats = has_problems and result.measured.is_summary
        if result.gating and result.status in _BAD and not repeats:
            about = " ".join(part for part in (result.step, result.leg) if part)
            problems.append(
                (result.status.severity, f"{result.check}{f' ({about})' if about else ''}: {result.reason}")
            )
    problems.sort(key=lambda problem: -problem[0])
    # A reason may quote a log; it is shortened to one line here, and the run's page shows all of it.
    return [shorten(text, MAX_WIDTH, placeholder=" …") for _, text in problems]


def _is_reported_by_leg(facts: Facts, step: str, status: Status) -> bool:
    """Whether a leg of the step has the same status; the step's reason then only counts its legs."""
    return any(key.step == step and leg_status is status for key, leg_status in facts.leg_status.items())


_BAD = frozenset(
    {
        Status.FAILED,
        Status.REGRESSION,
        Status.UNCONFIRMED,
        Status.INFRA_FAILURE,
        Status.CANCELLED,
        Status.CONFIG_ERROR,
    }
)
