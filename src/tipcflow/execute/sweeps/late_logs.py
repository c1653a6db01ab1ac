"""Logs of nodes that were lost during a run and respond after its end are fetched once."""

import contextlib
import time
from collections import defaultdict
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tipcflow.domain import InfraError, Node, TipcflowError
from tipcflow.domain.keys import MemberKey
from tipcflow.domain.numbers.units import counted
from tipcflow.domain.run.kept_files import StoringDocument
from tipcflow.domain.run_documents import CertificateDocument, ClusterDocument, LateLogs, LateLogsDocument
from tipcflow.execute.collect.kept_files import CERTIFICATE
from tipcflow.execute.collect.log_archive import compress_logs
from tipcflow.execute.node.listing import jobs_by_run
from tipcflow.execute.node.session import NodeSession
from tipcflow.execute.objects.object_store import object_store
from tipcflow.execute.run.context import TaskContext
from tipcflow.execute.sweeps.maintenance import OTHER_FOLDER_S, Upkeep, place_of
from tipcflow.execute.verdict.judge import (
    restore_certificate,
    store_certificate,
    why_unsigned,
    write_certificate,
)
from tipcflow.remote import housekeeping
from tipcflow.store.run.members import LostMember

AT_ONCE = 8
# The rest is left to the next sweep.
RUNS = 50
NODE_S = 600.0
# Longer than a process takes to write a certificate and its signature.
STORING_S = 600.0
# Files that cannot be fetched completely are not requested for ever.
TRIES = 3


@dataclass(frozen=True)
class _Place:
    """A node as its runs knew it, with their lost members there.

    Attributes:
        there: runs whose folders are on the node; busy: runs with jobs or processes there.
    """

    node: Node
    lost: tuple[LostMember, ...]
    there: frozenset[str] = frozenset()
    busy: frozenset[str] = frozenset()


def late_logs(upkeep: Upkeep, *, addresses: Collection[str] | None = None, run: str = "") -> str:
    """Fetch the logs of lost members of ended runs, store their metrics, and report each run.

    The attempt and the run keep their status. Nodes that do not respond, and jobs that are still running, are left
    to the next sweep. Certificates that a process did not write to the object store completely, for example
    because it ended in between, are written again.

    Args:
        addresses: only nodes with these addresses; None for all.
        run: only this run; '' for all.
    """
    places = _places(upkeep, addresses, run)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        reached = [place for place in pool.map(lambda place: _listed(upkeep, place), places) if place is not None]
        ended = {member.run for place in reached for member in place.lost if member.run not in place.busy}
        runs = sorted(ended)[:RUNS]
        results = list(pool.map(lambda place: _of_place(upkeep, place, runs), reached))
    logs_by_run: dict[str, list[LateLogs]] = defaultdict(list)
    for member, fetched in (pair for result in results for pair in result):
        logs_by_run[member.run].append(fetched)
    for name, logs in sorted(logs_by_run.items()):
        upkeep.report(f"run {name}: {'; '.join(entry.message for entry in logs)}")
        if any(entry.samples for entry in logs):
            _certify(upkeep, name)
    stored = _store_again(upkeep, run)
    samples = sum(entry.samples for logs in logs_by_run.values() for entry in logs)
    summary = f"{len(reached)} of {len(places)} lost nodes responded"
    summary += f": {samples} samples of {len(logs_by_run)} runs fetched late"
    return f"{summary}; {counted(stored, 'certificate')} stored again" if stored else summary


def _store_again(upkeep: Upkeep, only: str) -> int:
    """Write certificates that are not completely in the object store again; return their number."""
    if object_store() is None:
        return 0
    stored, until = 0, time.monotonic() + NODE_S
    documents = upkeep.store.documents.of_type(StoringDocument)
    for run, document in sorted(documents.items(), key=lambda item: item[1].since):
        known = upkeep.store.runs.get_or_none(run)
        is_ended = known is not None and known.status is not None
        if only not in ("", run) or not is_ended or document.since > upkeep.now - STORING_S:
            continue
        if time.monotonic() > until:
            break
        if problem := restore_certificate(upkeep.store, run, upkeep.home):
            upkeep.report(f"run {run}: {problem}")
        else:
            stored += 1
    return stored


def _places(upkeep: Upkeep, addresses: Collection[str] | None, run: str) -> list[_Place]:
    """Return the nodes whose logs are missing, as the runs' own clusters describe them."""
    nodes: dict[tuple[str, str, str], Node] = {}
    lost: dict[tuple[str, str, str], list[LostMember]] = defaultdict(list)
    for member in upkeep.store.members.lost(upkeep.now - OTHER_FOLDER_S):
        if run not in ("", member.run):
            continue
        documents = upkeep.store.documents.several(member.run, (ClusterDocument, LateLogsDocument))
        cluster, late = documents.get(ClusterDocument), documents.get(LateLogsDocument) or LateLogsDocument()
        entry = late.root.get(MemberKey(member.step, member.attempt, member.node))
        if cluster is None or (entry is not None and entry.done):
            continue
        if cluster.root.slurm is not None:
            continue  # its nodes are reachable within the allocation only
        node = cluster.root.node(member.node)
        if addresses is None or node.address in addresses:
            nodes[place_of(node)] = node
            lost[place_of(node)].append(member)
    return [_Place(nodes[place], tuple(members)) for place, members in sorted(lost.items())]


def _listed(upkeep: Upkeep, place: _Place) -> _Place | None:
    """Return the place with what is on the node; None if the node does not respond."""
    with contextlib.closing(NodeSession(place.node, upkeep.connect)) as session:
        try:
            text = session.call(housekeeping.list_runs(place.node), "list its run folders")
            there = frozenset(text.decode(errors="replace").splitlines())
            busy = jobs_by_run(session.list_ours()) if there else {}
        except InfraError:
            return None
    return _Place(place.node, place.lost, there, frozenset(busy))


def _of_place(upkeep: Upkeep, place: _Place, runs: Sequence[str]) -> list[tuple[LostMember, LateLogs]]:
    """Fetch the logs of one node, run after run, until its deadline."""
    deadline, results = time.monotonic() + NODE_S, []
    for member in place.lost:
        if member.run not in runs or member.run in place.busy:
            continue
        if time.monotonic() > deadline:
            break
        key = MemberKey(member.step, member.attempt, member.node)
        before = (upkeep.store.documents.get(member.run, LateLogsDocument) or LateLogsDocument()).root.get(key)
        tries = before.tries + 1 if before else 1
        if member.run in place.there:
            fetched = _fetched(upkeep, member, tries)
        else:
            message = f"the logs of {member.step} are no longer on node {member.node}"
            fetched = LateLogs(done=True, tries=tries, message=message)
        upkeep.store.documents.merge(member.run, LateLogsDocument, {key: fetched})
        results.append((member, fetched))
    return results


def _fetched(upkeep: Upkeep, member: LostMember, tries: int) -> LateLogs:
    context = TaskContext(member.run, upkeep.store, upkeep.home, upkeep.connect, upkeep.listen(member.run))
    try:
        step = context.plan.step(member.step)
        attempts = [entry.attempt for entry in upkeep.store.attempts.of(member.run) if entry.step == member.step]
        with context.nodes(*step.nodes) as nodes:
            for later in (number for number in sorted(attempts) if number > member.attempt):
                state = nodes[member.node].poll(context.spec(step, member.node, later)).get("state")
                if state != "absent":
                    why = f"attempt {later} of {member.step} has used the files of attempt {member.attempt} since"
                    return LateLogs(done=True, tries=tries, message=f"{why} on node {member.node}")
            members = context.members(step, member.attempt, nodes)
            samples, lost = context.closer.fetch_late(step, member.attempt, [members[member.node]], nodes)
    except (TipcflowError, ValueError, OSError) as error:  # ValueError: the run's samples were rolled up
        reason = error.message if isinstance(error, TipcflowError) else str(error)
        return LateLogs(done=tries >= TRIES, tries=tries, message=f"node {member.node}: {reason}")
    about = f"{samples} samples of {member.step}, attempt {member.attempt}, fetched late from node {member.node}"
    more = f" ({'; '.join(lost)})" if lost else ""
    return LateLogs(done=not lost or tries >= TRIES, tries=tries, samples=samples, message=about + more)


def _certify(upkeep: Upkeep, run: str) -> None:
    """Write the run's certificate again, with the hashes of the new files, if this machine wrote it.

    With an object store, any machine has all files of the run. A certificate that cannot be signed does not
    replace a signed one, which remains valid for the files that it lists.
    """
    is_ours = (upkeep.home / "runs" / run / CERTIFICATE).is_file()
    if not is_ours and (object_store() is None or upkeep.store.documents.get(run, CertificateDocument) is None):
        return
    if unsigned := why_unsigned(upkeep.store, run, upkeep.home):
        upkeep.report(f"run {run}: its certificate was not updated: {unsigned}")
        return
    try:
        write_certificate(upkeep.store, run, upkeep.home)
        compress_logs(upkeep.home / "runs" / run)
    except (TipcflowError, OSError) as error:
        upkeep.report(f"run {run}: its certificate was not updated: {error}")
        return
    if problem := store_certificate(upkeep.store, run, upkeep.home):
        upkeep.report(f"run {run}: {problem}")
