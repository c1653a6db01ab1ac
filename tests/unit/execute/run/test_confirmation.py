"""Confirm runs get slots without a gap in which a waiting run takes them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.stories import T0, TRAIN, a_plan, a_run, open_store, record_run

from tipcflow.config.policy import Policy
from tipcflow.domain import CheckResult, Status
from tipcflow.domain.run_documents import ConfirmationDocument
from tipcflow.execute.request import RunRequest
from tipcflow.execute.run.confirmation import queue_confirmation
from tipcflow.execute.verdict import confirm
from tipcflow.store import Store

SLOTS = [("192.0.2.1", 0)]
POLICY = Policy(name="three", confirm_runs=3)
Queue = Callable[[str], str]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "t.db") as made:
        record_run(made, a_run(created_at=T0), status=None)
        made.runs.create(a_run("rival", trigger="ci"))
        yield made


@pytest.fixture
def request_next(store: Store, tmp_path: Path) -> Queue:
    run = a_run().id
    request = RunRequest("f.txt", "sample", "lite_train_lite_infer", "local", tmp_path)

    def queue(child: str) -> str:
        made = queue_confirmation(
            store,
            run,
            request,
            SLOTS,
            ttl_s=60,
            send_request=lambda: confirm.request_confirmation(store, store.runs.get(run), POLICY, child),
        )
        return made[0].run if made else ""

    return queue


def doubt(store: Store, *, shown: int = 0) -> None:
    """Store a check that requests a confirm run, after that many that showed the change."""
    values = {"confirm": True} | ({"confirmed_by": shown} if shown else {})
    known = {"check": "speed.batch_cost", "status": Status.UNCONFIRMED, "reason": "slower", "step": TRAIN}
    store.checks.replace(a_run().id, [CheckResult(**known, values=values)])


def measure(store: Store, child: str, request: RunRequest, status: Status = Status.PASS) -> bool:
    """Let a confirm run get its slots and end; return whether it keeps its place."""
    assert store.leases.acquire(child, SLOTS, owner="o", ttl_s=60)
    store.plans.replace(child, a_plan())
    store.steps.set(child, TRAIN, status)
    kept = confirm.may_be_followed(store, request, child, POLICY)
    store.leases.release(child, queue_s=60 if kept else None)
    store.runs.finish(child, status, "", store.now())
    return kept


@pytest.fixture
def child_request(tmp_path: Path) -> RunRequest:
    return RunRequest("f.txt", "sample", "lite_train_lite_infer", "local", tmp_path, confirms=a_run().id)


def waiting(store: Store) -> list[str]:
    return [place.request.run for place in store.queue.places()]


def test_further_confirm_run_gets_the_place_that_the_last_one_kept(
    store: Store, request_next: Queue, child_request: RunRequest
) -> None:
    doubt(store)
    assert request_next("c1") == "c1"
    store.queue.join("rival", SLOTS, owner="r", ttl_s=60)
    assert waiting(store) == ["c1", "rival"]
    for last, child, shown in (("c1", "c2", 1), ("c2", "c3", 2)):
        assert measure(store, last, child_request)
        assert waiting(store) == [last, "rival"]
        assert store.leases.acquire("rival", SLOTS, owner="r", ttl_s=60) is None
        doubt(store, shown=shown)
        assert request_next(child) == child
        assert waiting(store) == [child, "rival"]
    assert not measure(store, "c3", child_request), "none follows the third"
    assert request_next("c4") == ""
    assert waiting(store) == ["rival"]
    found = confirm.confirm_request_of(store, a_run().id)
    assert found
    assert (found.run, found.earlier) == ("c3", ("c1", "c2"))


def test_place_is_dropped_if_no_further_confirm_run_is_needed(
    store: Store, request_next: Queue, child_request: RunRequest
) -> None:
    doubt(store)
    assert request_next("c1") == "c1"
    assert measure(store, "c1", child_request)
    store.checks.replace(a_run().id, [])
    assert request_next("c2") == ""
    assert waiting(store) == []


@pytest.mark.parametrize("status", [Status.FAILED, Status.INFRA_FAILURE, Status.CANCELLED])
def test_confirm_run_that_did_not_measure_keeps_no_place(
    store: Store, request_next: Queue, child_request: RunRequest, status: Status
) -> None:
    doubt(store)
    assert request_next("c1") == "c1"
    assert not measure(store, "c1", child_request, status)
    doubt(store, shown=1)
    assert request_next("c2") == "", "and none follows it"
    assert waiting(store) == []


def test_run_that_confirms_no_other_keeps_no_place(store: Store, tmp_path: Path) -> None:
    request = RunRequest("f.txt", "sample", "lite_train_lite_infer", "local", tmp_path)
    assert not confirm.may_be_followed(store, request, "rival", POLICY)


def test_confirm_run_that_is_not_awaited_keeps_no_place(store: Store, child_request: RunRequest) -> None:
    store.documents.put(a_run().id, ConfirmationDocument(run="c1", keys=(TRAIN,), until=0, refused="paused"))
    assert not confirm.may_be_followed(store, child_request, "c1", POLICY)
