"""Did the ranks train as one group, by what the node runner and the framework probe observed?"""

from dataclasses import dataclass

from tipcflow.check.context import CheckContext
from tipcflow.check.select import records, training_steps
from tipcflow.domain import CheckResult, ExitRecord, Facts, ObservedRank, ProcessReport, Status, Step
from tipcflow.domain.numbers.measured import ValueKey
from tipcflow.domain.numbers.units import first_names, plural, rough

NAME = "ran.group"
# A rank without any connection left early if a peer lived and computed more than _TIMES as long, and more than
# _GAP_S seconds longer.
_TIMES = 2.0
_GAP_S = 5.0
# Minimum observation of a node after its framework was loaded; a shorter one may miss its connections, seconds.
_OBSERVED_S = 2.0


@dataclass(frozen=True)
class _Rank:
    node: str
    seen: ObservedRank

    def __str__(self) -> str:
        return f"rank {self.seen.rank} on {self.node}"

    @property
    def alone(self) -> bool:
        """Whether it was seen without any connection."""
        return not (self.seen.remote or self.seen.local or self.seen.hidden)


def ran_group(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per training of several ranks that passed: `failed` for ranks that left early or a node that
    trained apart; `insufficient_data` when the observation decides nothing."""
    return [
        _judged(facts, step)
        for step in training_steps(facts)
        if step.world_size > 1 and facts.step_status.get(step.id) is Status.PASS
    ]


def _judged(facts: Facts, step: Step) -> CheckResult:
    ended = records(facts, step.id)
    ranks = sorted(
        (_Rank(record.node, rank) for record in ended if record.observed for rank in record.observed.ranks),
        key=lambda member: member.seen.rank,
    )

    def result(status: Status, reason: str, **values: object) -> CheckResult:
        values["observed"] = [{"node": member.node, **member.seen.model_dump()} for member in ranks]
        return CheckResult(check=NAME, status=status, reason=reason, step=step.id, values=values)

    reports = _training_reports(ended)
    unknown = _undecidable(ended, ranks, step)
    servers = bool(ranks) and (step.servers > 0 or _uses_servers(ended))
    if not servers and (wrong := _wrong_groups(reports, ranks, step)):
        return result(Status.FAILED, wrong)
    if not servers and len(reports) == step.world_size and all(report.initialized for report in reports.values()):
        backend = next(iter(reports.values())).backend
        return result(Status.PASS, f"{len(reports)} of {step.world_size} ranks joined one group over {backend}")
    if unknown:
        return result(Status.INSUFFICIENT_DATA, f"{unknown}; not proven that the ranks trained together")
    problem = _left_early(ranks) or _apart(ended, ranks, step)
    if problem:
        return result(Status.FAILED, problem)
    if step.servers and len(step.nodes) == 1 and not any(member.alone for member in ranks):
        reason = f"{step.world_size} of {step.world_size} ranks held connections with the parameter server"
        return result(Status.PASS, reason, **{ValueKey.SEEN_FROM_OUTSIDE: True})
    missing = [
        node for node in step.nodes if not any(member.seen.peers for member in ranks if member.node == node)
    ]
    if len(step.nodes) > 1 and not missing:
        peers = "other nodes" if step.servers else "each other"
        reason = f"ranks on {first_names(list(step.nodes))} held connections with {peers}"
        return result(Status.PASS, reason, **{ValueKey.SEEN_FROM_OUTSIDE: True})
    where = f"no connection of {first_names(missing)} with another node observed" if missing else "one node"
    return result(Status.INSUFFICIENT_DATA, f"{where}; not proven that the ranks trained together")


def _training_reports(ended: tuple[ExitRecord, ...]) -> dict[int, ProcessReport]:
    """The probe's reports of the ranks that trained."""
    reports: dict[int, ProcessReport] = {}
    for report in (report for record in ended for report in record.processes):
        if report.rank and (report.initialized or report.steps):
            reports.setdefault(int(report.rank), report)
    return reports


def _wrong_groups(reports: dict[int, ProcessReport], ranks: list[_Rank], step: Step) -> str:
    """A rank that joined a group of another size, or none, although it trained. Whatever else may connect ranks
    (MPI, Horovod) is seen as a connection."""
    connected = {
        member.seen.rank for member in ranks if member.seen.remote or member.seen.local or member.seen.hidden
    }
    for rank, report in sorted(reports.items()):
        if report.initialized and report.world_size != step.world_size:
            return f"rank {rank} joined a group of {report.world_size}; {step.world_size} were declared"
    alone = [
        rank
        for rank, report in sorted(reports.items())
        if rank not in connected
        and not (report.initialized or report.parallel or report.collectives or report.static_runs)
    ]
    observed = {member.seen.rank for member in ranks}
    if not alone or not observed.issuperset(alone):
        return ""
    steps = max(reports[rank].steps for rank in alone)
    who = f"{plural(len(alone), 'rank')} {first_names([*map(str, alone)], 8)}"
    return f"{who} trained without a process group: {steps} steps, no connections"


def _uses_servers(ended: tuple[ExitRecord, ...]) -> bool:
    return any(record.observed and record.observed.servers for record in ended)


def _undecidable(ended: tuple[ExitRecord, ...], ranks: list[_Rank], step: Step) -> str:
    """Why the observation decides nothing, '' if it does."""
    if not ranks:
        return "no process with a rank was observed"
    if _uses_servers(ended) and not step.servers:
        return "training uses parameter servers"
    missing = sorted(set(range(step.world_size)) - {member.seen.rank for member in ranks})
    if missing:
        word = plural(len(missing), "rank")
        return f"{word} {first_names([*map(str, missing)], 8)}: no process observed"
    if not any(member.seen.framework for member in ranks):
        return "no process loaded Paddle or PyTorch"
    hidden = [str(member) for member in ranks if member.seen.hidden]
    return f"connections of {first_names(hidden)} are hidden" if hidden else ""


def _left_early(ranks: list[_Rank]) -> str:
    """Ranks that lived far shorter than another one and had no connection with anything. Rank 0 alone may continue
    (evaluation, weights), but then the others had connections."""
    longest = max((member for member in ranks if member.seen.framework), key=lambda member: member.seen.seconds)
    early = [
        member
        for member in ranks
        if member.alone
        and member.seen.seconds * _TIMES < longest.seen.seconds
        and member.seen.seconds + _GAP_S < longest.seen.seconds
        and member.seen.cpu_s * _TIMES < longest.seen.cpu_s
    ]
    if not early:
        return ""
    first = early[0]
    more = f" (and {len(early) - 1} more)" if len(early) > 1 else ""
    return (
        f"{first}{more} exited after {rough(first.seen.seconds)} without connections; "
        f"{longest} ran {rough(longest.seen.seconds)}"
    )


def _apart(ended: tuple[ExitRecord, ...], ranks: list[_Rank], step: Step) -> str:
    """A node whose ranks never had a connection with another machine, although a framework was loaded."""
    if len(step.nodes) < 2:
        return ""
    closed = any(record.observed.closed for record in ended if record.observed)
    for node in () if closed else step.nodes:
        processes = [member.seen for member in ranks if member.node == node]
        if (
            any(process.remote for process in processes)
            or max((process.framework_s for process in processes), default=0.0) < _OBSERVED_S
        ):
            continue
        long = max(process.seconds for process in processes)
        return f"ranks on node {node} trained separately: no connection with another node in {rough(long)}"
    return ""
