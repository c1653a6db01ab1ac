"""Place and expected start of runs that wait for slots."""

import pytest
from tests.support.stories import T0, a_run, record_run

from tipcflow.config.repository import Repository
from tipcflow.domain import Status
from tipcflow.github.flow.observe import certified, check_subject, digest, facts_of, from_json, report, seen_chains
from tipcflow.github.flow.queue import Forecast, forecast_waits, forecasts
from tipcflow.store import Lease, LeaseRequest, Place, Store
from tipcflow.store.github.attempts import RUNNING, PullAttempt, StartedChain

A, B = ("a", 0), ("b", 0)


def held(slot: tuple[str, int], run: str, since: float = 0.0) -> Lease:
    return Lease(node=slot[0], slot=slot[1], run=run, owner="o", fence=1, acquired_at=since, expires_at=1e9)


def place(
    run: str,
    *slots: tuple[str, int],
    held: tuple[Lease, ...] = (),
    ahead: tuple[LeaseRequest, ...] = (),
    at: float = 100.0,
) -> Place:
    request = LeaseRequest(run=run, slots=slots, owner="o", priority=0, created_at=0.0, expires_at=1e9)
    return Place(request=request, held=held, ahead=ahead, of=1 + len(ahead), at=at)


def test_run_starts_when_the_last_of_its_slots_is_free() -> None:
    first = place("r1", A, B, held=(held(A, "h1", 40.0), held(B, "h2", 90.0)))
    assert forecasts([first], {"h1": 70.0, "h2": 60.0}) == {"r1": Forecast(1, 50.0)}


def test_run_waits_for_earlier_runs() -> None:
    first = place("r1", A, held=(held(A, "h1", 40.0),))
    second = place("r2", A, held=(held(A, "h1", 40.0),), ahead=(first.request,))
    found = forecasts([first, second], {"h1": 70.0, "r1": 30.0})
    assert found == {"r1": Forecast(1, 10.0), "r2": Forecast(2, 40.0)}


def test_overdue_holder_is_expected_to_end_now() -> None:
    assert forecasts([place("r1", A, held=(held(A, "h1"),))], {"h1": 5.0}) == {"r1": Forecast(1, 0.0)}


@pytest.mark.parametrize("durations", [{}, {"r1": 30.0}])
def test_start_after_a_run_of_unknown_duration_is_unknown(durations: dict[str, float]) -> None:
    first = place("r1", A, held=(held(A, "h1"),))
    second = place("r2", A, B, held=(held(A, "h1"),), ahead=(first.request,))
    found = forecasts([first, second], durations)
    assert found == {"r1": Forecast(1, None), "r2": Forecast(2, None)}


def test_duration_of_a_run_ahead_is_unknown() -> None:
    first, second = place("r1", A), place("r2", A)
    assert forecasts([first, second], {})["r2"].start_s is None


@pytest.fixture
def waiting(store: Store, repository: Repository) -> PullAttempt:
    """An attempt whose run is second in the queue; the chain takes 20 s."""
    record_run(store, a_run("old", created_at=T0 - 1000))
    for number, run in enumerate(("h", "r1", "mine")):
        store.runs.create(a_run(run, created_at=T0 + number))
    assert store.leases.acquire("h", [A], owner="o", ttl_s=60)
    for run in ("r1", "mine"):
        store.queue.join(run, [A], owner="o", ttl_s=60)
    chain = StartedChain(chain=a_run().chain, run="mine")
    store.pulls.add(
        PullAttempt(
            repository=repository.name, number=7, head_sha="a" * 40, attempt=1, request="head", state=RUNNING,
            chains=(chain,),
        )
    )  # fmt: skip
    (mine,) = store.pulls.living()
    return mine


def test_check_run_of_a_waiting_run_has_place_and_start(
    store: Store, repository: Repository, waiting: PullAttempt
) -> None:
    assert not report(store, waiting, repository)
    message = store.messages.get(repository.name, "check", check_subject(waiting))
    assert message is not None
    check = from_json(message.body)
    assert (check.status, check.title) == ("queued", "1 chain queued, place 2 in the queue, starts in about 1 min")


def test_report_is_written_again_when_the_place_changes(store: Store, waiting: PullAttempt) -> None:
    before = digest(waiting, seen_chains(store, waiting))
    store.queue.leave("r1")
    assert digest(waiting, seen_chains(store, waiting)) != before
    assert forecast_waits(store)["mine"].place == 1


def test_run_that_has_its_slots_has_no_place(store: Store, repository: Repository, waiting: PullAttempt) -> None:
    store.queue.leave("r1")
    store.queue.leave("mine")
    facts = facts_of(store, waiting, repository, certified(store, waiting))
    assert (facts.place, facts.start_s) == (0, None)
    store.runs.finish("mine", Status.PASS, "", T0 + 30)
    assert seen_chains(store, waiting)[0].waits is None
