"""Did every planned step and leg run, and does evidence prove it?"""

from tipcflow.check.context import CheckContext
from tipcflow.check.select import iterations, leg_key, records, trained, training_steps
from tipcflow.domain import CheckResult, Facts, LegKey, Status, Step, StepKind
from tipcflow.domain.numbers.measured import ValueKey
from tipcflow.domain.numbers.units import first_names

NAME = "ran.steps"

# Statuses of executed steps and legs, successful or not.
EXECUTED = frozenset({Status.PASS, Status.IMPROVEMENT, Status.UNCONFIRMED, Status.REGRESSION, Status.FAILED})

_WRONG = frozenset({Status.FAILED, Status.INFRA_FAILURE, Status.CANCELLED})

# What a status means of a training step that did not succeed.
_UNTRAINED = {
    Status.FAILED: "failed",
    Status.INFRA_FAILURE: "had an infra_failure",
    Status.CANCELLED: "was cancelled",
    Status.NOT_RUN: "was not run",
    Status.PASS: "logged no iteration",
}


def ran_steps(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result for the whole run: `failed` for missing, unproven or unexplained work, or when nothing ran."""
    unproven = [text for step in facts.plan.steps for text in _unproven(facts, step)]
    states = list(_states(facts).values())
    counts = {status.value: states.count(status) for status in Status if status in states}
    listed = ", ".join(f"{count} {word}" for word, count in counts.items())
    shown = f"steps and legs: {listed}" if listed else "nothing was planned"
    if unproven:
        return [_result(Status.FAILED, f"{first_names(unproven)} ({shown})", counts)]
    untrained = [step.id for step in training_steps(facts) if not trained(facts, step)]
    if not executed_steps(facts):
        what = _no_success(facts, untrained) if untrained else "no planned step was executed"
        return [_result(_status_of(states), f"{what} ({shown})", counts, summary=bool(untrained))]
    if facts.plan.trains and (untrained or not training_steps(facts)):
        status = _status_of([facts.step_status.get(step) or Status.BLOCKED for step in untrained])
        return [_result(status, f"{_no_success(facts, untrained)} ({shown})", counts, summary=True)]
    if _no_leg_ran(facts):
        return [_result(_status_of(states), f"no inference leg was executed ({shown})", counts)]
    bad = [key for key, status in _states(facts).items() if status in (Status.FAILED, Status.INFRA_FAILURE)]
    if bad or Status.CANCELLED in states:
        what = f"{first_names(bad)} failed" if bad else "steps were cancelled"
        return [_result(_status_of(states), f"{what} ({shown})", counts, summary=True)]
    left_out = ", or left out with a reason" if Status.NOT_RUN in states else ""
    return [_result(Status.PASS, f"all planned steps and legs were executed{left_out} ({listed})", counts)]


def _no_success(facts: Facts, untrained: list[str]) -> str:
    """A sentence about the training steps that did not succeed, with the end of each."""
    ends = [facts.step_status.get(step, Status.BLOCKED) for step in untrained]
    words = [_UNTRAINED.get(end, "was not started") for end in ends]
    names = first_names([f"{step} {word}" for step, word in zip(untrained, words, strict=True)])
    return f"the training did not succeed: {names or 'the plan has no training step'}"


def executed_steps(facts: Facts) -> int:
    """Return the number of executed planned steps, without data preparation, which is not evidence."""
    return sum(
        facts.step_status.get(step.id) in EXECUTED
        for step in facts.plan.steps
        if step.kind is not StepKind.PREPARE
    )


def _no_leg_ran(facts: Facts) -> bool:
    """Whether legs were planned and none of them was executed: then nothing was inferred."""
    keys = [leg_key(step, leg.id) for step in facts.plan.steps for leg in step.legs]
    return bool(keys) and not any(facts.leg_status.get(key) in EXECUTED for key in keys)


def _result(status: Status, reason: str, counts: dict[str, int], *, summary: bool = False) -> CheckResult:
    values: dict[str, object] = {"counts": counts} | ({ValueKey.SUMMARY: True} if summary else {})
    return CheckResult(check=NAME, status=status, reason=reason, values=values)


def _status_of(states: list[Status]) -> Status:
    """Status of missing work: a failure of the model precedes one of the nodes, then a stop by a user."""
    for status in (Status.FAILED, Status.INFRA_FAILURE):
        if status in states:
            return status
    # A check cannot be `cancelled`, only steps and runs can: a check of cancelled work was not run.
    return Status.NOT_RUN if Status.CANCELLED in states else Status.FAILED


def _states(facts: Facts) -> dict[str, Status]:
    """Status of every planned step and leg; what has none because an earlier step failed is blocked."""
    states: dict[str, Status] = {}
    for step in facts.plan.steps:
        state = facts.step_status.get(step.id) or (Status.NOT_RUN if step.not_run else Status.BLOCKED)
        states[step.id] = state
        for leg in step.legs:
            key = leg_key(step, leg.id)
            default = Status.NOT_RUN if leg.not_run or step.not_run else Status.BLOCKED
            states[str(key)] = facts.leg_status.get(key) or default
    return states


def _unproven(facts: Facts, step: Step) -> list[str]:
    """What is missing or contradicts itself about a step and its legs."""
    status = facts.step_status.get(step.id)
    if status in (None, Status.BLOCKED) and not step.not_run and not _explained(facts, step):
        trace = "did not run" if status is None else "was blocked although no dependency failed"
        return [f"{step.id} was planned and {trace}"]
    if status is Status.NOT_RUN and not (step.not_run or facts.step_reason.get(LegKey(step.id))):
        return [f"{step.id} was skipped without a reason"]
    if status is not Status.PASS:
        return []
    problems = _without_proof(facts, step, step.id, "", step.nodes) if not step.legs else []
    if step.kind is StepKind.TRAIN and not problems and not iterations(facts, step):
        problems = [f"{step.id} exited with 0 but logged no training iteration"]
    for leg in step.legs:
        key = leg_key(step, leg.id)
        leg_status = facts.leg_status.get(key)
        if leg_status in (None, Status.BLOCKED) and not leg.not_run:
            problems.append(f"leg {key} was planned and did not run")
        elif leg_status is Status.NOT_RUN and not (leg.not_run or facts.step_reason.get(key)):
            problems.append(f"leg {key} was skipped without a reason")
        elif leg_status is Status.PASS:
            problems += _without_proof(facts, step, f"leg {key}", leg.id, ())
    return problems


def _without_proof(facts: Facts, step: Step, name: str, leg: str, nodes: tuple[str, ...]) -> list[str]:
    """A passed step or leg needs a matching exit record; a step needs one from each of its nodes."""
    ended = records(facts, step.id, leg)
    if step.kind is StepKind.PREPARE and not ended:
        return []
    silent = [node for node in nodes if node not in {record.node for record in ended}]
    silent = [] if step.kind is StepKind.PREPARE else silent
    if not ended or silent:
        return [f"{name} has no exit record" + (f" from {first_names(silent)}" if silent else "")]
    bad = [record for record in ended if not record.ok]
    if not bad:
        return []
    lost = [output.path for output in bad[0].outputs if not (output.exists and output.fresh)]
    why = f"did not write {first_names(lost)}" if lost else f"ended with {bad[0].exit_code} ({bad[0].reason})"
    return [f"{name} has status pass but {why} on {bad[0].node}"]


def _explained(facts: Facts, step: Step) -> bool:
    """Whether a prerequisite of the step failed or cannot run here, or the step's own legs explain it."""
    by_id = {other.id: other for other in facts.plan.steps}
    seen: set[str] = set()
    waiting = list(step.after)
    while waiting:
        before = waiting.pop()
        if before in seen or before not in by_id:
            continue
        seen.add(before)
        status = facts.step_status.get(before)
        if by_id[before].not_run or status not in (None, Status.PASS, Status.IMPROVEMENT, Status.BLOCKED):
            return True
        waiting += by_id[before].after
    return any(facts.leg_status.get(leg_key(step, leg.id)) in _WRONG for leg in step.legs)
