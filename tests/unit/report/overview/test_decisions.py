"""Rows of quarantines and A/B comparisons."""

from tests.support.stories import T0, a_run

from tipcflow.domain.quarantine.entry import Quarantine
from tipcflow.report.overview.decisions import AbList, ab_row, quarantine_row, state_of
from tipcflow.report.overview.text import csv_of


def test_state_of_a_quarantine_depends_on_time_and_release() -> None:
    made = Quarantine(
        chain="c", mode="m", environment="", check="x", signature="s", owner="o", who="w", why="y", run="r",
        failed=1, judged=2, created_at=T0, expires_at=T0 + 10,
    )  # fmt: skip
    assert state_of(made, T0 + 5) == "active"
    assert state_of(made, T0 + 10) == "expired"
    assert state_of(made.model_copy(update={"released_at": T0 + 1}), T0 + 5) == "released"
    row = quarantine_row(made, clean=1, failed=("r2",), now=T0 + 5)
    assert (row.state, row.clean, row.needed, row.failed_since) == ("active", 1, made.clean_runs, ("r2",))


def test_a_comparison_without_metrics_has_a_row() -> None:
    """A comparison that failed has no metrics, and results of other versions may lack fields."""
    row = ab_row(a_run("r1"), {"verdict": "a run failed"})
    assert (row.status, row.pairs, row.metrics) == ("", 0, ())
    text = csv_of(AbList(at=T0, days=1, comparisons=(row,), running=()))
    assert len(text.splitlines()) == 2
    assert "a run failed" in text
