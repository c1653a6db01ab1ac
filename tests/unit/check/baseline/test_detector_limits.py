"""The detector's limits, for `tipcflow gate` and certificates: computed in time, and reported as cut if not."""

import random
from collections.abc import Callable
from itertools import count

import pytest

from tipcflow.check.baseline.detector_limits import YEARS, gate_limits, gate_section
from tipcflow.check.baseline.level import level_of
from tipcflow.config.policy import DetectRule, MetricRule, Policy
from tipcflow.domain import MetricKey, PastRun

pytestmark = pytest.mark.slow

POLICY = Policy(name="p")


def history(runs: int, numbers: int = 3) -> tuple[PastRun, ...]:
    source = random.Random(1)
    names = [MetricKey("v/infer", f"leg{n}", "inference_time") for n in range(numbers)]
    still = {MetricKey("v/train", "", "epoch_time"): 1.0, MetricKey("v/eval", "", "eval.top1"): 0.7}
    return tuple(
        PastRun(run=f"r{at}", medians={name: 5 + source.gauss(0, 0.05) for name in names} | still)
        for at in range(runs)
    )


def ticking(step: float) -> Callable[[], float]:
    at = count()
    return lambda: next(at) * step


def test_every_evaluated_metric_has_a_row() -> None:
    rows = gate_limits(history(10, 1), POLICY)
    assert [(row["step"], row["leg"], row["metric"]) for row in rows] == [
        ("v/eval", "", "eval.top1"),
        ("v/infer", "leg0", "inference_time"),
    ], "epoch_time is not judged"
    found = rows[1]
    assert (found["runs"], found["simulated_years"], found["cut"]) == (10, YEARS, False)
    assert 0.005 < found["sigma"] < 0.02
    assert found["smallest"] > POLICY.floors.speed
    assert 0 <= found["false_per_year"] < 0.5


def test_a_young_history_knows_nothing_and_takes_no_time() -> None:
    made = gate_section(history(7), POLICY, within_s=0, clock=ticking(1.0))
    assert {row["smallest"] for row in made["numbers"]} == {None}
    assert (made["cut"], made["false_per_year"], made["simulated_years"]) == ("", None, 0)


def test_after_the_time_limit_the_rest_is_reported_as_cut() -> None:
    made = gate_section(history(10, 4), POLICY, within_s=2.5, clock=ticking(1.0))
    cut = [row["cut"] for row in made["numbers"]]
    assert cut == [False, False, True, True, True]
    assert all(row["smallest"] is not None for row in made["numbers"]), "what costs no time is known all the same"
    assert [row["false_per_year"] is None for row in made["numbers"]] == cut
    assert made["cut"] == "false-alert rate unknown for 3 of 5 metrics (time limit 2.5 s)"
    assert made["false_per_year"] is not None


def test_many_numbers_share_the_time() -> None:
    made = gate_section(history(8, 20), POLICY, within_s=0.6, clock=ticking(0.0))
    assert {row["simulated_years"] for row in made["numbers"]} == {20.0}, "19, in series of 2"
    assert made["simulated_years"] == 20.0 * 21


def test_detector_limits_use_the_same_runs_as_the_checks() -> None:
    """The last `history` runs of the level that a next run is compared with, by the number's own floor."""
    key, source = MetricKey("v/train", "", "batch_cost"), random.Random(3)
    values = [10 + source.gauss(0, 0.05) for _ in range(40)] + [5 + source.gauss(0, 0.02) for _ in range(14)]
    past = tuple(PastRun(run=f"r{at}", medians={key: value}) for at, value in enumerate(values))
    for runs in (30, 52):
        policy = POLICY.model_copy(update={"history": runs})
        (row,) = gate_limits(past, policy)
        level = level_of(values, "batch_cost", policy)
        assert row["runs"] == len(level.runs) == 14, "the slower level before is another history"
        assert row["sigma"] < 0.01
    quiet = tuple(PastRun(run=f"r{at}", medians={key: 1 + 0.001 * (at % 3)}) for at in range(60))
    assert [gate_limits(quiet, POLICY.model_copy(update={"history": runs}))[0]["runs"] for runs in (20, 30)] == [
        20,
        30,
    ]


def test_the_floor_is_the_numbers_own() -> None:
    assert POLICY.gate_of("batch_cost").floor == POLICY.floors.speed
    assert POLICY.gate_of().floor == POLICY.detect.floor
    own = POLICY.model_copy(update={"detect": DetectRule(speed_floor=0.02)})
    assert [own.gate_of(name).floor for name in ("batch_cost", "peak_rss")] == [0.02, POLICY.floors.memory]
    assert own.gate_of("batch_cost", MetricRule(floor=0.3)).floor == 0.3, "the floor of the metric itself"
