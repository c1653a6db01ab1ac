"""Units of speeds in reasons: those that the suite prints."""

from types import ModuleType

import pytest

from tipcflow.check import CheckContext, Pin
from tipcflow.check.baseline.baseline import against_baseline
from tipcflow.check.baseline.pinned import against_pinned
from tipcflow.config.policy import Floors, MetricRule, Policy
from tipcflow.domain import MetricKey, PastRun
from tipcflow.domain.numbers.measured import ValueKey

RULES = Policy(name="x", floors=Floors(speed=0.2), metrics={"ips": MetricRule()})


@pytest.mark.parametrize(
    ("printed", "unit"),
    [("samples/s", "samples/s"), ("images/s", "images/s"), ("instance/s", "instance/s"), ("", "samples/s")],
)
def test_speed_is_reported_in_the_printed_unit(build: ModuleType, printed: str, unit: str) -> None:
    sample = build.series((23.5,), "ips")[0].model_copy(update={"unit": printed})
    key = MetricKey(build.TRAIN, "", "ips")
    history = tuple(PastRun(run=f"r{number}", medians={key: 23.5}) for number in range(5))
    pins = {key: Pin(value=23.5, run="r-old", who="mia", why="release")}
    context = CheckContext(policy=RULES, history=history, pins=pins)
    facts = build.facts(measurements=(sample,))
    (compared,) = against_baseline(facts, context)
    assert compared.check == "speed.ips"
    assert compared.reason.startswith(f"23.5 {unit}, 1.000 x the baseline 23.5 {unit} of 5 runs")
    assert compared.values[ValueKey.UNIT] == unit
    (pinned,) = against_pinned(facts, context)
    assert pinned.reason == f"23.5 {unit} over 3 runs, 1.000 x what mia pinned (23.5 {unit}, run r-old)"
