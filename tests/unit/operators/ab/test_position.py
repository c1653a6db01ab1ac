"""Which run of a comparison is next, from the DAG runs that exist."""

from tests.support.stories import a_run

from tipcflow.domain import Status
from tipcflow_operators.ab.position import ChildRun, Position, position_of

PARENT = "manual__2026"


def position(*seen: Status | None) -> Position:
    """The position after these child runs; None for an active one, and numbers without a run are left out."""
    runs = {
        f"ab__{PARENT}" + (f"~{number}" if number > 1 else ""): ChildRun(True)
        if status is None
        else ChildRun(False, a_run(f"run-{number}", status=status))
        for number, status in enumerate(seen, 1)
    }
    return position_of(PARENT, runs.get)


def test_the_first_run_is_of_a() -> None:
    assert position() == Position((), ("A", "B"), (), f"ab__{PARENT}", False, f"ab__{PARENT}~2")
    assert position().side == "A"


def test_an_active_run_is_the_current_one() -> None:
    active = position(Status.PASS, None)
    assert (active.side, active.dag_run_id, active.is_active) == ("B", f"ab__{PARENT}~2", True)
    assert [run.id for run in active.runs] == ["run-1"]
    assert active.following == "", "the second run of a pair keeps its leases to its end"


def test_the_order_of_the_second_pair_is_reversed() -> None:
    second = position(Status.PASS, Status.REGRESSION)
    assert (second.side, second.dag_run_id, len(second.tried)) == ("B", f"ab__{PARENT}~3", 1)
    assert position(*[Status.PASS] * 3).side == "A"
    assert position(*[Status.PASS] * 4).order == ("A", "B")


def test_a_failed_first_run_is_followed_by_the_second_one() -> None:
    assert position(Status.FAILED).side == "B"


def test_broken_first_run_ends_its_pair_without_changing_the_order() -> None:
    for status in (Status.INFRA_FAILURE, Status.CANCELLED):
        broken = position(status)
        assert (broken.side, broken.dag_run_id, broken.started) == ("A", f"ab__{PARENT}~2", ())
        assert [len(pair.runs) for pair in broken.tried] == [1]


def test_runs_have_consecutive_numbers_also_after_a_broken_pair() -> None:
    after = position(Status.INFRA_FAILURE, Status.PASS, Status.PASS)
    assert after.dag_run_id == f"ab__{PARENT}~4"
    assert [len(pair.runs) for pair in after.tried] == [1, 2]
    assert after.order == ("B", "A")
