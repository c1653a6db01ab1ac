"""Columns, rows and cells of the matrix."""

from tipcflow.domain import Status
from tipcflow.report.overview.matrix import Outcome, frequent_first, make_row, worst_models

P, R, F = Status.PASS, Status.REGRESSION, Status.FAILED


def test_the_most_frequent_columns_are_sorted_by_name() -> None:
    assert frequent_first([["b", "b", "a"], ["c", "a"], ["c"]], 2) == ("a", "c")


def test_models_by_their_worst_run_then_by_the_number_of_bad_ones() -> None:
    states = {"fine": [P], "two": [R, R], "one": [R, P], "broken": [F]}
    assert worst_models(states) == ["broken", "two", "one", "fine"]


def test_a_cell_is_the_newest_of_the_worst_runs() -> None:
    outcomes = [
        Outcome(column="build", chain="s/a/f", status=status, run=run, started_at=at)
        for status, run, at in ((P, "r3", 3.0), (R, "r2", 2.0), (R, "r1", 1.0))
    ]
    row = make_row(["s/a/f"], [P, R], outcomes)
    assert (row.suite, row.model, row.status, row.bad) == ("s", "a", R, 1)
    cell = row.cells["build"]
    assert (cell.status, cell.run, cell.runs, cell.bad, cell.sign) == (R, "r2", 3, 2, "▼")
