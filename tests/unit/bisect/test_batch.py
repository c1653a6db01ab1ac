"""The choice of runs at the same time."""

import itertools
import math

import pytest

from tipcflow.bisect.batch import best_batch, error_of_failures, error_of_levels


def information(posterior: list[float], places: list[int], error: float) -> float:
    """Mutual information of the change and the reports, bits, by its definition."""
    noise = -error * math.log2(error) - (1 - error) * math.log2(1 - error) if error else 0.0
    total = 0.0
    for reports in itertools.product((False, True), repeat=len(places)):
        probability = 0.0
        for change, mass in enumerate(posterior, 1):
            likelihood = 1.0
            for place, is_bad in zip(places, reports, strict=True):
                likelihood *= 1 - error if is_bad == (change <= place) else error
            probability += mass * likelihood
        total -= probability * math.log2(probability) if probability else 0.0
    return total - len(places) * noise


def test_equal_probabilities_are_divided_evenly() -> None:
    assert best_batch([1 / 64] * 64, [], 3, 0.0, 32) == [16, 32, 48]
    assert best_batch([1 / 12] * 12, [], 2, 0.0, 6) == [4, 8]


@pytest.mark.parametrize("error", [0.0, 0.1, 0.3])
@pytest.mark.parametrize(
    "posterior",
    [[1 / 9] * 9, [0.4, 0.3, 0.1, 0.1, 0.05, 0.05], [0.02, 0.02, 0.5, 0.02, 0.02, 0.4, 0.02]],
)
def test_batch_has_the_largest_information(posterior: list[float], error: float) -> None:
    found = best_batch(posterior, [], 2, error, None)
    places = range(1, len(posterior))
    pairs = itertools.combinations_with_replacement(places, 2)
    most = max(information(posterior, list(pair), error) for pair in pairs)
    assert information(posterior, found, error) >= 0.98 * most


def test_active_runs_are_not_repeated_without_noise() -> None:
    posterior = [1 / 8] * 8
    (place,) = best_batch(posterior, [4], 1, 0.0)
    assert place in (2, 6)
    assert sorted([4, place, *best_batch(posterior, [4, place], 1, 0.0)]) == [2, 4, 6]


def test_noise_repeats_the_place_that_matters() -> None:
    assert best_batch([0.01, 0.49, 0.49, 0.01], [], 2, 0.3) == [2, 2]
    assert best_batch([0.25, 0.25, 0.25, 0.25], [], 2, 0.0) in ([1, 2], [2, 3], [1, 3])


def test_eight_places_among_many_versions() -> None:
    found = best_batch([1 / 500] * 500, [], 8, 0.05, 250)
    assert len(found) == 8
    assert found == sorted(found)
    assert max(after - before for before, after in itertools.pairwise([0, *found, 500])) <= 120


def test_error_follows_from_the_measurements() -> None:
    assert error_of_levels({0: [1.0, 1.0], 4: [2.0]}, 2) == 0.005, "exact"
    assert error_of_levels({0: [1.0], 4: [2.0]}, 2) == 0.005, "unknown"
    assert error_of_levels({0: [0.0, 2.0], 4: [1.0, 3.0]}, 2) == pytest.approx(0.36, abs=0.01)
    assert error_of_levels({0: [0.0, 9.0], 4: [0.0, 9.0]}, 2) == 0.45
    assert error_of_failures({0: [0.0, 0.0], 4: [1.0, 0.0]}, 2) == 0.25
    assert error_of_failures({0: [0.0], 4: [1.0]}, 2) == 0.005
