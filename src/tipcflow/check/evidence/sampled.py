"""Metrics of the node runner that earlier runs had and this run lacks."""

from collections.abc import Collection

from tipcflow.check.evidence.expected import node_of
from tipcflow.check.select import records
from tipcflow.domain import EvidenceKey, Expectation, Facts, MetricKey, Status, Step, plain_metric
from tipcflow.domain.numbers.units import duration, first_names, plural

# The node runner samples processes twice a second, and reads the resource usage of those that ended.
_MEMORY = {"peak_rss": 2.0, "peak_gpu": 10.0}
# A launcher starts its ranks after some seconds. nvidia-smi prints the memory of processes once a second, and a
# process imports its framework before it uses a GPU: both may be missing in a job shorter than this, seconds.
_RANKS_S = 10.0


def unmeasured(
    facts: Facts, step: Step, piece: Expectation, evidence: Collection[EvidenceKey]
) -> tuple[Status, str] | None:
    """Return (status, what is missing) of an expected metric of the node runner; None if it is not missing.

    `infra_failure`, because tipcflow lost the value; `insufficient_data` for the memory of a job that may have
    ended before it was sampled.
    """
    key = MetricKey(piece.step, piece.leg, piece.metric)
    if piece.key.without_repeat() in evidence or _is_replaced(key, piece, evidence):
        return None
    name, rank = key.plain_metric, key.rank
    nodes = list(step.nodes) if rank is None else [node_of(step, rank)]
    own = [record for record in records(facts, step.id, piece.leg) if rank is None or record.node in nodes]
    if piece.leg and own:
        nodes = [record.node for record in own]
    of_rank = "" if rank is None else f" of rank {rank}"
    what = f"{name}{of_rank} on {plural(len(nodes), 'node')} {first_names(nodes)} was not measured"
    longest = max((record.duration_s for record in own), default=None)
    least = 0.0 if name not in _MEMORY else max(_MEMORY[name], 0.0 if rank is None else _RANKS_S)
    if longest is not None and longest < least:
        return (
            Status.INSUFFICIENT_DATA,
            f"{what}: the job ran {duration(longest)}; a sample is certain after {least:g} s",
        )
    return Status.INFRA_FAILURE, f"{what}; {piece.because}"


def _is_replaced(key: MetricKey, piece: Expectation, evidence: Collection[EvidenceKey]) -> bool:
    """Whether another value is compared instead: values of ranks for that of all processes, or the other way round
    if no process has a rank, because a launcher was introduced or removed."""
    place = piece.key.without_repeat()
    others = [
        key.of(other.what)
        for other in evidence
        if (other.kind, other.step, other.leg) == (place.kind, place.step, place.leg)
        and plain_metric(other.what) == key.plain_metric
    ]
    if key.rank is None:
        return bool(others)
    return bool(others) and all(other.rank is None for other in others)
