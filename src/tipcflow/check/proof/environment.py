"""Is the run's environment class known, and does the chain have a history in it?

Without these facts, a run would be in an environment class of its own, where nothing is compared with it; but
missing facts are not a new environment.
"""

from tipcflow.check.context import CheckContext
from tipcflow.domain import CheckResult, Facts, Status
from tipcflow.domain.numbers.environment import differences

NAME = "environment.class"
# The parts of a node's facts that the class is made of.
_PARTS = frozenset({"machine", "gpus"})


def environment_class(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result when something is wrong: missing facts, or a history in another class."""
    missing = [
        f"node {fact.node} did not report its {' and '.join(sorted(_PARTS.intersection(fact.unfinished)))} in time"
        for fact in facts.node_facts
        if fact.node in facts.plan.nodes and _PARTS.intersection(fact.unfinished)
    ]
    if missing:
        reason = f"{'; '.join(missing)}: environment class unknown; no comparison"
        return [CheckResult(check=NAME, status=Status.INFRA_FAILURE, reason=reason, values={"missing": missing})]
    run, (other, count) = context.run, context.elsewhere
    if run is None or not other or count < context.policy.min_history:
        return []
    difference = ", ".join(differences(other, run.environment)) or f"{run.environment or 'unknown'}, not {other}"
    # A user admitted the environment with its first accepted run.
    fails = context.policy.comparison.new_environment == "fail" and not context.history
    return [
        CheckResult(
            check=NAME,
            status=Status.INFRA_FAILURE if fails else Status.INSUFFICIENT_DATA,
            reason=f"new environment; not compared with {count} accepted runs of another one: {difference}",
            values={"other": other, "runs": count},
        )
    ]
