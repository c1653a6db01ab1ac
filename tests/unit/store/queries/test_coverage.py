from tests.support.stories import INFER, T0, a_run, record_run

from tipcflow.domain import Status
from tipcflow.store import Store
from tipcflow.store.queries.coverage import LegCount


def test_accepted_runs_of_each_line(store: Store) -> None:
    for number, status in enumerate((Status.PASS, Status.FAILED, Status.PASS, Status.FAILED)):
        run = a_run(f"r{number}", created_at=T0 + number, status=status, ended_at=T0 + number + 1)
        store.runs.create(run)
    store.runs.create(a_run("red", chain="s/red/a", status=Status.FAILED, ended_at=T0 + 9))
    lines = store.states.lines()
    assert store.coverage.accepted(lines, 2) == {"r3": (True, True), "red": (False, False)}
    assert store.coverage.accepted(lines, 3)["r3"] == (True, False)


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
