"""One controller of the simulation: a process with its own connection, which runs the code of real runs.

Only the clock and the nodes are simulated. A run is created and resolved (plan, placement, documents), waits in
the queue, gets its leases, stores its steps and numbers, is judged, and releases its slots, as Airflow's tasks do.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from numbers_of import measurements_of, records_of
from world import CHANGE_MODE, MODE, START, SUITE, Wanted, World

from tipcflow.domain import Cluster, NodeFacts, Plan, Run, Status
from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.run.kept_files import KeptDocument
from tipcflow.domain.run_documents import SourceDocument
from tipcflow.execute.job.spec import slots_needed
from tipcflow.execute.request import RunRequest
from tipcflow.execute.resolve import resolve as resolving
from tipcflow.execute.resolve.moves import groups_of, move_run
from tipcflow.execute.source.snapshot import Snapshot
from tipcflow.execute.verdict.judge import judge_run, write_certificate
from tipcflow.store import Place, Store

# As in the product: an Airflow task renews its lease for at least half an hour, a run that ends for two minutes.
LEASE_S, LAST_S = 1800.0, 120.0
WAITER_S = 30 * 86_400.0
RISE_S = 1800.0
Slots = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Event:
    """Something that a controller does at a time: `resolve`, `poll`, `end`, `lose` a run, or `maintain`."""

    at: float
    kind: str
    run: str = ""
    wanted: Wanted | None = None
    away: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Outcome:
    """What an event has led to: `waiting`, `granted`, `ended`, `lost`, `swept`.

    Controllers work on the events of a tick at once. `order`, a clock of all processes, is the order in which
    slots change their run: it is read before a release and after a grant. `candidates` are the addresses of the
    nodes that a waiting run may get.
    """

    event: Event
    kind: str
    slots: Slots = ()
    candidates: tuple[str, ...] = ()
    order: float = field(default_factory=time.monotonic)


@dataclass
class Timed:
    """Calls of the database by kind: seconds each."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    @contextmanager
    def of(self, kind: str) -> Iterator[None]:
        """Add the duration of the body."""
        begun = time.perf_counter()
        yield
        self.seconds[kind].append(time.perf_counter() - begun)


@dataclass
class Waiter:
    """A run before it has its slots.

    Attributes:
        groups: addresses of nodes of which it may use any instead of another.
        moved: address of a node of its plan -> address of the node that it waits for instead.
    """

    resolved: resolving.Resolved
    groups: list[list[str]]
    moved: dict[str, str] = field(default_factory=dict)

    def move(self, moved: Mapping[str, str]) -> None:
        """Remember moves: each is from the node that an earlier one has led to."""
        origins = {after: before for before, after in self.moved.items()}
        self.moved |= {origins.get(before, before): after for before, after in moved.items()}


class Controller:
    """Runs events, one after the other."""

    def __init__(self, options: argparse.Namespace, url: str, home: Path) -> None:
        self._options, self._home = options, home
        self._world = World(options)
        self._cluster, self._suite = self._world.cluster(), self._world.suite()
        self._store = Store.open(url, migrate=False)
        self._wanted: dict[str, Wanted] = {}
        self._slots: dict[str, Slots] = {}
        self._waiters: dict[str, Waiter] = {}
        self.timed = Timed()
        self._now = 0.0
        # A real run also reads the files of the suite and of the cluster.
        resolving.load_cluster = lambda *_: self._cluster
        resolving.load_suite = lambda *_: self._suite
        resolving.take_snapshot = self._snapshot
        resolving.keep_snapshot = _source
        # By the clock of the simulation, not of the database.
        resolving.doubtful_nodes = self._doubtful

    def handle(self, event: Event) -> Outcome:
        """Do what a task or trigger does at that time."""
        self._now = event.at
        handler: Callable[[Event], Outcome] = getattr(self, f"_{event.kind}")
        return handler(event)

    def _resolve(self, event: Event) -> Outcome:
        wanted = event.wanted
        assert wanted is not None
        self._wanted[event.run] = wanted
        path, _ = self._world.params(wanted.chain)
        weekly = wanted.trigger == "weekly"
        mode = MODE.get(wanted.trigger, CHANGE_MODE)
        request = RunRequest(
            params=path, suite=SUITE, mode=mode, cluster="fleet", config_dir=self._home / "configs",
            policy="weekly" if weekly else "pr", trigger=wanted.trigger, owner="simulated",
        )  # fmt: skip
        run = Run(
            id=event.run, chain=f"{SUITE}/model_{wanted.chain:05}/train_infer_python", suite=SUITE,
            model=f"model_{wanted.chain:05}", mode=mode, cluster="fleet", trigger=wanted.trigger,
            framework="paddlepaddle-gpu 3.3.1", environment="gpu/8x-simulated", created_at=START + event.at,
        )  # fmt: skip
        with self.timed.of("create"):
            self._store.runs.create(run)
        with self.timed.of("resolve"):
            resolved, plan = resolving.resolve(self._store, request, event.run, home=self._home)
        whole = resolved.policy.whole_nodes
        self._slots[event.run] = tuple(slots_needed(plan, resolved.cluster, whole_nodes=whole))
        groups = [] if self._options.fixed else groups_of(self._store, resolved.cluster, plan)
        self._waiters[event.run] = Waiter(resolved, groups)
        return self._poll(event)

    def _poll(self, event: Event) -> Outcome:
        run, now = event.run, START + event.at
        place = self._join(run, now)
        # Only expired leases block the run: their nodes are listed, if they are not away.
        if place.held and place.must_check_nodes:
            self._drop(place.held, event.away, now)
            place = self._join(run, now)
        slots = self._slots[run]
        if place.free:
            with self.timed.of("acquire"):
                ttl_s = self._wanted[run].seconds + LEASE_S
                fence = self._store.leases.acquire(
                    run, slots, owner="simulated", ttl_s=ttl_s, now=now, rise_s=RISE_S
                )
            if fence is not None:
                waiter = self._waiters.pop(run)
                if moved := {before: after for before, after in waiter.moved.items() if before != after}:
                    with self.timed.of("move"):
                        move_run(self._store, run, waiter.resolved, moved)
                return Outcome(event, "granted", slots)
        candidates = {node for node, _ in slots}.union(*self._waiters[run].groups)
        return Outcome(event, "waiting", slots, tuple(sorted(candidates)))

    def _join(self, run: str, now: float) -> Place:
        waiter = self._waiters[run]
        with self.timed.of("join"):
            place = self._store.queue.join(
                run,
                self._slots[run],
                owner="simulated",
                ttl_s=WAITER_S,
                now=now,
                rise_s=RISE_S,
                groups=waiter.groups,
            )
        self._slots[run] = place.request.slots
        waiter.move(place.moved)
        return place

    def _drop(self, leases: Collection[Any], away: Collection[str], now: float) -> int:
        empty = [lease for lease in leases if lease.node not in away and not lease.live(now)]
        if not empty:
            return 0
        with self.timed.of("drop"):
            return int(self._store.leases.drop_expired(empty, now))

    def _end(self, event: Event) -> Outcome:
        wanted, now = self._wanted.pop(event.run), START + event.at
        plan = self._store.plans.get(event.run)
        full = int(event.run.rpartition("-")[2]) % self._options.full_every == 0
        self._steps(event.run, plan, now - wanted.seconds, now, full=full)
        released = time.monotonic()
        with self.timed.of("release"):
            self._store.leases.release(event.run)
        if full:
            self._judge(event.run)
        with self.timed.of("finish"):
            self._store.runs.finish(event.run, Status.PASS, "", now)
        return Outcome(event, "ended", self._slots.pop(event.run), released)

    def _steps(self, run: str, plan: Plan, begun: float, now: float, *, full: bool) -> None:
        with self.timed.of("nodes"):
            self._store.nodes.save(run, [_facts(name) for name in plan.nodes])
        steps = [step for step in plan.steps if not step.not_run]
        for number, step in enumerate(steps):
            first = begun + (now - begun) * number / len(steps)
            with self.timed.of("renew"):
                self._store.leases.renew(run, LEASE_S + now - begun, now=first)
            with self.timed.of("attempt"):
                attempt = self._store.attempts.open(run, step.id, step.nodes, first)
            if full:
                with self.timed.of("numbers"):
                    self._store.measurements.add(measurements_of(run, step, attempt))
            with self.timed.of("attempt"):
                kept = {f"{node}/logs/main.log": "0" * 64 for node in step.nodes}
                self._store.documents.merge(run, KeptDocument, {AttemptKey(step.id, attempt): kept})
                records, legs = records_of(run, step, first, now)
                for leg, record in legs.items():
                    self._store.steps.set_leg(run, step.id, leg, attempt, Status.PASS, "", record)
                self._store.attempts.close(run, step.id, attempt, Status.PASS, "", records, now)
                self._store.steps.set(run, step.id, Status.PASS)

    def _judge(self, run: str) -> None:
        resolved = resolving.resolved_document
        kinds = (resolving.PolicyDocument, resolving.ReferencesDocument)
        documents = self._store.documents.several(run, kinds)
        policy, references = (resolved(documents, kind, run).root for kind in kinds)
        with self.timed.of("judge"):
            judge_run(self._store, run, rules=policy, references=references)
        with self.timed.of("certificate"):
            write_certificate(self._store, run, self._home)

    def _lose(self, event: Event) -> Outcome:
        self._wanted.pop(event.run)
        slots, now = self._slots.pop(event.run), START + event.at
        released = time.monotonic()
        with self.timed.of("renew"):
            self._store.leases.renew(event.run, LAST_S, now=now)
        with self.timed.of("release"):
            self._store.leases.release(event.run, keep=event.away)
        with self.timed.of("finish"):
            self._store.runs.finish(event.run, Status.INFRA_FAILURE, "node lost", now)
        return Outcome(event, "lost", slots, released)

    def _maintain(self, event: Event) -> Outcome:
        now = START + event.at
        expired = [lease for lease in self._store.leases.all() if not lease.live(now)]
        self._drop(expired, event.away, now)
        freed = tuple((lease.node, lease.slot) for lease in expired if lease.node not in event.away)
        return Outcome(event, "swept", freed)

    def _doubtful(self, store: Store, cluster: Cluster) -> frozenset[str]:
        expired = store.leases.expired_nodes(START + self._now)
        return frozenset(node.name for node in cluster.nodes if node.address in expired)

    def _snapshot(self, _: Any, params: str, *__: Any, **___: Any) -> Snapshot:
        text = self._world.params(int(params.split("model_")[1][:5]))[1]
        return Snapshot("c" * 40, b"", "a" * 64, params, text, frozenset({params}))


def _source(_: Path, snapshot: Snapshot) -> SourceDocument:
    return SourceDocument(
        commit=snapshot.commit, sha256=snapshot.sha256, params_file=snapshot.params_file,
        params_text=snapshot.params_text,
    )  # fmt: skip


def _facts(name: str) -> NodeFacts:
    return NodeFacts(
        node=name, hostname=name, os="Debian GNU/Linux 12", kernel="6.1.0", cpu_model="Some CPU", cpu_count=64,
        memory_bytes=512 << 30, python="3.11.7", framework="paddlepaddle", framework_version="3.3.1",
    )  # fmt: skip


def serve(options: argparse.Namespace, url: str, home: Path, line: Connection) -> None:
    """Handle lists of events until None; then send the durations of all calls."""
    controller = Controller(options, url, home)
    while (events := line.recv()) is not None:
        # The params of a run are sent once: outcomes are small.
        line.send([replace(outcome, event=replace(outcome.event, wanted=None, away=frozenset()))
                   for outcome in map(controller.handle, events)])  # fmt: skip
    line.send({kind: list(seconds) for kind, seconds in controller.timed.seconds.items()})
