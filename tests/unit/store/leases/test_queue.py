"""Whose turn it is, with made-up times, on both databases."""

from typing import Any

import pytest
from tests.support.stories import a_run

from tipcflow.domain import ConfigError
from tipcflow.store import Place, Store
from tipcflow.store.leases import rows

NOW = 1_795_000_000.0
RISE_S = 1800.0
A0, A1, B0, C0 = ("node-a", 0), ("node-a", 1), ("node-b", 0), ("node-c", 0)
Slot = tuple[str, int]


class Queue:
    """Runs that want slots; a second passes with every request."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.now = NOW

    def run(self, name: str, trigger: str = "cli") -> str:
        self.store.runs.create(a_run(name, trigger=trigger))
        return name

    def wait(self, run: str, *slots: Slot, ttl_s: float = 60) -> Place:
        self.now += 1
        return self.store.queue.join(run, slots, owner="test", ttl_s=ttl_s, now=self.now, rise_s=RISE_S)

    def take(self, run: str, *slots: Slot, ttl_s: float = 1e6) -> int | None:
        self.now += 1
        return self.store.leases.acquire(run, slots, owner="test", ttl_s=ttl_s, now=self.now, rise_s=RISE_S)

    @property
    def order(self) -> list[str]:
        return [place.request.run for place in self.store.queue.places(self.now, RISE_S)]


@pytest.fixture
def queue(store: Store) -> Queue:
    made = Queue(store)
    made.run("holder")
    for name in ("first", "second", "third"):
        made.run(name)
    made.run("weekly-1", "weekly")
    made.run("change", "ci")
    return made


def test_a_free_slot_is_granted_at_once_and_the_request_ends(queue: Queue) -> None:
    place = queue.wait("first", A0, B0)
    assert (place.free, place.position, place.of) == (True, 1, 1)
    assert queue.take("first", A0, B0)
    assert queue.order == []


def test_unknown_run_does_not_join(queue: Queue) -> None:
    with pytest.raises(ConfigError, match="no such run"):
        queue.wait("later", A0)
    assert queue.order == []


def test_equals_go_by_age_and_asking_again_keeps_the_place(queue: Queue) -> None:
    queue.take("holder", A0)
    queue.wait("first", A0)
    assert queue.wait("second", A0).position == 2
    place = queue.wait("first", A0)
    assert (place.position, place.of, place.request.created_at) == (1, 2, NOW + 2)
    assert [lease.run for lease in place.held] == ["holder"]
    queue.store.leases.release("holder")
    assert queue.take("second", A0) is None
    assert queue.take("third", A0) is None, "who does not even wait goes last"
    assert queue.take("first", A0)


def test_a_pull_request_precedes_a_user_and_a_user_the_weekly_run(queue: Queue) -> None:
    queue.take("holder", A0)
    for run in ("weekly-1", "first", "change"):
        queue.wait(run, A0)
    assert queue.order == ["change", "first", "weekly-1"]
    place = queue.wait("weekly-1", A0)
    assert [one.run for one in place.ahead] == ["change", "first"]
    assert (place.position, place.of) == (3, 3)


def test_free_slots_are_reserved_for_the_first_run_if_usable(queue: Queue) -> None:
    """`first` wants two nodes of which one is taken: no run overtakes it there, but runs on other nodes may."""
    queue.take("holder", B0)
    queue.wait("first", A0, B0)
    queue.wait("second", A0)
    assert queue.take("second", A0) is None
    queue.wait("third", A1)
    assert queue.take("third", A1)
    queue.store.leases.release("holder")
    assert queue.take("second", A0) is None
    assert queue.take("first", A0, B0)
    assert queue.order == ["second"]


def test_a_more_urgent_run_for_other_slots_blocks_no_run(queue: Queue) -> None:
    queue.take("holder", C0)
    queue.wait("change", C0)
    place = queue.wait("weekly-1", A0)
    assert (place.free, place.position, place.of) == (True, 1, 1)
    assert queue.take("weekly-1", A0)


def test_a_request_rises_with_time_so_that_none_starves(queue: Queue) -> None:
    queue.take("holder", A0)
    queue.wait("weekly-1", A0, ttl_s=9 * RISE_S)
    began = queue.now
    queue.now += 100
    queue.wait("first", A0, ttl_s=9 * RISE_S)
    assert queue.order == ["first", "weekly-1"]
    queue.now = began + RISE_S
    assert queue.order == ["weekly-1", "first"], "as urgent as a user's, and older"
    queue.wait("change", A0, ttl_s=9 * RISE_S)
    assert queue.order == ["change", "weekly-1", "first"]
    queue.now = began + 2 * RISE_S
    assert queue.order[0] == "weekly-1"
    # However many come now, it is the next.
    queue.run("another", "ci")
    queue.wait("another", A0)
    queue.store.leases.release("holder")
    assert queue.take("another", A0) is None
    assert queue.take("weekly-1", A0)


def test_dead_waiter_blocks_no_run_and_may_return(queue: Queue) -> None:
    queue.take("holder", A0)
    queue.wait("first", A0, ttl_s=60)
    queue.wait("second", A0, ttl_s=600)
    queue.now += 60
    assert queue.order == ["second"]
    place = queue.wait("first", A0)
    assert (place.position, place.request.created_at) == (1, NOW + 2)
    queue.now += 60
    queue.store.leases.release("holder")
    assert queue.take("second", A0)
    assert queue.store.queue.drop_dead(queue.now) == ["first"]
    assert queue.store.queue.drop_dead(queue.now) == []
    assert not queue.store.queue.leave("first")


def test_run_that_leaves_the_queue_or_is_released_stops_waiting(queue: Queue) -> None:
    queue.take("holder", A0)
    for run in ("first", "second"):
        queue.wait(run, A0)
    assert queue.store.queue.leave("first")
    assert queue.order == ["second"]
    assert queue.store.leases.release("second") == 0
    assert queue.order == []


def test_a_run_gets_its_own_expired_lease_again_whichever_run_waits(queue: Queue) -> None:
    """Its jobs may still run: no other run gets the slot now."""
    queue.take("holder", A0, ttl_s=60)
    queue.wait("change", A0, ttl_s=600)
    queue.now += 120
    assert queue.wait("change", A0).held
    assert queue.take("holder", A0)
    # Once it was dropped, it is last in line.
    queue.now += 2e6
    queue.wait("change", A0)
    queue.store.leases.drop_expired(queue.store.leases.all(), queue.now)
    assert queue.take("holder", A0) is None
    assert queue.take("change", A0)


def test_waiting_for_nothing_is_a_mistake(queue: Queue) -> None:
    with pytest.raises(ValueError, match="no slots"):
        queue.wait("first")


def test_requests_for_other_nodes_are_not_read(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    whole = rows.LeaseRequest.model_construct

    def construct(**fields: Any) -> Any:
        read.append(fields["run"])
        return whole(**fields)

    queue.wait("second", B0)
    queue.wait("third", ("node-a/%_", 0))
    monkeypatch.setattr(rows.LeaseRequest, "model_construct", construct)
    assert queue.wait("first", A0).of == 1
    assert read == []
    assert queue.wait("first", A0, B0).of == 2
    assert sorted(read) == ["first", "second"]


def test_request_for_many_nodes_meets_all_others(queue: Queue) -> None:
    many = [(f"node-{number}", 0) for number in range(30)]
    queue.wait("first", *many)
    assert queue.wait("second", ("node-29", 0)).position == 2
    assert queue.take("second", ("node-29", 0)) is None
    assert queue.wait("first", *many).of == 2


def test_waiting_run_moves_to_a_free_node_and_keeps_its_age(queue: Queue) -> None:
    queue.take("holder", A0)
    queue.wait("first", A0)
    queue.wait("second", A0)
    queue.now += 1
    groups = [["node-a", "node-b"]]
    place = queue.store.queue.join(
        "second", [A0], owner="test", ttl_s=60, now=queue.now, rise_s=RISE_S, groups=groups
    )
    assert (place.moved, place.request.slots, place.free) == ({"node-a": "node-b"}, (B0,), True)
    assert place.request.created_at == NOW + 3
    again = queue.store.queue.join(
        "first", [A0], owner="test", ttl_s=60, now=queue.now, rise_s=RISE_S, groups=groups
    )
    assert again.moved == {"node-a": "node-b"}, "an earlier request may take a node that a later one waits for"
    assert not queue.take("second", B0)
    assert queue.take("first", B0)
