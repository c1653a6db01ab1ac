"""Did the training use the declared device type and precision?"""

from tipcflow.check.context import CheckContext
from tipcflow.check.select import records, training_steps
from tipcflow.domain import CheckResult, Facts, Status, Step
from tipcflow.domain.numbers.environment import EnvironmentClass
from tipcflow.domain.numbers.units import first_names

NAME = "ran.training"
# What frameworks call the kinds of devices.
_ON_CPU = ("-1",)
_CALLED = {"cuda": "gpu"}

# (who, what it used) of the processes of which that is known, and those of which it is not.
Shown = tuple[list[tuple[str, str]], list[str]]


def ran_training(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per training step that succeeded: `failed` if a process reports another device or precision than
    declared, `insufficient_data` when nothing shows what one of them used."""
    cluster = EnvironmentClass.of(context.run.environment).device if context.run else ""
    return [
        _judged(facts, step, _declared(facts, step, cluster))
        for step in training_steps(facts)
        if facts.step_status.get(step.id) is Status.PASS
    ]


def _declared(facts: Facts, step: Step, cluster: str) -> str:
    """The kind of device; '' if unknown. With the group -1, a file requests the CPU of any cluster."""
    groups = [variant.devices for variant in facts.plan.variants if variant.id == step.variant]
    on_cpu = bool(groups) and groups[0] == _ON_CPU
    return "cpu" if on_cpu else cluster if cluster in ("cpu", "gpu") else ""


def _judged(facts: Facts, step: Step, device: str) -> CheckResult:
    precision = next((variant.precision for variant in facts.plan.variants if variant.id == step.variant), "")
    wrong, unknown, shown = [], [], []
    for what, declared, (reported, silent) in (
        ("device", device, _devices(facts, step)),
        ("precision", precision, _precisions(facts, step)),
    ):
        if not declared:
            continue
        others = [f"{who} trained with {what} {real}" for who, real in reported if real != declared.lower()]
        if others:
            wrong.append(f"{first_names(others)}; declared: {declared}")
        elif silent or not reported:
            whose = f" of {first_names(silent)}" if reported else ""
            unknown.append(f"{what}{whose} (declared: {declared})")
        else:
            shown.append(f"{what} {declared}")
    values = {"device": device, "precision": precision, "wrong": wrong, "unknown": unknown}

    def result(status: Status, reason: str) -> CheckResult:
        return CheckResult(check=NAME, status=status, reason=reason, step=step.id, values=values)

    if wrong:
        return result(Status.FAILED, "; ".join(wrong))
    if unknown or not shown:
        return result(Status.INSUFFICIENT_DATA, f"{' and '.join(unknown) or 'device'} not reported")
    return result(Status.PASS, f"trained with {' and '.join(shown)}")


def _devices(facts: Facts, step: Step) -> Shown:
    """As reported by the processes. For others, GPU memory in use shows a GPU, and a node without one shows that
    it was none."""
    reported, silent = _split_reports(
        facts, step, {report.rank: _kind(report.device) for report in facts.ranks.get(step.id, ())}
    )
    without = {node.node for node in facts.node_facts if not node.gpus and "gpus" not in node.unfinished}
    used = {
        end.node: {rank for rank, size in end.peak_gpu_bytes.items() if size > 0}
        for end in records(facts, step.id)
    }
    dumb = []
    for node, rank in silent:
        alone = sum(other == node for other, _ in _places(step)) == 1
        ranks = used.get(node, set())
        # What belongs to no rank in particular is of the only one, where there is only one.
        if str(rank) in ranks or (alone and ranks):
            reported.append((node, rank, "gpu"))
        elif node in without and not ranks:
            reported.append((node, rank, "cpu"))
        else:
            dumb.append((node, rank))
    return _named(reported, dumb)


def _precisions(facts: Facts, step: Step) -> Shown:
    return _named(
        *_split_reports(
            facts, step, {report.rank: report.precision.lower() for report in facts.ranks.get(step.id, ())}
        )
    )


def _split_reports(
    facts: Facts, step: Step, reports: dict[int, str]
) -> tuple[list[tuple[str, int, str]], list[tuple[str, int]]]:
    """(node, rank, reported value) of the processes that reported one, and (node, rank) of the others."""
    nodes = {report.rank: report.node for report in facts.ranks.get(step.id, ())}
    reported = [(nodes[rank], rank, word) for rank, word in reports.items() if word]
    return reported, [(node, rank) for node, rank in _places(step) if not reports.get(rank)]


def _places(step: Step) -> list[tuple[str, int]]:
    """(node, rank) of all processes, as declared: as many on each node."""
    per_node = max(1, step.world_size // len(step.nodes))
    return [(node, at * per_node + number) for at, node in enumerate(step.nodes) for number in range(per_node)]


def _named(reported: list[tuple[str, int, str]], silent: list[tuple[str, int]]) -> Shown:
    def who(node: str, rank: int) -> str:
        return f"rank {rank}" + (f" on {node}" if node else "")

    return [(who(node, rank), word) for node, rank, word in sorted(reported, key=lambda entry: entry[1])], [
        who(node, rank) for node, rank in silent
    ]


def _kind(device: str) -> str:
    word = device.lower().partition(":")[0]
    return _CALLED.get(word, word)
