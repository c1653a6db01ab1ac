"""Does the tested ref still declare every variant, step and leg of the last accepted run?"""

from tipcflow.check.context import CheckContext
from tipcflow.domain import CheckResult, Declared, Facts, Status
from tipcflow.domain.numbers.units import counted, first_names

NAME = "ran.removed"
_CONFIRM = "confirm"
_SHOWN = 6


def ran_removed(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result for the run: `failed` (policy `removed: fail`) or `not_run` (`allow`) names what the last
    accepted run declared and the tested ref does not. A confirm run does a part of its run's work on purpose."""
    before = context.before
    if before is None or (context.run and context.run.trigger == _CONFIRM):
        return []
    removed = before.without(Declared.of(facts.run, facts.plan))
    if not removed:
        count = len(before.steps) + len(before.legs)
        reason = f"all {count} steps and legs of run {before.run} are declared"
        return [CheckResult(check=NAME, status=Status.PASS, reason=reason)]
    fails = context.policy.removed == "fail"
    reason = f"{removed_message(removed)} since run {before.run}"
    if fails:
        reason += "; `removed: allow` of the policy, or `tipcflow baseline accept`, allows it"
    status = Status.FAILED if fails else Status.NOT_RUN
    values = {**removed, "before": before.run}
    return [CheckResult(check=NAME, status=status, reason=reason, gating=fails, values=values)]


def removed_message(removed: dict[str, tuple[str, ...]]) -> str:
    """`2 legs removed: v/infer_cpu/a, v/infer_cpu/b`."""
    return ", ".join(
        f"{counted(len(names), what)} removed: {first_names(list(names), _SHOWN)}"
        for what, names in removed.items()
    )
