"""Order of runs that need the same slots."""

import pytest

from tipcflow.domain.priority import Priority, priority_of
from tipcflow.github.trust import RunKey


@pytest.mark.parametrize(
    "trigger", ["ci", "pull_request", RunKey("o/r", 7, "a" * 40, 1).run_id.partition("__")[0]]
)
def test_changes_precede_users(trigger: str) -> None:
    """Also those that the DAG pull_request starts, by the first part of their run id."""
    assert priority_of(trigger) is Priority.PULL_REQUEST
    assert priority_of("manual") is Priority.PERSON
    assert priority_of("weekly") is Priority.WEEKLY


def test_bisections_are_last() -> None:
    assert priority_of("bisect") is Priority.BISECTION
    assert max(Priority) is Priority.BISECTION
