import pytest
from tests.support.stories import T0, TRAIN, a_plan, a_run

from tipcflow.domain import Run, Status
from tipcflow.store import Store

MODE = "whole_train_whole_infer"
CHAIN = "clas/resnet50/train"


def ended(
    store: Store, number: float, seconds: float | None, status: Status | None = Status.PASS, **fields: str
) -> Run:
    """A run that began at T0 + number, waited 100 s for slots and took `seconds`; None: it never began."""
    run = a_run(f"run-{number}", **({"chain": CHAIN, "mode": MODE, "created_at": T0 + number} | fields))
    store.runs.create(run, a_plan())
    if seconds is not None:
        begun = T0 + number + 100
        for late in (0, 3):
            attempt = store.attempts.open(run.id, TRAIN, ["node-a"], begun + late)
            store.attempts.close(run.id, TRAIN, attempt, Status.PASS, "", [], begun + late + 1)
    if status is not None:
        store.runs.finish(run.id, status, "", T0 + number + 100 + (seconds or 0))
    return store.runs.get(run.id)


def test_durations_are_medians_of_the_newest_whole_runs(store: Store) -> None:
    for number, seconds in enumerate([9999, 10, 20, 30, 40, 50]):
        ended(store, number, seconds)
    other = "ocr/det/train"
    ended(store, 10, 7, Status.REGRESSION, chain=other)
    ended(store, 11, 9, Status.IMPROVEMENT, chain=other)
    ended(store, 12, 5, mode="lite_train_lite_infer")
    for number, status in enumerate([Status.FAILED, Status.CANCELLED, Status.INFRA_FAILURE, None], 20):
        ended(store, number, 1, status, chain="crashed/early/train")
    ended(store, 30, None, Status.CONFIG_ERROR, chain="never/began/train")
    assert store.history.durations(MODE) == pytest.approx({CHAIN: 30.0, other: 8.0})
    assert store.history.durations("whole_infer") == {}


@pytest.mark.parametrize("trigger", ["bisect", "confirm"])
def test_confirm_and_bisection_runs_are_not_history(store: Store, trigger: str) -> None:
    before = ended(store, 1, 50)
    ended(store, 2, 5, trigger=trigger)
    last = ended(store, 3, 50)
    assert store.history.durations(MODE) == pytest.approx({CHAIN: 50.0})
    assert store.history.earlier(last, 5) == [before]


def test_known_returns_only_stored_runs(store: Store) -> None:
    one, two = ended(store, 1, 5), ended(store, 2, None, None)
    assert store.runs.known([two.id, "unknown", one.id]) == {one.id: one, two.id: two}
    assert store.runs.known([]) == {}


def test_earlier_runs_are_relevant_and_of_the_same_chain_and_mode(store: Store) -> None:
    runs = [ended(store, number, 5, Status.FAILED if number % 2 else Status.PASS) for number in range(4)]
    ended(store, 1000, 5, chain="other/chain/x")
    ended(store, -1, None, None)
    ended(store, 2.5, 5, Status.INFRA_FAILURE)
    ended(store, -2, 5, mode="lite_train_lite_infer")
    assert store.history.earlier(runs[3], 2) == [runs[2], runs[1]]
    assert store.history.earlier(runs[0], 9) == []
