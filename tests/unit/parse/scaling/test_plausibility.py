"""Which tables of speed-ups are doubtful."""

from tests.unit.parse.scaling.test_scaling import speed

from tipcflow.parse.scaling.plausibility import doubts
from tipcflow.parse.scaling.scaling import scaled

# Medians of DLPerf's arcface runs: from 8 to 16 devices the speed grows 2.34 times.
PUBLISHED = ((1, 1, 397.78), (1, 4, 1540.41), (1, 8, 2545.3), (2, 8, 5953.84), (4, 8, 11084.53))


def test_a_step_beyond_linear_names_the_smaller_topology() -> None:
    rows = scaled([speed(value, nodes, gpus) for nodes, gpus, value in PUBLISHED], 128)
    assert doubts(rows) == [
        "r50: 2n8g is 2.34 times as fast as 1n8g with 2 times the devices, more than linear: "
        "check the measurement of 1n8g"
    ]


def test_linear_and_slightly_more_than_linear_steps_are_plausible() -> None:
    assert doubts(scaled([speed(100.0), speed(205.0, 1, 2), speed(396.0, 1, 4)], 128)) == []


def test_the_spread_of_the_repeats_is_allowed_for() -> None:
    one = [speed(value, repeat=number) for number, value in enumerate((96.0, 100.0, 104.0))]
    assert doubts(scaled([*one, speed(218.0, 1, 2)], 128)) == []
    assert doubts(scaled([speed(100.0), speed(218.0, 1, 2)], 128)) != []


def test_repeats_that_differ_are_reported() -> None:
    one = [speed(value, repeat=number) for number, value in enumerate((80.0, 100.0, 101.0))]
    assert doubts(scaled(one, 128)) == [
        "r50: the 3 repeats of 1n1g differ by 21 %: repeat them on idle nodes",
    ]


def test_more_devices_that_are_slower_are_reported() -> None:
    (note,) = doubts(scaled([speed(100.0), speed(45.0, 1, 2)], 128))
    assert note == (
        "r50: 1n2g is 0.45 times as fast as 1n1g with 2 times the devices: "
        "check for idle devices, a slow network, or nodes that share their CPUs"
    )


def test_other_batch_sizes_are_not_compared() -> None:
    rows = scaled([speed(100.0), speed(400.0, 1, 2)], 128)
    rows[1] = rows[1].model_copy(update={"batch_size_per_device": 64})
    assert doubts(rows) == []


def test_earlier_series_set_the_limit_of_the_spread() -> None:
    quiet = scaled([speed(value, repeat=number) for number, value in enumerate((97.0, 100.0, 101.0))], 128)
    assert doubts(quiet) == []
    assert doubts(quiet, {("1n1g", 128): 0.01}) == [
        "r50: the 3 repeats of 1n1g differ by 4.0 %, in earlier series by 1.0 % on average: "
        "repeat them on idle nodes",
    ]
    noisy = scaled([speed(value, repeat=number) for number, value in enumerate((80.0, 100.0, 101.0))], 128)
    assert doubts(noisy, {("1n1g", 128): 0.12}) == []


def test_earlier_spread_counts_for_a_single_repeat() -> None:
    rows = scaled([speed(100.0), speed(218.0, 1, 2)], 128)
    assert doubts(rows) != []
    assert doubts(rows, {("1n1g", 128): 0.06}) == []
