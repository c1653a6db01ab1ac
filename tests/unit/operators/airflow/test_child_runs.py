import re

import pytest

from tipcflow.domain import InfraError, Status
from tipcflow_operators.airflow.child_runs import MOST_RUNS, ChildRun, Move, child_run_id, next_move

PARENT = "scheduled__2026-11-21T20:00:00+00:00"
FIRST = f"weekly__{PARENT}"
# Airflow's default of [core] allowed_run_id_pattern.
ALLOWED = re.compile(r"^[A-Za-z0-9_.~:+-]+$")


@pytest.mark.parametrize("parent", [PARENT, "by hand/ä b", "x" * 250, "manual__2026~2"])
def test_ids_are_ones_that_airflow_takes(parent: str) -> None:
    ids = [child_run_id(parent, number) for number in (1, 2, MOST_RUNS)]
    assert len(set(ids)) == 3
    for run_id in ids:
        assert ALLOWED.fullmatch(run_id)
        assert len(run_id) <= 250
        assert run_id.startswith("weekly__")


def test_long_parents_with_equal_beginnings_have_different_children() -> None:
    assert child_run_id("x" * 250) != child_run_id("x" * 249)


def move(*seen: ChildRun) -> tuple[Move, str]:
    known = {child_run_id(PARENT, number): one for number, one in enumerate(seen, 1)}
    return next_move(PARENT, lambda run_id: known.get(run_id, ChildRun()))


def test_first_child_run_is_started() -> None:
    assert move() == (Move.START, FIRST)


@pytest.mark.parametrize("status", ["pass", "improvement", "regression", "failed", "config_error"])
@pytest.mark.parametrize("state", ["success", "failed", None])
def test_a_verdict_stays_also_when_its_dag_run_was_deleted(status: str, state: str | None) -> None:
    assert move(ChildRun(state, True, Status(status))) == (Move.KEEP, FIRST)


@pytest.mark.parametrize("state", ["queued", "running"])
@pytest.mark.parametrize("status", [None, Status.PASS, Status.CANCELLED])
def test_active_run_is_awaited_even_if_cleared(state: str, status: Status | None) -> None:
    assert move(ChildRun(state, True, status)) == (Move.WAIT, FIRST)


@pytest.mark.parametrize(
    "seen",
    [
        ChildRun("failed", True, Status.CANCELLED),
        ChildRun("failed", True, Status.INFRA_FAILURE),
        ChildRun("failed", True, None),
        ChildRun("failed", False, None),
        ChildRun(None, True, None),
        ChildRun(None, True, Status.CANCELLED),
    ],
)
def test_run_without_a_verdict_is_followed_by_another_run(seen: ChildRun) -> None:
    assert move(seen) == (Move.START, f"{FIRST}~2")
    assert move(seen, seen) == (Move.START, f"{FIRST}~3")
    assert move(seen, ChildRun("running", True)) == (Move.WAIT, f"{FIRST}~2")
    assert move(seen, ChildRun("success", True, Status.PASS)) == (Move.KEEP, f"{FIRST}~2")


def test_child_run_starts_are_limited() -> None:
    with pytest.raises(InfraError, match=f"was started {MOST_RUNS} times"):
        move(*[ChildRun("failed", True, Status.INFRA_FAILURE)] * MOST_RUNS)
