"""Did the training run as one process group of the declared size on the declared nodes?"""

from collections import defaultdict

from tipcflow.check.context import CheckContext
from tipcflow.check.select import first_names, iterations, records, training_steps
from tipcflow.domain import CheckResult, Facts, Status, Step

NAME = "ran.world_size"


def ran_world_size(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per training step: `failed` when a rank is missing, doubled, elsewhere or silent."""
    return [_judged(facts, step) for step in training_steps(facts)]


def _judged(facts: Facts, step: Step) -> CheckResult:
    status = facts.step_status.get(step.id)
    reports = facts.ranks.get(step.id, ())
    logged = {(node, rank) for node, rank in iterations(facts, step) if rank >= 0}
    values = {
        "declared": step.world_size,
        "nodes": list(step.nodes),
        "reported": [report.model_dump() for report in reports],
        "logged": sorted([node, rank] for node, rank in logged),
    }

    def result(answer: Status, reason: str) -> CheckResult:
        return CheckResult(check=NAME, status=answer, reason=reason, step=step.id, values=values)

    if status is not Status.PASS:
        return result(Status.INSUFFICIENT_DATA, f"the training has status {status or Status.BLOCKED}")
    seen = {(report.node, report.rank) for report in reports} or logged | _in_records(facts, step)
    problem = _wrong_reports(facts, step) or _wrong_launch(facts, step) or _wrong_places(step, seen)
    if problem:
        return result(Status.FAILED, problem)
    missing = sorted(set(range(step.world_size)) - {rank for _, rank in seen})
    if not reports and missing:
        return result(
            Status.INSUFFICIENT_DATA,
            f"no process reported its rank; no log or process of {_ranks(missing)} of {step.world_size} was found",
        )
    if missing:
        return result(Status.FAILED, f"{_ranks(missing)} of {step.world_size} never reported itself")
    silent = sorted(set(range(step.world_size)) - {rank for _, rank in logged})
    if silent and (reports or 0 in silent):
        return result(Status.FAILED, f"{_ranks(silent)} of {step.world_size} logged no iteration")
    how = "reported themselves" if reports else "are in the logs and process tables"
    nodes = f"on {first_names(list(step.nodes))}"
    return result(Status.PASS, f"{step.world_size} of {step.world_size} ranks {how}, {nodes}")


def _wrong_reports(facts: Facts, step: Step) -> str:
    for report in facts.ranks.get(step.id, ()):
        who = f"rank {report.rank}" + (f" on {report.node}" if report.node else "")
        if report.world_size != step.world_size:
            return f"{who} reported world size {report.world_size}; declared: {step.world_size}"
        if report.rank == 0 and None not in (report.seed, facts.plan.seed) and report.seed != facts.plan.seed:
            return f"{who} used seed {report.seed}; declared: {facts.plan.seed}"
    return ""


def _wrong_launch(facts: Facts, step: Step) -> str:
    """What launchers told their processes, where no process reports itself: trainings side by side have each a
    small world of their own, and logs with the names of one."""
    if facts.ranks.get(step.id):
        return ""
    for record in records(facts, step.id):
        if record.world_size not in (0, step.world_size):
            return f"the launcher on {record.node} set world size {record.world_size}; declared: {step.world_size}"
    return ""


def _wrong_places(step: Step, seen: set[tuple[str, int]]) -> str:
    """A rank on two nodes (two groups that trained apart), on a wrong node, or beyond the world."""
    places = defaultdict(set)
    for node, rank in seen:
        places[rank].add(node)
    per_node = step.world_size // len(step.nodes) if step.world_size % len(step.nodes) == 0 else 0
    for rank, nodes in sorted(places.items()):
        if len(nodes) > 1:
            return f"rank {rank} ran on {' and on '.join(sorted(nodes))}: the nodes did not train as one group"
        if rank >= step.world_size:
            return f"unexpected rank {rank}; declared world size: {step.world_size}"
        node = next(iter(nodes))
        if node and per_node and node != step.nodes[rank // per_node]:
            return f"rank {rank} ran on {node}; it belongs on {step.nodes[rank // per_node]}"
    return ""


def _in_records(facts: Facts, step: Step) -> set[tuple[str, int]]:
    """The ranks that the node runner saw among the step's processes."""
    return {
        (record.node, int(rank))
        for record in records(facts, step.id)
        for rank in record.peak_rss_bytes
        if rank.isdigit()
    }


def _ranks(ranks: list[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {first_names([str(rank) for rank in ranks], 8)}"
