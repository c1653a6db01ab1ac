"""Runs all checks on a run's facts, and derives the run's status and reason."""

from collections.abc import Callable, Iterable
from textwrap import shorten

from tipcflow.check.baseline.baseline import against_baseline
from tipcflow.check.baseline.node_health import node_health
from tipcflow.check.baseline.pinned import against_pinned
from tipcflow.check.context import CheckContext
from tipcflow.check.evidence import ran_evidence, ran_log, ran_removed
from tipcflow.check.numeric.accuracy import accuracy_final
from tipcflow.check.numeric.loss import loss_falling, loss_finite
from tipcflow.check.numeric.reproducible import loss_reproducible
from tipcflow.check.predictions.golden import golden_results
from tipcflow.check.predictions.parity import parity_onednn
from tipcflow.check.predictions.parity_chain import parity_chain
from tipcflow.check.proof.confirm_run import confirm_run
from tipcflow.check.proof.engine import ran_engine
from tipcflow.check.proof.environment import NAME as ENVIRONMENT
from tipcflow.check.proof.environment import environment_class
from tipcflow.check.proof.steps import SUMMARY, executed_steps, ran_steps
from tipcflow.check.proof.training import ran_training
from tipcflow.check.proof.world import ran_world_size
from tipcflow.check.select import trained, training_steps
from tipcflow.check.summary import summary
from tipcflow.domain import CheckResult, Facts, Status, run_status

Check = Callable[[Facts, CheckContext], list[CheckResult]]

# In display order.
CHECKS: tuple[Check, ...] = (
    ran_removed,
    environment_class,
    ran_steps,
    ran_evidence,
    ran_log,
    ran_world_size,
    ran_training,
    ran_engine,
    confirm_run,
    node_health,
    loss_finite,
    loss_falling,
    loss_reproducible,
    accuracy_final,
    parity_onednn,
    parity_chain,
    golden_results,
    against_baseline,
    against_pinned,
)

REMOVED = "ran.removed"
MAX_PROBLEMS = 3
MAX_WIDTH = 300


def judge(facts: Facts, context: CheckContext) -> tuple[CheckResult, ...]:
    """The results of all checks, in a fixed order."""
    return tuple(result for check in CHECKS for result in check(facts, context))


def verdict(facts: Facts, results: Iterable[CheckResult]) -> tuple[Status, str]:
    """The run's status, and one line with its worst problems (at most three) or what was proven."""
    answers = tuple(results)
    gating = [result.status for result in answers if result.gating]
    status = run_status(
        [*facts.step_status.values(), *facts.leg_status.values(), *gating],
        executed_steps=executed_steps(facts),
        trained=bool(training_steps(facts)) and all(trained(facts, step) for step in training_steps(facts)),
        trains=facts.plan.trains,
    )
    return status, "; ".join(why(facts, answers))


def why(facts: Facts, results: Iterable[CheckResult]) -> list[str]:
    """The parts of the verdict's line: the worst problems, at most three, or what was proven and what was not.

    Removed work and a lost history come first, even if allowed, because they must not be overlooked.
    """
    answers = tuple(results)
    gone = [one for one in answers if one.check in (REMOVED, ENVIRONMENT) and one.status is not Status.PASS]
    others = tuple(one for one in answers if one not in gone)
    reasons, problems = [one.reason for one in gone], _problems(facts, others)
    if not problems and not any(one.gating and one.status in _BAD for one in gone):
        return [*reasons, *summary(facts, others)]
    found = [*reasons, *problems]
    more = [f"and {len(found) - MAX_PROBLEMS} more"] if len(found) > MAX_PROBLEMS else []
    return [*found[:MAX_PROBLEMS], *more]


def _problems(facts: Facts, results: tuple[CheckResult, ...]) -> list[str]:
    """Problems, worst first; steps before the legs and checks that depend on them."""
    found: list[tuple[int, str]] = []
    for statuses in (facts.step_status, facts.leg_status):
        for key, status in statuses.items():
            if status in _BAD and not _said_by_a_leg(facts, key, status):
                reason = facts.step_reason.get(key, "")
                found.append((status.severity, f"{key}: {reason or status.value}"))
    said = bool(found)
    for result in results:
        # A summary only repeats the problems of steps, if there are any.
        repeats = said and bool(result.values.get(SUMMARY))
        if result.gating and result.status in _BAD and not repeats:
            about = " ".join(part for part in (result.step, result.leg) if part)
            found.append(
                (result.status.severity, f"{result.check}{f' ({about})' if about else ''}: {result.reason}")
            )
    found.sort(key=lambda problem: -problem[0])
    # A reason may quote a log; it is shortened to one line here, and the run's page shows all of it.
    return [shorten(text, MAX_WIDTH, placeholder=" …") for _, text in found]


def _said_by_a_leg(facts: Facts, step: str, status: Status) -> bool:
    """Whether a leg of the step has the same status; the step's reason then only counts its legs."""
    return any(key.startswith(f"{step}/") and said is status for key, said in facts.leg_status.items())


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
