"""Times of runs from the attempts of their steps."""

from tests.support.stories import INFER, T0, TRAIN, a_plan, a_run

from tipcflow.domain import Status
from tipcflow.store import Store


def test_duration_of_runs_is_from_the_first_start_to_the_last_end(store: Store) -> None:
    for name in ("done", "running", "empty"):
        store.runs.create(a_run(name), a_plan())
    for step, start, end in ((TRAIN, T0, T0 + 60), (INFER, T0 + 70, T0 + 90)):
        number = store.attempts.open("done", step, ["node-a"], start)
        store.attempts.close("done", step, number, Status.PASS, "", [], end)
    store.attempts.open("running", TRAIN, ["node-a"], T0)
    assert store.attempts.took(["done", "running", "empty", "unknown"]) == {"done": 90.0}
    assert [store.attempts.took_s(run) for run in ("done", "running", "empty")] == [90.0, 0.0, 0.0]
    assert store.attempts.took([]) == {}
