"""Did the training use the kind of device and the precision that were declared?"""

from tipcflow.check.context import CheckContext
from tipcflow.check.select import records, some, training_steps
from tipcflow.domain import CheckResult, Facts, Status, Step
from tipcflow.domain.environment import EnvironmentClass

NAME = "ran.training"
# What frameworks call the kinds of devices.
_ON_CPU = ("-1",)
_CALLED = {"cuda": "gpu"}


def ran_training(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per training step that ended well: `failed` when a process says another device or precision than
    declared, `insufficient_data` when nothing shows what was used."""
    cluster = EnvironmentClass.of(context.run.environment).device if context.run else ""
    return [
        _judged(facts, step, _declared(facts, step, cluster))
        for step in training_steps(facts)
        if facts.step_status.get(step.id) is Status.PASS
    ]


def _declared(facts: Facts, step: Step, cluster: str) -> str:
    """The kind of device; '' when it is not known. A file asks for the CPU of any cluster with the group -1."""
    groups = [one.devices for one in facts.plan.variants if one.id == step.variant]
    on_cpu = bool(groups) and groups[0] == _ON_CPU
    return "cpu" if on_cpu else cluster if cluster in ("cpu", "gpu") else ""


def _judged(facts: Facts, step: Step, device: str) -> CheckResult:
    precision = next((one.precision for one in facts.plan.variants if one.id == step.variant), "")
    wrong, unknown, shown = [], [], []
    for what, declared, told in (
        ("device", device, _devices(facts, step)),
        ("precision", precision, _precisions(facts, step)),
    ):
        if not declared:
            continue
        others = [f"{who} trained with {what} {real}" for who, real in told if real != declared.lower()]
        if others:
            wrong.append(f"{some(others)}; {declared} was declared")
        elif told:
            shown.append(f"{what} {declared}")
        else:
            unknown.append(f"{what} ({declared} was declared)")
    values = {"device": device, "precision": precision, "wrong": wrong, "unknown": unknown}

    def result(status: Status, reason: str) -> CheckResult:
        return CheckResult(check=NAME, status=status, reason=reason, step=step.id, values=values)

    if wrong:
        return result(Status.FAILED, "; ".join(wrong))
    if unknown or not shown:
        return result(Status.INSUFFICIENT_DATA, f"nothing shows the {' and the '.join(unknown) or 'device'}")
    return result(Status.PASS, f"trained with {' and '.join(shown)}")


def _devices(facts: Facts, step: Step) -> list[tuple[str, str]]:
    """(who, kind of device) as the processes say; where they do not, GPU memory in use shows a GPU, and nodes
    without one that it was none."""
    told = [
        (f"rank {one.rank}" + (f" on {one.node}" if one.node else ""), _kind(one.device))
        for one in facts.ranks.get(step.id, ())
        if one.device
    ]
    if told:
        return told
    ends = records(facts, step.id)
    if any(size > 0 for one in ends for size in one.peak_gpu_bytes.values()):
        return [("a process", "gpu")]
    looked = [node for node in facts.node_facts if node.node in step.nodes and "gpus" not in node.unfinished]
    if len(looked) == len(step.nodes) and not any(node.gpus for node in looked):
        return [("everybody", "cpu")]
    return []


def _precisions(facts: Facts, step: Step) -> list[tuple[str, str]]:
    return [
        (f"rank {one.rank}" + (f" on {one.node}" if one.node else ""), one.precision.lower())
        for one in facts.ranks.get(step.id, ())
        if one.precision
    ]


def _kind(device: str) -> str:
    word = device.lower().partition(":")[0]
    return _CALLED.get(word, word)
