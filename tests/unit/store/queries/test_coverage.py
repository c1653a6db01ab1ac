from tests.support.stories import INFER, record_run

from tipcflow.domain import Status
from tipcflow.store import Store
from tipcflow.store.queries.coverage import LegCount


def test_legs_of_the_last_attempt_are_counted(store: Store) -> None:
    run = record_run(store)
    store.steps.set_leg(run.id, INFER, "cpu_onednn_on", 2, Status.FAILED, "exit code 1")
    store.steps.set_leg(run.id, INFER, "gpu", 0, Status.NOT_RUN, "no GPU")
    assert sorted(store.coverage.legs([run.id]), key=lambda count: count.status) == [
        LegCount(run.id, Status.FAILED, "", 1),
        LegCount(run.id, Status.NOT_RUN, "no GPU", 1),
        LegCount(run.id, Status.PASS, "", 1),
    ]
    assert store.coverage.legs([]) == []
