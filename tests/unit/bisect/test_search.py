"""The search finds the version with the stated probability, in about as many runs as the noise requires."""

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tipcflow.bisect import Levels, Noise, Search, level_outcomes, log_failures, log_levels
from tipcflow.bisect.likelihood import log_known


def exact(measured: dict[int, Sequence[float]], versions: int) -> list[float]:
    return log_levels(measured, versions, Noise())


def informed(versions: int, noise: Noise) -> Search:
    """A search that measures the version from which most information is expected."""
    return Search(
        versions,
        lambda measured, places: log_levels(measured, places, noise),
        outcomes=lambda measured, posterior, place: level_outcomes(measured, posterior, place, noise),
    )


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.integers(1, 100), st.booleans(), st.data())
def test_search_without_noise_is_binary(later: int, expects: bool, data: st.DataObject) -> None:
    change = data.draw(st.integers(1, later))
    measured: dict[int, list[float]] = {0: [1.0], later: [2.0]}
    search, runs = informed(later + 1, Noise()) if expects else Search(later + 1, exact), 0
    while not (assessment := search.assess(measured)).certain:
        (version,) = assessment.next
        measured.setdefault(version, []).append(2.0 if version >= change else 1.0)
        runs += 1
    assert assessment.best.versions == (change,)
    assert runs <= math.ceil(math.log2(later)) + 1


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.integers(3, 60), st.data())
def test_versions_that_cannot_be_measured_are_named_together(later: int, data: st.DataObject) -> None:
    change = data.draw(st.integers(1, later))
    skipped = data.draw(st.sets(st.integers(1, later - 1), max_size=later - 1))
    measured: dict[int, list[float]] = {0: [1.0], later: [2.0]}
    search = Search(later + 1, exact)
    for _ in range(200):
        assessment = search.assess(measured, skipped=skipped)
        if assessment.certain:
            break
        (version,) = assessment.next
        assert version not in skipped
        measured.setdefault(version, []).append(2.0 if version >= change else 1.0)
    versions = assessment.best.versions
    assert change in versions
    assert set(versions[:-1]) <= skipped
    assert versions[-1] not in skipped


def trial(source: random.Random, later: int, distance: float, *, known: bool) -> tuple[int, bool, float]:
    """(runs after the ends, whether the result is right, its probability) of a search in noise 1."""
    change = source.randint(1, later)

    def run(version: int) -> float:
        return source.gauss(distance if version >= change else 0.0, 1.0)

    if known:
        levels = Levels(0.0, distance, 1.0)
        search = Search(later + 1, lambda measured, versions: log_known(measured, versions, levels))
        measured = {0: [0.0], later: [distance]}
    else:
        search = informed(later + 1, Noise(1.0, 10))
        measured = {0: [run(0), run(0)], later: [run(later), run(later)]}
    runs = 0
    while not (assessment := search.assess(measured)).certain and runs < 300:
        (version,) = assessment.next
        measured.setdefault(version, []).append(run(version))
        runs += 1
    return runs, assessment.best.versions == (change,), assessment.best.probability


@pytest.mark.slow
@pytest.mark.parametrize("known", [True, False])
def test_the_result_is_as_probable_as_claimed(known: bool) -> None:
    source = random.Random(7)
    trials = [trial(source, 32, 3.0, known=known) for _ in range(120)]
    right = sum(ok for _, ok, _ in trials) / len(trials)
    claimed = sum(probability for _, _, probability in trials) / len(trials)
    assert right >= claimed - 3 * math.sqrt(claimed * (1 - claimed) / len(trials))
    # 6.6 runs are the least that the noise permits: log2(32) / capacity of the channel (0.76 bit).
    assert sum(runs for runs, _, _ in trials) / len(trials) <= 6.6 * (1.15 if known else 1.6)


def test_a_level_that_is_less_known_than_the_version_is_measured_again() -> None:
    """The change is the last version: only the runs of that version show its level."""
    noise = Noise(1.0, 10)
    measured = {0: [0.0] * 6, 7: [0.0, 0.5], 8: [2.2]}
    simple = Search(9, lambda known, versions: log_levels(known, versions, noise))
    for search in (simple, informed(9, noise)):
        assert search.assess(measured).next == (8,)


def test_weights_come_first() -> None:
    weights = (1.0, 1.0, 1.0, 50.0, 1.0, 1.0, 1.0)
    assessment = Search(7, exact, weights).assess({0: [1.0], 6: [2.0]})
    assert assessment.best.versions == (3,)
    assert assessment.next[0] in (2, 3)


def test_several_runs_at_the_same_time_are_spread() -> None:
    assert Search(65, exact).assess({0: [1.0], 64: [2.0]}, count=3).next == (16, 32, 48)


def test_two_versions_need_no_search() -> None:
    assessment = Search(2, log_failures).assess({0: [0.0], 1: [1.0]})
    assert (assessment.certain, assessment.best.versions, assessment.best.probability) == (True, (1,), 1.0)


def test_invalid_arguments_of_a_search_are_refused() -> None:
    with pytest.raises(ValueError, match="a good and a bad"):
        Search(1, exact)
    with pytest.raises(ValueError, match="weights"):
        Search(3, exact, (1.0, 0.0, 1.0))
    with pytest.raises(ValueError, match="must be measured"):
        Search(3, exact).assess({0: [1.0]})
