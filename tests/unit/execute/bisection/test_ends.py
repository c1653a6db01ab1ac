"""The ends of a bisection: what is given, and what is measured first."""

import pytest

from tipcflow.domain import ConfigError
from tipcflow.execute.bisection.commits import Commit
from tipcflow.execute.bisection.ends import check_given, ends_to_measure
from tipcflow.execute.bisection.measured import Measured
from tipcflow.execute.bisection.subject import FAILURE, Subject

COMMITS = tuple(Commit(f"{number}" * 40, f"Change {number}") for number in range(5))


@pytest.mark.parametrize(
    ("ends", "builds", "words"),
    [
        (("", "", ""), False, "--good, --bad: not given"),
        (("v1", "", ""), False, "--bad: not given"),
        (("v1", "", ""), True, "--builds: lists the good and the bad build"),
        (("v1", "v2", "main"), False, "--suite-ref: is for --builds"),
    ],
)
def test_ends_are_two_refs_or_a_list(ends: tuple[str, str, str], builds: bool, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        check_given(*ends, has_builds=builds)


@pytest.mark.parametrize(
    ("name", "values", "active", "expected"),
    [
        ("batch_cost", {}, [], [4, 4, 0, 0]),
        ("batch_cost", {}, [4], [4, 0, 0]),
        ("batch_cost", {}, [4, 4, 0, 0], []),
        ("batch_cost", {4: [1.2]}, [0], [4, 0]),
        ("batch_cost", {4: [1.2, 1.2], 0: [1.0, 1.0]}, [], None),
        ("batch_cost", {4: [1.2, 0.9], 0: [1.0, 1.1]}, [], [0]),
        ("batch_cost", {4: [1.2, 0.9], 0: [1.0, 1.1]}, [0], []),
        (FAILURE, {}, [], [4, 4, 4, 0, 0]),
        (FAILURE, {4: [1.0, 1.0, 1.0]}, [], [0, 0]),
        (FAILURE, {4: [1.0, 1.0, 1.0], 0: [0.0, 0.0]}, [], None),
    ],
)
def test_missing_measurements_of_the_ends_are_named(
    name: str, values: dict[int, list[float]], active: list[int], expected: list[int] | None
) -> None:
    subject = Subject("s/m/f", "mode", "spec", name, "train")
    assert ends_to_measure(Measured(values), subject, COMMITS, active) == expected
