"""Which pair is next, from the runs so far."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.stories import T0, a_run, losses, open_store, record_run

from tipcflow.domain import InfraError, Run, Status
from tipcflow.execute.ab.progress import Limits, Progress, Tried, next_order, progress_of
from tipcflow.store import Store

pytestmark = pytest.mark.slow

NAMES = ("batch_cost",)


Fresh = Callable[[], Store]


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Fresh]:
    """Opens a new database at each call."""
    numbers = itertools.count()
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(open_store(tmp_path / f"{next(numbers)}.db"))


def a_pair(store: Store, tried: list[Tried], *values: float | Status) -> Tried:
    """Store the runs of a pair: their batch_cost, or the status without one."""
    order = next_order(tried)
    runs: list[Run] = []
    for place, value in enumerate(values):
        number = 2 * len(tried) + place
        run = a_run(f"run-{number}", created_at=T0 + 100 * number, trigger="ab")
        if isinstance(value, Status):
            store.runs.create(run)
            store.runs.finish(run.id, value, f"it is {value.value}", run.created_at + 60)
        else:
            run = record_run(store, run)
            store.measurements.add(losses(run.id, [value], metric="batch_cost", unit="s"))
        runs.append(store.runs.get(run.id))
    return Tried(order, tuple(runs))


def progress(store: Store, *pairs: tuple[float | Status, ...], since: int = 0, spent_s: float = 0.0) -> Progress:
    tried: list[Tried] = []
    for values in pairs:
        tried.append(a_pair(store, tried, *values))
    return progress_of(store, NAMES, Limits(pairs=4, budget_s=100), tried, spent_s, since=since)


def test_nothing_has_run_yet(fresh: Fresh) -> None:
    assert next_order([]) == ("A", "B")
    assert progress(fresh()) == Progress(())


def test_a_repeated_pair_has_the_order_of_the_broken_one(fresh: Fresh) -> None:
    store = fresh()
    tried = [a_pair(store, [], 1.0, 1.0)]
    assert next_order(tried) == ("B", "A")
    tried.append(a_pair(store, tried, Status.INFRA_FAILURE))
    assert next_order(tried) == ("B", "A")
    tried.append(a_pair(store, tried, 1.0, 1.0))
    assert next_order(tried) == ("A", "B")
    assert [pair.number for pair in progress_of(store, NAMES, Limits(), tried, 0.0).pairs] == [0, 1]


def test_consecutive_broken_pairs_since_the_resumption_end_the_comparison(fresh: Fresh) -> None:
    good, broken = (1.0, 1.0), (1.0, Status.INFRA_FAILURE)
    assert progress(fresh(), broken, good, broken).why == ""
    with pytest.raises(InfraError, match="the last one, run run-3: it is infra"):
        progress(fresh(), broken, broken)
    assert progress(fresh(), broken, broken, since=2).why == ""


def test_stopped_pair_ends_the_comparison_until_resumed(fresh: Fresh) -> None:
    stopped = progress(fresh(), (1.0, 1.0), (Status.CANCELLED,))
    assert (stopped.why, len(stopped.pairs)) == ("stopped by a user", 1)
    assert progress(fresh(), (1.0, 1.0), (Status.CANCELLED,), since=2).why == ""


def test_the_budget_counts_before_the_next_pair(fresh: Fresh) -> None:
    assert progress(fresh(), (1.0, 1.0), spent_s=99.0).why == ""
    assert progress(fresh(), (1.0, 1.0), spent_s=100.0).why == "the budget of 100 s is used up"


def test_status_follows_the_pairs(fresh: Fresh) -> None:
    assert progress(fresh(), *[(1.0, 1.0)] * 5).status is Status.PASS
    # The order is A B, B A: B is slower in each pair.
    slower = [(1.0, 1.2), (1.2, 1.0), (1.0, 1.2), (1.2, 1.0), (1.0, 1.2)]
    assert progress(fresh(), *slower).status is Status.REGRESSION
    assert progress(fresh(), (1.0, Status.FAILED)).status is Status.FAILED
    assert progress(fresh(), (Status.FAILED, 1.0)).status is Status.UNCONFIRMED
