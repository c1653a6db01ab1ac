"""Did the training run as one process group of the declared size on the declared nodes?"""

from collections import defaultdict

from tipcflow.check.context import CheckContext
from tipcflow.check.evidence.expected import node_of
from tipcflow.check.select import iterations, records, training_steps
from tipcflow.domain import CheckResult, ExitRecord, Facts, LegKey, Status, Step, without_repeat
from tipcflow.domain.numbers.units import duration, first_names, plural, rough

NAME = "ran.world_size"
# The node runner samples processes each second: it does not miss a rank that runs longer than this, seconds.
_OBSERVED_S = 3.0
# A job as short as that which ended long before its peers took no part in their training: they lasted more than
# _TIMES as long, and more than _GAP_S seconds longer.
_TIMES, _GAP_S = 4.0, 5.0
_MEMORY = "peak_rss"


def ran_world_size(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per training step: `failed` when a rank is missing, doubled, elsewhere or silent; `unconfirmed`
    for a rank that was not seen now and was in each of the last accepted runs."""
    return [_judged(facts, step, context) for step in training_steps(facts)]


def _judged(facts: Facts, step: Step, context: CheckContext) -> CheckResult:
    status = facts.step_status.get(step.id)
    reports = facts.ranks.get(step.id, ())
    logged = {(node, rank) for node, rank in iterations(facts, step) if rank >= 0}
    values = {
        "declared": step.world_size,
        "nodes": list(step.nodes),
        "reported": [report.model_dump() for report in reports],
        "logged": sorted([node, rank] for node, rank in logged),
    }

    def result(status: Status, reason: str) -> CheckResult:
        return CheckResult(check=NAME, status=status, reason=reason, step=step.id, values=values)

    if status is not Status.PASS:
        return result(Status.INSUFFICIENT_DATA, f"the training has status {status or Status.BLOCKED}")
    seen = {(report.node, report.rank) for report in reports} or logged | _in_records(facts, step)
    problem = _wrong_reports(facts, step) or _wrong_launch(facts, step) or _wrong_places(step, seen)
    if problem:
        return result(Status.FAILED, problem)
    missing = sorted(set(range(step.world_size)) - {rank for _, rank in seen})
    if not reports and missing:
        return result(*_not_seen(facts, step, missing, context))
    if missing:
        return result(Status.FAILED, f"{_ranks(missing)} of {step.world_size} never reported itself")
    silent = sorted(set(range(step.world_size)) - {rank for _, rank in logged})
    if silent and (reports or 0 in silent):
        return result(Status.FAILED, f"{_ranks(silent)} of {step.world_size} logged no iteration")
    how = "reported themselves" if reports else "are in the logs and process tables"
    nodes = f"on {first_names(list(step.nodes))}"
    return result(Status.PASS, f"{step.world_size} of {step.world_size} ranks {how}, {nodes}")


def _not_seen(facts: Facts, step: Step, missing: list[int], context: CheckContext) -> tuple[Status, str]:
    """(status, reason) of ranks without a log or process, in a suite whose processes do not report themselves."""
    none = f"no log or process of {_ranks(missing)} of {step.world_size} was found"
    ended = {record.node: record for record in records(facts, step.id)}
    servers = any(record.observed and record.observed.servers for record in ended.values())
    for rank in missing if len(step.nodes) > 1 and not servers else ():
        node = node_of(step, rank)
        if node in ended and (
            why := _idle(ended[node], [other for other in ended.values() if other.node != node])
        ):
            return Status.FAILED, f"{none}; {why}"
    usual = [rank for rank in missing if _usually_seen(step, rank, context)]
    if usual:
        runs = context.policy.min_history
        return Status.UNCONFIRMED, f"{none}; {_ranks(usual)} was seen in each of the last {runs} accepted runs"
    return Status.INSUFFICIENT_DATA, f"no process reported its rank; {none}"


def _idle(record: ExitRecord, peers: list[ExitRecord]) -> str:
    """Why a node without the ranks that belong there did not train, '' if they may have been overlooked.

    A job of a few seconds may end between two samples, and some launchers set no ranks. Neither holds if a rank of
    a peer was seen for long, and this node's processes were too; or if the job ended long before its peers.
    """
    probed = record.processes
    if not peers or any(each.rank or each.steps or each.static_runs or each.initialized for each in probed):
        return ""
    longest = max(peers, key=lambda peer: peer.duration_s)
    lasted, other = record.duration_s, longest.duration_s
    if lasted <= _OBSERVED_S:
        if _TIMES * lasted >= other or lasted + _GAP_S >= other:
            return ""
        return (
            f"the job on {record.node} ended after {duration(lasted)}, that on {longest.node} ran {rough(other)}"
        )
    ranks = [rank.seconds for peer in peers if peer.observed for rank in peer.observed.ranks]
    is_observed = record.observed is not None and "total" in record.peak_rss_bytes
    if not is_observed or max(ranks, default=0.0) <= _OBSERVED_S:
        return ""
    return f"no process on {record.node} had this rank within {rough(lasted)}"


def _usually_seen(step: Step, rank: int, context: CheckContext) -> bool:
    """Whether the node runner measured the rank's memory in each of the last accepted runs."""
    part = LegKey(without_repeat(step.id))
    last = [past for past in context.history if past.counts_for(part)][-context.policy.min_history :]
    return len(last) == context.policy.min_history and all(
        any(
            (key.step, key.plain_metric, key.rank) == (without_repeat(step.id), _MEMORY, rank)
            for key in past.medians
        )
        for past in last
    )


def _wrong_reports(facts: Facts, step: Step) -> str:
    for report in facts.ranks.get(step.id, ()):
        who = f"rank {report.rank}" + (f" on {report.node}" if report.node else "")
        if report.world_size != step.world_size:
            return f"{who} reported world size {report.world_size}; declared: {step.world_size}"
        if report.rank == 0 and None not in (report.seed, facts.plan.seed) and report.seed != facts.plan.seed:
            return f"{who} used seed {report.seed}; declared: {facts.plan.seed}"
    return ""


def _wrong_launch(facts: Facts, step: Step) -> str:
    """The world size that launchers passed to their processes, if no process reports its own: separate trainings,
    each with a small world, write logs with the same names as one training."""
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
            return f"rank {rank} ran on {node}; expected on {step.nodes[rank // per_node]}"
    return ""


def _in_records(facts: Facts, step: Step) -> set[tuple[str, int]]:
    """The ranks that the node runner saw among the step's processes."""
    ended = records(facts, step.id)
    sampled = {(record.node, int(rank)) for record in ended for rank in record.peak_rss_bytes if rank.isdigit()}
    seen = {(record.node, observed.ranks) for record in ended if (observed := record.observed)}
    return sampled | {(node, member.rank) for node, ranks in seen for member in ranks}


def _ranks(ranks: list[int]) -> str:
    return f"{plural(len(ranks), 'rank')} {first_names([str(rank) for rank in ranks], 8)}"
