"""The throughput of one training log: which iterations count, and where the value comes from."""

import math

import pytest

from tipcflow.domain import ConfigError
from tipcflow.parse.scaling.speeds import Counter, Step, Window, counting, speed_of, steps_in

WINDOW = Window(skip=2, take=3)


def steps(*values: dict[str, float], every: int = 1, seconds: float | None = None) -> list[Step]:
    return [Step(at * every, None if seconds is None else at * seconds, one) for at, one in enumerate(values)]


def test_iterations_that_restart_in_every_epoch_are_counted_over_the_training() -> None:
    counter = Counter()
    assert [counter.at(iteration) for iteration in (0, 10, 20, 0, 10, 20, 0)] == [0, 10, 20, 30, 40, 50, 60]
    counter = Counter()
    assert [counter.at(-1) for _ in range(3)] == [0, 1, 2]


def test_steps_after_the_window_are_not_read() -> None:
    read = []

    def lines() -> object:
        for at in range(100):
            read.append(at)
            yield Step(at, None, {"ips": 1.0})

    assert len(list(counting(lines(), WINDOW))) == 5  # type: ignore[arg-type]
    assert len(read) == 6


def test_speed_is_the_mean_of_the_window_without_nan() -> None:
    report = [{"ips": value} for value in (9e9, 9e9, 100.0, math.nan, 200.0, 9e9)]
    found = speed_of(steps(*report), rule="printed", batch=1, devices=1, window=WINDOW, source="a.log")
    assert found == (150.0, "printed", 3, 1)


def test_time_per_iteration_gives_the_speed_of_all_devices() -> None:
    report = [{"batch_cost": value} for value in (9.0, 9.0, 0.5, 0.25, 0.75)]
    found = speed_of(steps(*report), rule="time", batch=4, devices=8, window=WINDOW, source="a.log")
    assert (found.speed, found.how) == (64.0, "batch_cost")


def test_time_stamps_give_the_speed_without_batch_cost() -> None:
    report = steps(*[{"loss": 1.0}] * 5, every=10, seconds=2.0)
    window = Window(skip=20, take=30)
    found = speed_of(report, rule="time", batch=4, devices=1, window=window, source="a.log")
    assert (found.speed, found.how, found.iterations) == (20.0, "timestamps", 30)


@pytest.mark.parametrize(
    ("report", "rule", "message"),
    [
        ([], "printed", "has no training line"),
        ([{"ips": 1.0}] * 2, "printed", "has 2 iterations, and the first 2 do not count"),
        ([{"loss": 1.0}] * 5, "printed", "prints no speed"),
        ([{"ips": math.nan}] * 5, "printed", "prints no ips that is a number"),
        ([{"loss": 1.0}] * 5, "time", "contains no timing"),
    ],
)
def test_log_without_the_value_is_an_error_with_its_name(
    report: list[dict[str, float]], rule: str, message: str
) -> None:
    with pytest.raises(ConfigError) as error:
        speed_of(steps(*report), rule=rule, batch=1, devices=1, window=WINDOW, source="a.log")
    assert error.value.message.startswith(f"a.log: {message}")


def test_training_lines_of_a_log_have_iteration_time_and_values() -> None:
    lines = [
        (0, "2024/01/02 10:00:00 [Epoch 1, iter: 0] loss: 1, avg_ips: 10"),
        (70, "something else"),
        (90, "2024/01/02 10:00:05 [Epoch 1, iter: 10] loss: 2, avg_ips: 20"),
    ]
    first, second = steps_in(lines)
    assert (first.iteration, second.iteration) == (0, 10)
    assert (second.at or 0) - (first.at or 0) == 5.0
    assert first.values["loss"] == 1.0
