"""Is a change compared with the runs of its merge base?

Any commit may be the base of a run: one without enough earlier runs must not turn off comparisons without a word.
"""

from tipcflow.check.context import CheckContext
from tipcflow.check.select import passed
from tipcflow.domain import CheckResult, Facts, Status, numbers_of
from tipcflow.domain.numbers.units import first_names

NAME = "baseline.merge_base"
# Characters of a commit, and number of metrics, in a reason.
_COMMIT, _SHOWN = 7, 3


def merge_base(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One `insufficient_data` if the run, or metrics of it, are compared with the newest runs of the chain;
    otherwise none, as for a run that tests no change."""
    base, needed = context.base, context.policy.min_history
    if base is None:
        return []
    name, instead = f"base {base.commit[:_COMMIT]}", "compared with the newest runs of the chain"
    if base.is_short:
        values = {"base": base.commit, "runs": base.runs, "needed": needed}
        reason = f"{name} has {base.runs} of {needed} earlier runs: {instead}"
        return [CheckResult(check=NAME, status=Status.INSUFFICIENT_DATA, reason=reason, values=values)]
    numbers = numbers_of(sample for sample in facts.measurements if passed(facts, sample.step, sample.leg))
    metrics = sorted(
        {
            key.plain_metric
            for key in numbers
            if context.policy.rule_of(key.metric) and context.runs_of(key) is not context.history
        }
    )
    if not metrics:
        return []
    values = {"base": base.commit, "runs": base.runs, "needed": needed, "metrics": metrics}
    reason = f"{name} has fewer than {needed} earlier values of {first_names(metrics, _SHOWN)}: {instead}"
    return [CheckResult(check=NAME, status=Status.INSUFFICIENT_DATA, reason=reason, values=values)]
