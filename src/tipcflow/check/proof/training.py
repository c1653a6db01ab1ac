"""Did the training use the declared device type and precision?"""

from tipcflow.check.context import CheckContext
from tipcflow.check.select import records, training_steps
from tipcflow.domain import CheckResult, Facts, ProcessReport, Status, Step
from tipcflow.domain.numbers.environment import EnvironmentClass
from tipcflow.domain.numbers.measured import ValueKey
from tipcflow.domain.numbers.units import first_names

NAME = "ran.training"
# What frameworks call the kinds of devices.
_ON_CPU = ("-1",)
_CALLED = {"cuda": "gpu"}
_IN_HOST = " (trained parameters in host memory)"

# (who, what it used) of the processes of which that is known, and those of which it is not.
Shown = tuple[list[tuple[str, str]], list[str]]


def ran_training(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per training step that succeeded: `failed` if a process used another device or precision than
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
    devices, seen_from_outside = _devices(facts, step)
    for what, declared, (reported, silent) in (
        ("device", device, devices),
        ("precision", precision, _precisions(facts, step)),
    ):
        if not declared:
            continue
        others = [f"{who} trained with {what} {real}" for who, real in reported if real != declared.lower()]
        if others:
            wrong.append(f"{first_names(others)}; declared: {declared}")
        elif silent or not reported:
            whose = f" of {first_names(silent)}" if reported or _IN_HOST in "".join(silent) else ""
            unknown.append(f"{what}{whose} (declared: {declared})")
        else:
            shown.append(f"{what} {declared}")
    values: dict[str, object] = {"device": device, "precision": precision, "wrong": wrong, "unknown": unknown}
    if seen_from_outside:
        values[ValueKey.SEEN_FROM_OUTSIDE] = True

    def result(status: Status, reason: str) -> CheckResult:
        return CheckResult(check=NAME, status=status, reason=reason, step=step.id, values=values)

    if wrong:
        return result(Status.FAILED, "; ".join(wrong))
    if unknown or not shown:
        return result(Status.INSUFFICIENT_DATA, f"{' and '.join(unknown) or 'device'} not reported")
    return result(Status.PASS, f"trained with {' and '.join(shown)}")


def _devices(facts: Facts, step: Step) -> tuple[Shown, bool]:
    """What each process used, and whether samples of GPU memory are the only proof of one.

    A process that prints a GPU and never used one counts as both: its options may have requested the GPU. For a
    silent one the framework's own state decides; without it, GPU memory in use shows a GPU, and a node without one
    shows that it was none."""
    probed = _probed(facts, step)
    reported, silent = _split_reports(
        facts, step, {report.rank: _kind(report.device) for report in facts.ranks.get(step.id, ())}
    )
    reported += [
        (node, rank, "cpu") for node, rank, kind in reported if kind != "cpu" and probed.get((node, rank)) == "cpu"
    ]
    without = {node.node for node in facts.node_facts if not node.gpus and "gpus" not in node.unfinished}
    used = {
        end.node: {rank for rank, size in end.peak_gpu_bytes.items() if size > 0}
        for end in records(facts, step.id)
    }
    dumb, sampled = [], False
    for node, rank in silent:
        alone = sum(other == node for other, _ in _places(step)) == 1
        ranks = used.get(node, set())
        kind = probed.get((node, rank), "")
        if kind in ("cpu", "gpu"):
            reported.append((node, rank, kind))
        # What belongs to no rank in particular is of the only one, where there is only one.
        elif not kind and (str(rank) in ranks or (alone and ranks)):
            reported.append((node, rank, "gpu"))
            sampled = True
        elif node in without and not ranks:
            reported.append((node, rank, "cpu"))
        else:
            dumb.append((node, rank))
    shown, unknown = _named(reported, dumb)
    in_host = [probed.get(place) == "host" for place in dumb]
    return (shown, [who + _IN_HOST * there for who, there in zip(unknown, in_host, strict=True)]), sampled


def _probed(facts: Facts, step: Step) -> dict[tuple[str, int], str]:
    """(node, rank) -> the kind of device by the framework probe: `cpu` if the process never used a GPU, `gpu` if
    the trained parameters were in its memory, `host` if they were not although the process used one."""
    kinds: dict[tuple[str, int], set[str]] = {}
    for record in records(facts, step.id):
        # A launcher may set no rank in the environment.
        here = [str(rank) for node, rank in _places(step) if node == record.node]
        for report in record.processes:
            rank = report.rank or (here[0] if len(here) == 1 else "")
            if report.steps and rank.isdecimal():
                kinds.setdefault((record.node, int(rank)), set()).add(_kind_of_steps(report))
    # A rank may have helper processes that train something small on the CPU.
    return {
        place: next(kind for kind in ("gpu", "", "host", "cpu") if kind in processes)
        for place, processes in kinds.items()
    }


def _kind_of_steps(report: ProcessReport) -> str:
    """'' if unknown: another kind of device, or a report of an older runner."""
    kind, place = _kind(report.device), report.placed.lower()
    if kind == "gpu" and ("gpu" in place or "cuda" in place):
        return "gpu"
    if kind == "gpu":
        return "host" if "cpu" in place else ""
    return "cpu" if kind == "cpu" and (not place or "cpu" in place) else ""


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
