"""Many runs want overlapping sets of nodes: no slot is shared, no run is overtaken, every run gets its slots."""

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.support.stories import a_run

from tipcflow.domain import priority_of
from tipcflow.domain.priority import risen
from tipcflow.execute.leases import keeper as lease_module
from tipcflow.execute.leases.keeper import LeaseKeeper
from tipcflow.store import Store
from tipcflow.store.leases.rows import LeaseRequest

pytestmark = pytest.mark.slow

NODES = ("a", "b", "c", "d")
TRIGGERS = ("ci", "manual", "weekly", "cli")
RISE_S = 100.0
Slot = tuple[str, int]


def some_slots(chance: random.Random) -> tuple[Slot, ...]:
    """Slot 0, or both, of one to three of four nodes."""
    nodes = chance.sample(NODES, chance.randint(1, 3))
    return tuple((node, slot) for node in nodes for slot in range(chance.randint(1, 2)))


@pytest.fixture
def lite(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'lite.db'}") as made:
        yield made


def test_ten_runs_in_simulated_time_all_start_and_none_is_overtaken(lite: Store) -> None:
    ten_runs(lite)


@pytest.mark.full
def test_both_databases_have_the_same_result(store: Store) -> None:
    ten_runs(store)


def ten_runs(store: Store) -> None:
    """Each is alive at every tick, and holds what it gets for some ticks."""
    chance = random.Random(7)
    runs = {f"run-{number}": some_slots(chance) for number in range(10)}
    for number, name in enumerate(runs):
        store.runs.create(a_run(name, trigger=TRIGGERS[number % 4]))
    began = {name: chance.randint(0, 20) for name in runs}
    ends: dict[str, int] = {}
    done: list[str] = []
    for tick in range(400):
        now = 1e9 + tick
        for name in [name for name, at in ends.items() if at <= tick]:
            store.leases.release(name)
            done.append(name)
            del ends[name]
        asking = [name for name in runs if began[name] <= tick and name not in ends and name not in done]
        chance.shuffle(asking)
        for name in asking:
            place = store.queue.join(name, runs[name], owner=name, ttl_s=5, now=now, rise_s=RISE_S)
            before = store.queue.places(now, RISE_S)
            got = store.leases.acquire(name, runs[name], owner=name, ttl_s=1e6, now=now, rise_s=RISE_S)
            assert (got is not None) is place.free
            if got is not None:
                ends[name] = tick + chance.randint(1, 15)
                ahead = [one.request for one in before[: [p.request.run for p in before].index(name)]]
                assert not [one.run for one in ahead if one.wants_one_of(runs[name])], "overtaken"
        held = [(lease.node, lease.slot) for lease in store.leases.all()]
        assert sorted(held) == sorted(slot for name in ends for slot in runs[name])
        if len(done) == len(runs):
            break
    assert sorted(done) == sorted(runs)
    assert store.queue.places(1e9, RISE_S) == []


def test_weekly_run_starts_despite_a_stream_of_changes(lite: Store) -> None:
    """Every five seconds another pull request wants the node that each holds for ten."""
    store, rise_s = lite, 20.0
    store.runs.create(a_run("weekly", trigger="weekly"))
    ends: dict[str, float] = {}
    waiting: list[str] = []
    for tick in range(0, 1000, 5):
        now = 1e9 + tick
        store.runs.create(a_run(f"change-{tick}", trigger="ci"))
        waiting.append(f"change-{tick}")
        for name in [name for name, at in ends.items() if at <= now]:
            store.leases.release(name)
            del ends[name]
        for name in [*waiting, "weekly"]:
            store.queue.join(name, [("a", 0)], owner=name, ttl_s=20, now=now, rise_s=rise_s)
        for name in [*waiting, "weekly"]:
            if store.leases.acquire(name, [("a", 0)], owner=name, ttl_s=1e6, now=now, rise_s=rise_s):
                if name == "weekly":
                    # At the top after two rises, then behind those that are older: half of what came until then.
                    assert 2 * rise_s <= tick <= 5 * rise_s
                    return
                ends[name] = now + 10
                waiting.remove(name)
    pytest.fail("it starves")


def test_ten_threads_take_slots_in_queue_order(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_module, "POLL_EVERY_S", 0.02)
    chance = random.Random(11)
    wanted = {f"run-{number}": some_slots(chance) for number in range(10)}
    everything = [(node, slot) for node in NODES for slot in (0, 1)]
    store.runs.create(a_run("holder"))
    assert store.leases.acquire("holder", everything, owner="holder", ttl_s=600)
    inside: set[Slot] = set()
    order: list[str] = []
    mistakes: list[str] = []
    guard = threading.Lock()

    def live(name: str) -> None:
        keeper = LeaseKeeper(
            store,
            name,
            wanted[name],
            owner=name,
            wait_s=120,
            empty=lambda node, run: False,
            report=lambda line: None,
        )
        with keeper:
            with guard:
                order.append(name)
                if inside & set(wanted[name]):
                    mistakes.append(name)
                inside.update(wanted[name])
            time.sleep(0.02)
            with guard:
                inside.difference_update(wanted[name])

    for number, name in enumerate(wanted):
        store.runs.create(a_run(name, trigger=TRIGGERS[number % 4]))
    threads = [threading.Thread(target=live, args=(name,), daemon=True) for name in wanted]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 60
    while len(queue := store.queue.places()) < len(wanted):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    store.leases.release("holder")
    for thread in threads:
        thread.join(120)
    assert sorted(order) == sorted(wanted), "a run did not get its slots"
    assert mistakes == []
    assert (store.leases.all(), store.queue.places()) == ([], [])
    by_right = [place.request.run for place in queue]
    for first in wanted:
        for second in wanted:
            if set(wanted[first]) & set(wanted[second]) and by_right.index(first) < by_right.index(second):
                assert order.index(first) < order.index(second), f"{second} overtook {first}"


class QueueMachine(RuleBasedStateMachine):
    """Invariants of any order of requesting, taking, renewing, expiring, leaving and dying."""

    store: Store
    count = 0

    @initialize()
    def empty(self) -> None:
        QueueMachine.count += 1
        self.now = 1e9
        self.runs = {f"run-{QueueMachine.count}-{number}": trigger for number, trigger in enumerate(TRIGGERS)}
        for name, trigger in self.runs.items():
            self.store.runs.create(a_run(name, trigger=trigger))
        self.store.queue.drop_dead(1e12)
        self.store.leases.drop_expired(self.store.leases.all(), 1e12)
        self.fences: list[int] = []

    names = st.integers(0, len(TRIGGERS) - 1)
    slots = st.sets(st.tuples(st.sampled_from(NODES[:3]), st.just(0)), min_size=1, max_size=3).map(sorted)

    def name(self, number: int) -> str:
        return list(self.runs)[number]

    @rule(seconds=st.sampled_from([1, 30, 70, 130]))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds

    @rule(number=names, slots=slots)
    def wait(self, number: int, slots: list[Slot]) -> None:
        run = self.name(number)
        known = {place.request.run: place.request for place in self.queue()}
        place = self.store.queue.join(run, slots, owner=run, ttl_s=60, now=self.now, rise_s=RISE_S)
        if run in known:
            assert place.request.created_at == known[run].created_at

    @rule(number=names, slots=slots)
    def take(self, number: int, slots: list[Slot]) -> None:
        run = self.name(number)
        before, held = self.queue(), self.store.leases.all()
        mine = [place.request for place in before if place.request.run == run]
        request = mine[0] if mine else self.newcomer(run)
        got = self.store.leases.acquire(run, slots, owner=run, ttl_s=60, now=self.now, rise_s=RISE_S)
        others = [one for one in held if (one.node, one.slot) in slots and one.run != run]
        has_all = len([one for one in held if (one.node, one.slot) in slots and one.run == run]) == len(slots)
        rank = request.rank(self.now, RISE_S)
        first = [p.request for p in before if p.request.run != run and p.request.rank(self.now, RISE_S) < rank]
        may = not others and (has_all or not any(one.wants_one_of(slots) for one in first))
        assert (got is not None) is may
        if got is not None:
            assert run not in [place.request.run for place in self.queue()]
            assert got >= max(self.fences, default=0) or has_all
            self.fences.append(got)

    def newcomer(self, run: str) -> LeaseRequest:
        known = dict.fromkeys(("created_at", "expires_at"), self.now)
        dead = self.dead(run)
        return dead or LeaseRequest(run=run, slots=(), owner="", priority=priority_of(self.runs[run]), **known)

    def dead(self, run: str) -> LeaseRequest | None:
        """Its request, long after the last heartbeat of any run."""
        early = self.store.queue.places(0.0, RISE_S)
        return next((place.request for place in early if place.request.run == run), None)

    @rule(number=names)
    def renew(self, number: int) -> None:
        mine = [lease for lease in self.store.leases.all() if lease.run == self.name(number)]
        renewed = self.store.leases.renew(self.name(number), ttl_s=60, now=self.now)
        assert renewed is bool(mine and all(lease.live(self.now) for lease in mine))

    @rule(number=names)
    def release(self, number: int) -> None:
        self.store.leases.release(self.name(number))
        assert self.name(number) not in {lease.run for lease in self.store.leases.all()}
        assert self.name(number) not in [place.request.run for place in self.queue()]

    @rule(number=names)
    def leave(self, number: int) -> None:
        self.store.queue.leave(self.name(number))
        assert self.name(number) not in [place.request.run for place in self.queue()]

    @rule()
    def nodes_are_found_empty(self) -> None:
        live = [lease for lease in self.store.leases.all() if lease.live(self.now)]
        self.store.leases.drop_expired(self.store.leases.all(), self.now)
        assert self.store.leases.all() == live

    @precondition(lambda self: bool(self.queue()))
    @rule()
    def the_first_of_the_queue_gets_in_once_its_slots_are_free(self) -> None:
        first = self.queue()[0]
        for lease in first.held:
            self.store.leases.release(lease.run)
        # Releasing takes a run's request back too.
        now_first = self.queue()[0]
        run, slots = now_first.request.run, now_first.request.slots
        if not now_first.held:
            assert self.store.leases.acquire(run, slots, owner=run, ttl_s=60, now=self.now, rise_s=RISE_S)

    def queue(self) -> list:  # type: ignore[type-arg]
        return self.store.queue.places(self.now, RISE_S)

    @invariant()
    def the_queue_is_in_order(self) -> None:
        if not hasattr(self, "now"):
            return
        queue = self.queue()
        ranks = [
            (risen(p.request.priority, self.now - p.request.created_at, RISE_S), p.request.created_at)
            for p in queue
        ]
        assert ranks == sorted(ranks)
        assert all(place.request.live(self.now) for place in queue)


@pytest.mark.parametrize("examples", [12, pytest.param(300, marks=pytest.mark.full)])
def test_events_may_have_any_order(lite: Store, examples: int) -> None:
    machine = type("Machine", (QueueMachine,), {"store": lite})
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    chosen = settings(max_examples=examples, stateful_step_count=25, deadline=None, suppress_health_check=slow)
    run_state_machine_as_test(machine, settings=chosen)
