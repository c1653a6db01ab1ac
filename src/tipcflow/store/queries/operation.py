"""Numbers of a deployment for its monitoring: runs, the queue, leases, nodes, deliveries."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Text, func, select, type_coerce

from tipcflow.domain import FailureClass
from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.run_documents import ClusterDocument, FailuresDocument
from tipcflow.store.base import Part, among, clock
from tipcflow.store.leases.rows import Lease, all_leases, waiting_since
from tipcflow.store.schema import alerts, attempts, documents, environments, node_histories, outbox, runs

# Attempts of which a scrape reads the records of all nodes.
_NEWEST = 100
# (cluster, name of a node): clusters may name their nodes alike.
NodeKey = tuple[str, str]


@dataclass(frozen=True)
class NodeState:
    """What a node reported at the start of the newest run that reached it; None: it did not report that in time.

    Attributes:
        at: start of the run's first step, or of its end without one, seconds since the epoch.
        disk_free_bytes: on the disk of its workspace.
        clock_offset_s: its clock minus the controller's.
        missing_gpus: slots of the cluster file without a GPU; 0 for a node whose slots are CPU processes.
    """

    at: float
    disk_free_bytes: int | None = None
    clock_offset_s: float = 0.0
    missing_gpus: int | None = None


@dataclass(frozen=True)
class Operation:
    """Numbers at one time. Runs, latencies and lost steps are those of runs that were created since `since`.

    A node is (cluster, name), because clusters may name their nodes alike.

    Attributes:
        at: time by the database's clock, seconds since the epoch.
        runs: number of ended runs by status.
        unfinished: number of runs without a status, of any age.
        last_verdict: end of the newest ended run, seconds since the epoch; 0 without one.
        queued: number of runs that wait for slots, or for an allocation by Slurm; `oldest_queued_s` is the longest
            wait, 0 without one.
        leases: (cluster, node, whether the lease has expired) -> number of slots.
        node_runs: (cluster, node, status) -> number of ended runs.
        node_lost: node -> number of steps that ended because the node was lost.
        node_last_loss: node -> end of the newest of these steps, seconds since the epoch.
        node_last: node -> end of its newest finished run, seconds since the epoch.
        latencies: trigger -> seconds from the creation of a run to its status, sorted.
        ingest_lags: seconds from the end of an attempt's last job to its stored results, sorted; of the newest
            attempts. The first time is of the node's clock.
        node_states: node -> its newest state.
        slowdowns: node -> by which share its probes are slower than before, 0 if they are not; as maintenance
            found it last.
        drained: the drained nodes, as maintenance found them last.
        alerts: state -> number of alerts that were opened since `since`.
        deliveries: number of unhandled webhook deliveries; `oldest_delivery_s` is the age of the oldest, or 0.
    """

    at: float
    runs: Mapping[str, int] = field(default_factory=dict)
    unfinished: int = 0
    last_verdict: float = 0.0
    queued: int = 0
    oldest_queued_s: float = 0.0
    leases: Mapping[tuple[str, str, bool], int] = field(default_factory=dict)
    node_runs: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    node_lost: Mapping[NodeKey, int] = field(default_factory=dict)
    node_last_loss: Mapping[NodeKey, float] = field(default_factory=dict)
    node_last: Mapping[NodeKey, float] = field(default_factory=dict)
    latencies: Mapping[str, list[float]] = field(default_factory=dict)
    ingest_lags: Sequence[float] = ()
    node_states: Mapping[NodeKey, NodeState] = field(default_factory=dict)
    slowdowns: Mapping[NodeKey, float] = field(default_factory=dict)
    drained: Sequence[NodeKey] = ()
    alerts: Mapping[str, int] = field(default_factory=dict)
    deliveries: int = 0
    oldest_delivery_s: float = 0.0


class OperationQueries(Part):
    """Read-only queries; their cost depends on the number of runs since a time, not on the number of samples."""

    def numbers(self, window_s: float) -> Operation:
        """Return the numbers of one snapshot.

        Args:
            window_s: age of the oldest run that counts, seconds.
        """
        with self._read() as connection:
            at = clock(connection)
            waits = [at - since for since in waiting_since(connection, at).values()]
            unfinished = select(func.count()).select_from(runs).where(runs.c.status.is_(None))
            pending = outbox.c.done_at.is_(None)
            deliveries, oldest = connection.execute(
                select(func.count(), func.min(outbox.c.received_at)).where(pending)
            ).one()
            ended = _ended(connection, at - window_s)
            held = all_leases(connection)
            names = _names(connection, held)
            losses = _losses(connection, at - window_s)
            report = _newest_report(connection)
            return Operation(
                at=at,
                unfinished=int(connection.execute(unfinished).scalar_one()),
                queued=len(waits),
                oldest_queued_s=max(waits, default=0.0),
                leases=Counter((*names[lease.run, lease.node], not lease.live(at)) for lease in held),
                node_lost=Counter(node for node, _ in losses),
                node_last_loss=_newest(losses),
                ingest_lags=_ingest_lags(connection, at - window_s),
                node_states=_node_states(connection, at - window_s),
                slowdowns=_slowdowns(report),
                drained=sorted((str(each["cluster"]), str(each["node"])) for each in report.get("drained", [])),
                alerts=_alerts(connection, at - window_s),
                deliveries=int(deliveries),
                oldest_delivery_s=max(0.0, at - oldest) if oldest is not None else 0.0,
                runs=ended.statuses,
                last_verdict=ended.last,
                node_runs=ended.of_nodes,
                node_last=ended.node_last,
                latencies=ended.latencies,
            )


def _names(connection: Connection, leases: Iterable[Lease]) -> dict[tuple[str, str], NodeKey]:
    """Return (run, address) -> the node of the run's cluster, by its address if the name is unknown.

    Runs of a cluster name its nodes alike, so that in general one document per cluster is read.
    """
    held: dict[str, set[str]] = defaultdict(set)
    for lease in leases:
        held[lease.run].add(lease.node)
    query = select(runs.c.id, runs.c.cluster).where(among(connection, runs.c.id, held))
    newest = connection.execute(query.order_by(runs.c.created_at.desc()))
    clusters = {row.id: row.cluster for row in newest}
    known: dict[tuple[str, str], str] = {}
    for run, cluster in clusters.items():
        if any((cluster, address) not in known for address in held[run]):
            for address, name in _addresses(connection, run):
                known.setdefault((cluster, address), name)
    return {
        (run, address): (cluster, known.get((cluster, address), address))
        for run, cluster in clusters.items()
        for address in held[run]
    }


def _addresses(connection: Connection, run: str) -> list[tuple[str, str]]:
    """Return (address, name) of each node of a run's cluster."""
    nodes = _nodes_of(connection, [run]).get(run, [])
    return [(str(node.get("address", "")), str(node.get("name", ""))) for node in nodes]


def _nodes_of(connection: Connection, of: Iterable[str]) -> dict[str, list[Mapping[str, Any]]]:
    """Return run -> nodes of its cluster; not validated, because a cluster may be large."""
    query = select(documents.c.run, documents.c.body).where(among(connection, documents.c.run, of))
    rows = connection.execute(query.where(documents.c.name == ClusterDocument.NAME))
    return {run: body.get("nodes", []) for run, body in rows if isinstance(body, Mapping)}


@dataclass(frozen=True)
class _Ended:
    statuses: Mapping[str, int]
    last: float
    of_nodes: Mapping[tuple[str, str, str], int]
    node_last: Mapping[NodeKey, float]
    latencies: Mapping[str, list[float]]


def _ended(connection: Connection, since: float) -> _Ended:
    names = ("status", "trigger", "cluster", "nodes", "created_at", "ended_at")
    columns = [runs.c[name] for name in names]
    query = select(*columns).where(runs.c.created_at >= since, runs.c.status.is_not(None))
    statuses: Counter[str] = Counter()
    of_nodes: Counter[tuple[str, str, str]] = Counter()
    newest = 0.0
    last: dict[NodeKey, float] = {}
    latencies: dict[str, list[float]] = defaultdict(list)
    for status, trigger, cluster, nodes, created_at, ended_at in connection.execute(query):
        statuses[status] += 1
        newest = max(newest, ended_at)
        latencies[trigger].append(max(0.0, ended_at - created_at))
        for node in nodes:
            of_nodes[cluster, node, status] += 1
            last[cluster, node] = max(last.get((cluster, node), 0.0), ended_at)
    in_order = {trigger: sorted(seconds) for trigger, seconds in latencies.items()}
    return _Ended(statuses, newest, of_nodes, last, in_order)


def _ingest_lags(connection: Connection, since: float) -> list[float]:
    query = (
        select(attempts.c.records, attempts.c.ended_at)
        .join(runs, runs.c.id == attempts.c.run)
        .where(runs.c.created_at >= since, attempts.c.ended_at.is_not(None))
        .order_by(runs.c.created_at.desc(), attempts.c.ended_at.desc())
        .limit(_NEWEST)
    )
    lags = []
    for records, stored_at in connection.execute(query):
        ends = [float(record["ended_at"]) for record in records if record.get("ended_at")]
        if ends:
            lags.append(max(0.0, stored_at - max(ends)))
    return sorted(lags)


def _node_states(connection: Connection, since: float) -> dict[NodeKey, NodeState]:
    """Read what each node reported last; only its newest report is decoded."""
    began = select(func.min(attempts.c.started_at)).where(attempts.c.run == runs.c.id).scalar_subquery()
    at = func.coalesce(began, runs.c.ended_at, runs.c.created_at)
    query = select(runs.c.cluster, environments.c.node, at, runs.c.id).join(runs, runs.c.id == environments.c.run)
    newest: dict[NodeKey, tuple[float, str]] = {}
    for cluster, node, reported_at, run in connection.execute(query.where(runs.c.created_at >= since)):
        newest[cluster, node] = max(newest.get((cluster, node), (0.0, "")), (reported_at, run))
    named = {run for _, run in newest.values()}
    columns = (environments.c.run, environments.c.node, environments.c.facts)
    facts = {(run, node): body for run, node, body in connection.execute(
        select(*columns).where(among(connection, environments.c.run, named))
    )}  # fmt: skip
    slots = {
        (run, str(node.get("name"))): int(node.get("slots", 1))
        for run, nodes in _nodes_of(connection, named).items()
        for node in nodes
        if node.get("device") == "gpu"
    }
    return {
        (cluster, node): _node_state(at, facts[run, node], slots.get((run, node), 0))
        for (cluster, node), (at, run) in newest.items()
    }


def _node_state(at: float, facts: Mapping[str, Any], gpus: int) -> NodeState:
    late = facts.get("unfinished", ())
    return NodeState(
        at=at,
        disk_free_bytes=None if "machine" in late else int(facts.get("disk_free_bytes", 0)),
        clock_offset_s=float(facts.get("clock_skew_s", 0.0)),
        missing_gpus=None if "gpus" in late else max(0, gpus - len(facts.get("gpus", ()))),
    )


def _newest_report(connection: Connection) -> Mapping[str, Any]:
    """Read the newest report of maintenance about the nodes of all clusters; empty without one."""
    query = select(node_histories.c.body).where(node_histories.c.cluster == "")
    body = connection.execute(query.order_by(node_histories.c.at.desc()).limit(1)).scalar()
    return body if isinstance(body, Mapping) else {}


def _slowdowns(report: Mapping[str, Any]) -> dict[NodeKey, float]:
    return {
        (str(node.get("cluster", "")), str(node.get("node", ""))): max(
            (float(change["size"]) for change in node.get("changes", []) if node.get("is_slow")), default=0.0
        )
        for node in report.get("nodes", [])
    }


def _alerts(connection: Connection, since: float) -> dict[str, int]:
    query = select(alerts.c.state, func.count()).where(alerts.c.first_at >= since).group_by(alerts.c.state)
    return {state: int(count) for state, count in connection.execute(query)}


def lost_steps(connection: Connection, since: float) -> Counter[NodeKey]:
    """Return node -> number of steps that ended with class `node_lost`."""
    return Counter(node for node, _ in _losses(connection, since))


def _losses(connection: Connection, since: float) -> list[tuple[NodeKey, float]]:
    """Return (node, end of the step) of the steps that ended with class `node_lost`.

    Most runs have no failure, and few have one of that class.
    """
    word = FailureClass.NODE_LOST.value
    query = (
        select(documents.c.run, runs.c.cluster, documents.c.body, documents.c.updated_at)
        .join(runs, runs.c.id == documents.c.run)
        .where(runs.c.created_at >= since, documents.c.name == FailuresDocument.NAME)
        .where(type_coerce(documents.c.body, Text).contains(f'"{word}"'))
    )
    lost = [
        (run, key, (cluster, failure.node), updated_at)
        for run, cluster, body, updated_at in connection.execute(query).all()
        for key, failure in FailuresDocument.load(run, body).root.items()
        if failure.failure_class == FailureClass.NODE_LOST
    ]
    columns = (attempts.c.run, attempts.c.step, attempts.c.attempt, attempts.c.ended_at)
    ended = select(*columns).where(among(connection, attempts.c.run, {run for run, *_ in lost}))
    ends: dict[tuple[str, AttemptKey | str], float | None] = {
        (run, AttemptKey(step, number)): at for run, step, number, at in connection.execute(ended)
    }
    # A failure before the first step has no attempt, and that of an attempt is stored before the attempt's end.
    return [(node, ends.get((run, key)) or updated_at) for run, key, node, updated_at in lost]


def _newest(losses: Iterable[tuple[NodeKey, float]]) -> dict[NodeKey, float]:
    newest: dict[NodeKey, float] = {}
    for node, at in losses:
        newest[node] = max(newest.get(node, 0.0), at)
    return newest
