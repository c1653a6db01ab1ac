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
        ("batch_cost", {4: [1.3, 0.9] * 2, 0: [1.0, 0.7] * 2}, [], [0]),
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


EARLIER = [0.98, 1.02, 1.05, 0.95, 1.0, 1.03, 0.97, 1.0, 1.04, 0.96]


def test_earlier_runs_count_as_measurements_of_the_good_end() -> None:
    """The noise is 0.03: two runs of each end do not show a difference of 0.08, with ten earlier runs they do."""
    subject = Subject("s/m/f", "mode", "spec", "batch_cost", "train")
    values = {4: [1.06, 1.1], 0: [1.0, 1.01]}
    assert ends_to_measure(Measured(values, noise_values=EARLIER), subject, COMMITS, []) is None
    less = {4: [1.04, 1.06], 0: [1.0, 1.01]}
    assert ends_to_measure(Measured(less, noise_values=EARLIER), subject, COMMITS, []) == [4]


@pytest.mark.parametrize(("bad", "runs"), [([1.0, 1.02, 0.99, 1.01], 4), ([1.02, 1.04, 1.0, 1.03, 1.01, 1.02], 6)])
def test_ends_that_do_not_differ_are_an_error(bad: list[float], runs: int) -> None:
    subject = Subject("s/m/f", "mode", "spec", "batch_cost", "train")
    measured = Measured({4: bad, 0: [1.0, 1.0]}, noise_values=EARLIER)
    with pytest.raises(ConfigError, match=f"not worse at the bad end.*found '2 and {runs} runs'"):
        ends_to_measure(measured, subject, COMMITS, [])
    assert ends_to_measure(Measured({4: bad[:-1], 0: [1.0, 1.0]}, noise_values=EARLIER), subject, COMMITS, []) == [
        4
    ]
