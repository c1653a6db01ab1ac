import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.support.stories import a_run

from tipcflow.store import Lease, Store

A0, A1, B0 = ("node-a", 0), ("node-a", 1), ("node-b", 0)
NOW = 1_795_000_000.0


@pytest.fixture
def two(store: Store) -> Store:
    for name in ("run-1", "run-2"):
        store.runs.create(a_run(name))
    return store


def _take(store: Store, run: str, *slots: tuple[str, int], now: float = NOW, ttl_s: float = 60) -> int | None:
    return store.leases.acquire(run, slots, owner=f"owner of {run}", ttl_s=ttl_s, now=now)


def test_a_lease_is_held_by_one_run(two: Store) -> None:
    fence = _take(two, "run-1", A0, B0)
    assert fence
    assert two.leases.all() == [
        Lease(
            node=node,
            slot=0,
            run="run-1",
            owner="owner of run-1",
            fence=fence,
            acquired_at=NOW,
            expires_at=NOW + 60,
        )
        for node in ("node-a", "node-b")
    ]
    assert _take(two, "run-2", A0) is None
    assert two.leases.all()[0].describe(NOW + 20) == (
        "slot 0 of node node-a is held by run run-1 (owner of run-1), for another 40 s"
    )
    assert two.leases.all()[0].describe(NOW + 70).endswith("expired 10 s ago")


def test_all_slots_are_leased_or_none(two: Store) -> None:
    assert _take(two, "run-1", B0)
    assert _take(two, "run-2", A0, A1, B0) is None
    assert [(lease.node, lease.slot) for lease in two.leases.all()] == [B0]
    assert _take(two, "run-2", A0, A1)


def test_fences_grow_although_the_clock_goes_back(two: Store) -> None:
    fences = []
    for now in (NOW, NOW, NOW - 1000, NOW + 1):
        fences.append(_take(two, "run-1", A0, now=now))
        assert two.leases.release("run-1") == 1
    assert fences == sorted(set(fences))
    assert fences[1:] == [fences[0] + 1, fences[0] + 2, fences[0] + 3], "no clock is in a fence"


def test_a_run_that_requests_again_keeps_its_fence(two: Store) -> None:
    fence = _take(two, "run-1", A0, B0)
    assert _take(two, "run-1", B0, A0, A0, now=NOW + 30) == fence
    assert {lease.expires_at for lease in two.leases.all()} == {NOW + 90}
    more = _take(two, "run-1", A0, A1, now=NOW + 30)
    assert more is not None
    assert more > fence


def test_a_run_gets_its_own_expired_lease_again_under_a_new_fence(two: Store) -> None:
    fence = _take(two, "run-1", A0)
    again = _take(two, "run-1", A0, now=NOW + 61)
    assert again is not None
    assert again > fence


def test_expired_lease_is_available_only_after_being_dropped(two: Store) -> None:
    _take(two, "run-1", A0, B0)
    later = NOW + 61
    assert _take(two, "run-2", A0, now=later) is None
    a, b = two.leases.all()
    assert not a.live(later)
    assert two.leases.drop_expired(a, now=later) == 1
    assert two.leases.all() == [b]
    assert _take(two, "run-2", A0, now=later)
    assert _take(two, "run-2", A0, B0, now=later) is None


def test_only_leases_seen_expired_are_dropped(two: Store) -> None:
    _take(two, "run-1", A0)
    seen = two.leases.all()
    assert two.leases.drop_expired(seen, now=NOW + 59) == 0
    renewed = _take(two, "run-1", A0, now=NOW + 61)
    assert two.leases.drop_expired(seen, now=NOW + 200) == 0
    assert [lease.fence for lease in two.leases.all()] == [renewed]
    assert two.leases.drop_expired(two.leases.all(), now=NOW + 200) == 1


def test_lease_is_renewable_until_its_expiry(two: Store) -> None:
    _take(two, "run-1", A0, B0)
    assert two.leases.renew("run-1", 60, now=NOW + 50)
    assert {lease.expires_at for lease in two.leases.all()} == {NOW + 110}
    assert not two.leases.renew("run-1", 60, now=NOW + 110)
    assert {lease.expires_at for lease in two.leases.all()} == {NOW + 110}
    assert not two.leases.renew("run-2", 60, now=NOW)


def test_release_leaves_others_alone(two: Store) -> None:
    _take(two, "run-1", A0)
    _take(two, "run-2", B0)
    assert two.leases.release("run-1") == 1
    assert two.leases.release("run-1") == 0
    assert [lease.run for lease in two.leases.all()] == ["run-2"]


def test_kept_slots_expire_soon_after_the_release(two: Store) -> None:
    """In Airflow a lease can be hours long; the node of a run that has ended must not be held that long."""
    now = time.time()
    _take(two, "run-1", A0, B0, now=now, ttl_s=7200)
    _take(two, "run-2", A1, now=now, ttl_s=7200)
    assert two.leases.release("run-1", keep=["node-b"], keep_s=120) == 1
    until = {lease.node: lease.expires_at for lease in two.leases.all()}
    assert until["node-b"] == pytest.approx(now + 120, abs=30)
    assert until["node-a"] == now + 7200
    two.leases.release("run-1", keep=["node-b"], keep_s=3600)
    assert {lease.node: lease.expires_at for lease in two.leases.all()} == until


def test_nothing_to_lease_is_a_mistake(two: Store) -> None:
    with pytest.raises(ValueError, match="no slots"):
        _take(two, "run-1")


def test_threads_never_share_a_slot(store: Store) -> None:
    runs = [f"run-{number}" for number in range(12)]
    for name in runs:
        store.runs.create(a_run(name))
    wanted = [(A0, B0), (B0, A1), (A1, A0)]

    def try_it(number: int) -> int | None:
        return _take(store, runs[number], *wanted[number % 3])

    with ThreadPoolExecutor(12) as pool:
        fences = [fence for fence in pool.map(try_it, range(12)) if fence is not None]
    assert len(fences) == 1
    assert len({lease.run for lease in store.leases.all()}) == 1


@pytest.mark.process
def test_processes_never_share_a_slot_nor_a_fence(
    store: Store, database_url: str, at_once: Callable[..., list[Any]]
) -> None:
    for number in range(3):
        store.runs.create(a_run(f"run-{number}"))
    slots = (["a:0", "b:0"], ["b:0", "a:0"], ["d:0"])
    results = at_once(*[["lease", database_url, f"run-{n}", "me", *slots[n]] for n in range(3)])
    assert results[2] is not None
    assert len([result for result in results[:2] if result is not None]) == 1
    granted = {lease.run: lease.fence for lease in store.leases.all()}
    assert granted == {f"run-{n}": result for n, result in enumerate(results) if result is not None}
    assert len(set(granted.values())) == 2


def test_fence_is_larger_than_the_fences_on_nodes(two: Store) -> None:
    fence = _take(two, "run-1", A0)
    assert fence
    seen = fence + 10**12
    assert two.leases.acquire("run-2", [B0], owner="", ttl_s=60, now=NOW, above=seen) == seen + 1
    assert two.leases.acquire("run-2", [B0], owner="", ttl_s=60, now=NOW, above=seen) == seen + 1, (
        "it keeps its own"
    )
    assert two.leases.release("run-1") == 1
    assert _take(two, "run-1", A0) == seen + 2


@pytest.mark.process
@pytest.mark.parametrize("off_s", [-10_000.0, 10_000.0])
def test_clock_of_the_server_decides_about_expiry(
    postgres_server: Any, postgres_template: str, monkeypatch: pytest.MonkeyPatch, off_s: float
) -> None:
    with Store.open(postgres_server.create(postgres_template)) as right:
        for name in ("run-1", "run-2"):
            right.runs.create(a_run(name))
        assert right.leases.acquire("run-1", [A0], owner="", ttl_s=120)
        # From here on this process is a controller whose clock is wrong.
        wrong = time.time
        monkeypatch.setattr(time, "time", lambda: wrong() + off_s)
        place = right.queue.join("run-2", [A0], owner="", ttl_s=60)
        assert place.held[0].live(place.at)
        assert not place.must_check_nodes
        assert right.leases.drop_expired(right.leases.all()) == 0
        assert right.queue.drop_dead() == []
        assert right.leases.renew("run-1", 120)
        (lease,) = right.leases.all()
        assert abs(lease.expires_at - (wrong() + 120)) < 30
        assert right.leases.renew("run-1", -1)
        place = right.queue.join("run-2", [A0], owner="", ttl_s=60)
        assert place.must_check_nodes
        assert right.leases.drop_expired(right.leases.all()) == 1


def test_leases_are_handed_over_with_a_new_fence_past_a_waiting_run(two: Store) -> None:
    two.runs.create(a_run("waiting", trigger="ci"))
    fence = _take(two, "run-1", A0, B0)
    two.queue.join("waiting", [A0], owner="w", ttl_s=60, now=NOW)
    assert fence
    assert two.leases.hand_over("run-1", "run-2", ttl_s=30, now=NOW + 5)
    held = two.leases.all()
    assert {(lease.node, lease.run) for lease in held} == {("node-a", "run-2"), ("node-b", "run-2")}
    assert {(lease.fence, lease.acquired_at, lease.expires_at) for lease in held} == {
        (fence + 1, NOW + 5, NOW + 35)
    }
    assert not two.leases.renew("run-1", 60, NOW + 6)
    # The new holder gets its own leases although another request is ahead.
    assert _take(two, "run-2", A0, B0, now=NOW + 6) == fence + 1
    assert two.leases.release("run-1") == 0
    assert two.leases.release("run-2") == 2


def test_expired_leases_are_not_handed_over(two: Store) -> None:
    assert _take(two, "run-1", A0)
    assert not two.leases.hand_over("run-1", "run-2", ttl_s=30, now=NOW + 61)
    assert not two.leases.hand_over("run-2", "run-1", ttl_s=30, now=NOW)
    assert [lease.run for lease in two.leases.all()] == ["run-1"]


def test_run_that_follows_gets_the_place_of_a_released_run(store: Store) -> None:
    """A place in the queue is kept in the transaction that releases the slots: no waiting run gets them."""
    slots = [("192.0.2.1", 0), ("192.0.2.1", 1)]
    for name, trigger in (("again", "confirm"), ("again-2", "confirm"), ("change", "ci")):
        store.runs.create(a_run(name, trigger=trigger))
    assert store.leases.acquire("again", slots, owner="o", ttl_s=60)
    store.queue.join("change", slots, owner="c", ttl_s=60)
    assert store.leases.release("again", queue_s=60) == 2
    (kept, waiting) = store.queue.places()
    assert (kept.request.run, kept.request.slots, kept.request.owner) == ("again", tuple(slots), "o")
    assert [request.run for request in waiting.ahead] == ["again"]
    assert store.leases.acquire("change", slots, owner="c", ttl_s=60) is None
    assert store.queue.pass_on("again", "again-2", ttl_s=120)
    assert not store.queue.pass_on("again", "again-2", ttl_s=120)
    (moved, _) = store.queue.places()
    assert (moved.request.run, moved.request.created_at) == ("again-2", kept.request.created_at)
    assert moved.request.expires_at > kept.request.expires_at + 30
    assert store.leases.acquire("again-2", slots, owner="o", ttl_s=60)
    assert [place.request.run for place in store.queue.places()] == ["change"]


def test_run_without_slots_keeps_no_place(store: Store) -> None:
    store.runs.create(a_run("again", trigger="confirm"))
    assert store.leases.release("again", queue_s=60) == 0
    assert store.queue.places() == []
