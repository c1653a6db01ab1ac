"""Units of speeds and accuracies in reasons: those that the suite prints, or declares."""

from types import ModuleType

import pytest

from tipcflow.check import CheckContext, Pin
from tipcflow.check.baseline.baseline import against_baseline
from tipcflow.check.baseline.pinned import against_pinned
from tipcflow.config.policy import Floors, MetricRule, Policy
from tipcflow.config.suite import Prints
from tipcflow.domain import MetricKey, PastRun, Phase
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


@pytest.mark.parametrize(
    ("printed", "declared", "shown"),
    [("%", "", "91.667 %"), ("", "%", "91.667 %"), ("", "", "91.667"), ("%", "1", "91.667")],
)
def test_accuracy_is_reported_in_the_printed_or_declared_unit(
    build: ModuleType, printed: str, declared: str, shown: str
) -> None:
    sample = build.series((91.667,), "top1", step=build.EVAL, phase=Phase.EVAL, unit=printed)
    history = tuple(
        PastRun(run=f"r{number}", medians={MetricKey(build.EVAL, "", "eval.top1"): 91.667}) for number in range(5)
    )
    rules = RULES.model_copy(update={"metrics": {"top1": MetricRule()}})
    context = CheckContext(policy=rules, history=history, prints=Prints(accuracy=declared))
    (compared,) = against_baseline(build.facts(measurements=tuple(sample)), context)
    assert compared.check == "accuracy.history"
    assert compared.reason.startswith(f"{shown}, 1.000 x the baseline {shown} of 5 runs")
