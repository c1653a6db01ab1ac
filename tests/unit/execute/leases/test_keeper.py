"""How a run waits for its slots: its messages, its time limit, and the runs that go first."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import a_run, open_store

from tipcflow.domain import DatabaseLostError, InfraError
from tipcflow.execute.leases import keeper as module
from tipcflow.execute.leases.keeper import LeaseKeeper
from tipcflow.store import Store

A0, A1, B0 = ("192.0.2.1", 0), ("192.0.2.1", 1), ("192.0.2.2", 0)
NAMES = {"192.0.2.1": "node-1", "192.0.2.2": "node-2"}
Slot = tuple[str, int]


class Claims:
    """Nodes with other controllers' runs, one list after the other; the last one forever."""

    def __init__(self, *answers: Mapping[str, set[str]]) -> None:
        self.answers = list(answers)
        self.given_back = 0
        self.fence = 0

    def take(self) -> Mapping[str, set[str]]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def release(self) -> None:
        self.given_back += 1


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(module, "POLL_EVERY_S", 0.01)
    with open_store(tmp_path / "tipcflow.db") as made:
        for name, trigger in (("holder", "weekly"), ("mine", "cli"), ("change", "ci")):
            made.runs.create(a_run(name, trigger=trigger))
        yield made


@pytest.fixture
def keeper(store: Store) -> Callable[..., LeaseKeeper]:
    def make(run: str = "mine", *slots: Slot, **fields: Any) -> LeaseKeeper:
        known: dict[str, Any] = {"owner": f"owner of {run}", "wait_s": 60.0, "names": NAMES}
        known |= {"empty": lambda node, run: False, "report": lambda line: None}
        return LeaseKeeper(store, run, slots or (A0, A1), **(known | fields))

    return make


def hold(store: Store, *slots: Slot, run: str = "holder", ttl_s: float = 600, ago: float = 0) -> None:
    assert store.leases.acquire(run, slots, owner="other", ttl_s=ttl_s, now=time.time() - ago)


def test_free_slots_are_had_and_given_back(store: Store, keeper: Callable[..., LeaseKeeper]) -> None:
    with keeper() as held:
        assert held.fence > 0
        assert {(lease.node, lease.slot) for lease in store.leases.all()} == {A0, A1}
    assert (store.leases.all(), store.queue.places()) == ([], [])


def test_an_heir_gets_the_leases_before_a_waiting_run(store: Store, keeper: Callable[..., LeaseKeeper]) -> None:
    with keeper() as held:
        store.queue.join("change", [A0], owner="c", ttl_s=60)
        held.heir = lambda: store.runs.create(a_run("heir")) or "heir"
    assert {lease.run for lease in store.leases.all()} == {"heir"}
    with keeper("heir") as later:
        assert later.fence > held.fence
    assert store.leases.all() == []


@pytest.mark.parametrize("trouble", ["", "error", "cancelled"])
def test_ended_run_keeps_a_place_for_the_run_that_follows(
    store: Store, keeper: Callable[..., LeaseKeeper], trouble: str
) -> None:
    cancel = threading.Event()
    with contextlib.suppress(ValueError), keeper(cancel=cancel) as held:
        held.queue_s = 60
        if trouble == "cancelled":
            cancel.set()
        if trouble == "error":
            raise ValueError("the run failed")
    assert store.leases.all() == []
    assert [place.request.run for place in store.queue.places()] == ([] if trouble else ["mine"])


@pytest.mark.parametrize("trouble", ["error", "kept", "cancelled", "heir"])
def test_failed_run_passes_no_slots_to_an_heir(
    store: Store, keeper: Callable[..., LeaseKeeper], trouble: str
) -> None:
    cancel, made = threading.Event(), []

    def create() -> str:
        made.append("heir")
        raise ValueError("no heir")

    with contextlib.suppress(ValueError), keeper(cancel=cancel) as held:
        held.heir = create
        if trouble == "error":
            raise ValueError("the run fails")
        if trouble == "kept":
            held.keep = {A0[0]}
        if trouble == "cancelled":
            cancel.set()
    assert made == (["heir"] if trouble == "heir" else [])
    assert {lease.run for lease in store.leases.all()} == ({"mine"} if trouble == "kept" else set())


def test_a_waiting_run_reports_the_holder_and_starts_in_its_turn(
    store: Store, keeper: Callable[..., LeaseKeeper]
) -> None:
    hold(store, A0, A1)
    store.queue.join("change", [A0], owner="ci", ttl_s=600)
    messages: list[str] = []

    def say(line: str) -> None:
        messages.append(line)
        if len(messages) == 1:
            store.leases.release("holder")
        elif len(messages) == 2:
            store.queue.leave("change")

    with keeper(report=say):
        pass
    assert messages[0].startswith("waiting for node-1 slots 0-1: held by run holder (weekly) since 20")
    assert messages[0].endswith(" UTC; position 2 of 2")
    assert messages[1:] == [
        "waiting for node-1 slot 0: reserved for run change (ci), which is ahead in the queue; position 2 of 2"
    ]


def test_a_wait_has_an_end_and_leaves_no_request(store: Store, keeper: Callable[..., LeaseKeeper]) -> None:
    hold(store, A1)
    with pytest.raises(
        InfraError, match=r"^no free slots within 0.05 s: waiting for node-1 slot 1: held by"
    ) as error:
        keeper(wait_s=0.05).__enter__()
    assert "tipcflow nodes" in error.value.hint
    assert store.queue.places() == []


def test_a_user_ends_the_wait(store: Store, keeper: Callable[..., LeaseKeeper]) -> None:
    hold(store, A0)
    cancel = threading.Event()
    with pytest.raises(InfraError, match="stopped while waiting"):
        keeper(cancel=cancel, report=lambda line: cancel.set()).__enter__()
    assert store.queue.places() == []


def test_expired_lease_is_taken_only_from_an_empty_node(
    store: Store, keeper: Callable[..., LeaseKeeper], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHECK_EVERY_S", 0.05)
    hold(store, A0, A1, ttl_s=60, ago=3600)
    requests: list[tuple[str, str]] = []
    messages: list[str] = []

    def empty(node: str, run: str) -> bool:
        requests.append((node, run))
        return len(requests) == 3

    with keeper(empty=empty, report=messages.append):
        assert {lease.run for lease in store.leases.all()} == {"mine"}
    assert requests == [("192.0.2.1", "holder")] * 3
    assert len(messages) == 1
    assert "slots 0-1: held by run holder (weekly) since " in messages[0]
    assert ", lease expired at " in messages[0]


def test_only_the_first_in_line_inspects_nodes(store: Store, keeper: Callable[..., LeaseKeeper]) -> None:
    hold(store, A0, ttl_s=60, ago=3600)
    store.queue.join("change", [A0], owner="ci", ttl_s=600)

    def empty(node: str, run: str) -> bool:
        raise AssertionError("it is not its turn")

    assert keeper(empty=empty).try_once()[0] is None


def test_another_controllers_run_is_waited_for(
    store: Store, keeper: Callable[..., LeaseKeeper], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHECK_EVERY_S", 0.02)
    claims = Claims({"192.0.2.1": {"theirs"}}, {"192.0.2.1": {"theirs"}}, {})
    messages: list[str] = []
    with keeper(claims=claims, report=messages.append):
        assert len(store.leases.all()) == 2
    assert messages == [
        "waiting for node-1: run theirs has no lease in this database: other controller or leftover "
        "(see `tipcflow nodes`)"
    ]


def test_claim_is_released_if_the_slots_are_lost_meanwhile(
    store: Store, keeper: Callable[..., LeaseKeeper]
) -> None:
    class Late(Claims):
        def take(self) -> Mapping[str, set[str]]:
            hold(store, A0, run="change")
            return {}

    claims = Late({})
    fence, why = keeper(claims=claims).try_once()
    assert (fence, claims.given_back) == (None, 1)
    assert "held by run change (ci)" in why


def test_asking_without_the_queue_leaves_no_request(store: Store, keeper: Callable[..., LeaseKeeper]) -> None:
    hold(store, A0)
    assert keeper().try_once(queue=False)[0] is None
    assert store.queue.places() == []
    keeper().try_once()
    assert [place.request.run for place in store.queue.places()] == ["mine"]


def test_a_run_gets_its_own_expired_lease_back_whichever_run_waits(
    store: Store, keeper: Callable[..., LeaseKeeper]
) -> None:
    hold(store, A0, A1, run="mine", ttl_s=60, ago=3600)
    store.queue.join("change", [A0], owner="ci", ttl_s=600)
    fence, why = keeper().try_once(queue=False)
    assert (fence is not None, why) == (True, "")
    assert all(lease.live(time.time()) for lease in store.leases.all())


def test_a_lease_that_ran_out_is_taken_again(store: Store, keeper: Callable[..., LeaseKeeper]) -> None:
    with keeper(ttl_s=0.3) as held:
        first = held.fence
        assert store.leases.renew("mine", ttl_s=-5)
        deadline = time.monotonic() + 60
        while not all(lease.live(time.time()) for lease in store.leases.all()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert all(lease.fence > first for lease in store.leases.all())


def test_a_lost_database_ends_the_run_at_the_next_renewal(
    store: Store, keeper: Callable[..., LeaseKeeper], tmp_path: Path
) -> None:
    cancel, messages = threading.Event(), list[str]()
    held = keeper(cancel=cancel, report=messages.append, ttl_s=0.3)
    held.__enter__()
    (tmp_path / "tipcflow.db").unlink()
    assert cancel.wait(20)
    with pytest.raises(DatabaseLostError):
        held.__exit__()
    assert messages == []
