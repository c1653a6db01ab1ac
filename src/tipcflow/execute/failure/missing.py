"""Logs of several nodes -> the rank that the others waited for."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from tipcflow.execute.failure.diagnosis import LogDiagnosis


def mark_missing_rank(
    diagnoses: Mapping[str, LogDiagnosis], exited: Collection[str] = ()
) -> dict[str, LogDiagnosis]:
    """Return the diagnoses with the one rank that hangs marked, if the logs of all nodes together identify it.

    If ranks timed out while waiting, no process had died. The first rank that times out closes its connections,
    others then report its loss, and only the rank without any message remains as the cause. NCCL's watchdog is a
    thread of its own: if all ranks timed out, the cause is the rank whose collective operation precedes those of
    all others.

    Args:
        diagnoses: node -> diagnosis of its logs.
        exited: nodes whose part ended by itself: if none of their workers reports anything, none of them hangs.
    """
    marked = dict(diagnoses)
    own = any(
        diagnosis.trouble is not None and not diagnosis.trouble.is_collateral for diagnosis in diagnoses.values()
    )
    if (
        own
        or any(diagnosis.left is not None for diagnosis in diagnoses.values())
        or not any(diagnosis.waited for diagnosis in diagnoses.values())
    ):
        return marked
    silent_ranks = [
        (node, rank)
        for node, diagnosis in diagnoses.items()
        for rank in diagnosis.silent_ranks
        if diagnosis.trouble is not None or node not in exited
    ]
    # Of several ranks next to one that timed out, the first is named: it is a hang, and on that node.
    known = len(silent_ranks) == 1 or (
        len({node for node, _ in silent_ranks}) == 1 and diagnoses[silent_ranks[0][0]].trouble is not None
    )
    missing = silent_ranks[0] if known else None if silent_ranks else _last_in_collectives(diagnoses)
    if missing is None:
        return marked
    node, rank = missing
    marked = {name: replace(diagnosis, silent=-1, code=0) for name, diagnosis in diagnoses.items()}
    marked[node] = replace(marked[node], silent=rank, waited=True)
    return marked


def _last_in_collectives(diagnoses: Mapping[str, LogDiagnosis]) -> tuple[str, int] | None:
    """Return (node, rank) of the one rank that is behind all others in the operations of one group; None if
    operations of several groups timed out."""
    timed_out = [collective for diagnosis in diagnoses.values() for collective in diagnosis.collectives.values()]
    if any(collective.several for collective in timed_out):
        return None
    waiting = sorted(
        (collective.number, node, rank, collective.group)
        for node, diagnosis in diagnoses.items()
        for rank, collective in diagnosis.collectives.items()
    )
    if len(waiting) < 2 or len({group for *_, group in waiting}) > 1 or waiting[0][0] == waiting[1][0]:
        return None
    _, node, rank, _ = waiting[0]
    return node, rank
