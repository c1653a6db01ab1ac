"""Diagnose a node's part of a step from its logs: the failing process, and whether it caused the failure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tipcflow.domain import RankEnd, UnmetNeed
from tipcflow.domain.masking import mask
from tipcflow.domain.run.failure import OF_NEED
from tipcflow.parse import error_excerpt, parse_launch
from tipcflow.parse.failures.collectives import Collective, timed_out_collective
from tipcflow.parse.failures.excerpt import ends_with_message
from tipcflow.parse.failures.failure import LogFailure, find_failure

_LINE_LIMIT = 300


@dataclass(frozen=True)
class LogDiagnosis:
    """The diagnosis of one node's logs.

    Attributes:
        text: the end of the most informative log, for an excerpt.
        rank: global rank of that log; -1 for the output of the step's command.
        trouble: the recognized failure; None if there is none.
        code: how a worker ended according to the launcher, negative for a signal; 0 if not reported.
        silent: failing worker of this node whose log names no cause, while the others report a missing peer; -1 if
            there is none.
        left: how that worker ended if it was the first to end on this node; None if it was running.
        silent_ranks: workers of this node without a message: while others report a missing peer, or all of a node
            of which none has ended, as far as known.
        waited: whether another worker reports a timeout while waiting: in that case no process had died.
        collectives: global rank -> the first collective operation that timed out on it.
        servers: rank of a parameter server -> end of its log.
    """

    text: str = ""
    rank: int = -1
    trouble: LogFailure | None = None
    code: int = 0
    silent: int = -1
    left: RankEnd | None = None
    silent_ranks: tuple[int, ...] = ()
    waited: bool = False
    collectives: Mapping[int, Collective] = field(default_factory=dict)
    servers: Mapping[int, str] = field(default_factory=dict)

    @property
    def is_collateral(self) -> bool:
        """Whether the log only reports the loss of a peer."""
        return self.trouble is not None and self.trouble.is_collateral and self.silent < 0


def diagnose_logs(
    output: str,
    workers: Mapping[int, str],
    first: int = 0,
    ends: Sequence[RankEnd] = (),
    unmet: UnmetNeed | None = None,
) -> LogDiagnosis:
    """Diagnose the end of a command's output and of its workers' logs.

    The launcher reports the worker whose end it noticed first, which is often a peer of the failing one: a worker
        that names a cause of its own takes precedence.

    Args:
        workers: global rank -> end of that worker's log.
        first: the lowest rank on this node.
        ends: workers that ended before the runner ended the rest, in order.
        unmet: what the runner could not provide as the command; it prints the reason last.
    """
    if unmet is not None:
        reason = mask(output.strip().rpartition("\n")[2])[:_LINE_LIMIT]
        return LogDiagnosis(output, -1, LogFailure(failure_class=OF_NEED[unmet], log_line=reason))
    launch = parse_launch(output)
    named = launch.log.rpartition("workerlog.")[2] if launch else ""
    root_cause = first + int(named) if named.isdigit() else -1
    code = launch.code if launch else 0
    troubles = {rank: find_failure(text) for rank, text in sorted(workers.items())}
    own = [rank for rank, trouble in troubles.items() if trouble is not None and not trouble.is_collateral]
    if own:
        rank = root_cause if root_cause in own else own[0]
        return LogDiagnosis(workers[rank], rank, troubles[rank], code if rank == root_cause else 0)
    whole = find_failure(output)
    if whole is not None and not whole.is_collateral:
        return LogDiagnosis(output, -1, whole, code)
    if any(troubles.values()):
        collateral = _among_collateral_failures(workers, troubles, root_cause, code, ends)
        waiting = {rank: timed_out_collective(text) for rank, text in sorted(workers.items())}
        return replace(collateral, collectives={rank: known for rank, known in waiting.items() if known})
    if root_cause not in workers and not error_excerpt(output):
        # A launcher whose workers all ended between two of its polls may name none of them.
        root_cause = _unnamed(workers, ends)
    silent_ranks = () if launch or ends or whole else tuple(sorted(workers))
    if root_cause in workers:
        return LogDiagnosis(workers[root_cause], root_cause, whole, code, silent_ranks=silent_ranks)
    return LogDiagnosis(output, -1, whole, code, silent_ranks=silent_ranks)


def _unnamed(workers: Mapping[int, str], ends: Sequence[RankEnd]) -> int:
    """Return the rank that failed although the launcher names none: the first that ended with an exit code other
    than 0 or by a signal, else the first whose log does not end with progress of the training; -1 if neither."""
    bad = [end.rank for end in ends if end.exit_code or end.signal]
    bad += [rank for rank, text in sorted(workers.items()) if ends_with_message(text)]
    return next((rank for rank in bad if rank in workers), -1)


def _among_collateral_failures(
    workers: Mapping[int, str],
    troubles: Mapping[int, LogFailure | None],
    root_cause: int,
    code: int,
    ends: Sequence[RankEnd],
) -> LogDiagnosis:
    """Find out whether the peer that some workers miss is on this node, and how it ended.

    The kernel's record of the first end precedes the launcher's, which reports the end it noticed first.
    """
    reporting = {rank: trouble for rank, trouble in troubles.items() if trouble is not None}
    named_peers = {trouble.peer for trouble in reporting.values()} - {-1}
    waited = any(trouble.waited for trouble in reporting.values())
    rank = next((rank for rank, trouble in reporting.items() if trouble.waited), next(iter(reporting)))
    silent_ranks = tuple(rank for rank, trouble in troubles.items() if trouble is None)
    collateral = LogDiagnosis(workers[rank], rank, reporting[rank], silent_ranks=silent_ranks, waited=waited)
    if not silent_ranks:
        return collateral
    if ends and ends[0].rank in silent_ranks:
        first = ends[0]
        unknown = first.exit_code is None and first.signal is None
        return replace(
            collateral, silent=first.rank, left=first, code=code if unknown and first.rank == root_cause else 0
        )
    if not ends and root_cause in silent_ranks:
        return replace(collateral, silent=root_cause, code=code)
    if ends and not waited:
        return collateral  # all were running when a neighbor timed out: the missing rank is on another node
    # After a timeout, the logs of all nodes show which rank is missing (mark_missing_rank).
    suspects = [rank for rank in silent_ranks if rank in named_peers] or (
        [] if named_peers or waited else list(silent_ranks)
    )
    return replace(collateral, silent=suspects[0]) if suspects else collateral
