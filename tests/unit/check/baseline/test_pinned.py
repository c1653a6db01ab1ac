"""baseline.pinned: a slow drift is found against what a user pinned, and one slow run is none."""

from types import ModuleType, SimpleNamespace

import pytest

from tipcflow.check import CheckContext, Pin
from tipcflow.check.baseline.pinned import against_pinned
from tipcflow.config.policy import Floors, NodeRule, Policy
from tipcflow.domain import MetricKey, PastRun, Status


def output(
    build: ModuleType, past: list[float], *, pinned: float = 0.05, metric: str = "batch_cost", **rules: object
) -> tuple[Status, str]:
    key = MetricKey(build.TRAIN, "", metric)
    context = CheckContext(
        history=tuple(PastRun(run=f"r{n}", medians={key: value}) for n, value in enumerate(past)),
        pins={key: Pin(value=pinned, run="r-old", who="mia", why="release")},
        policy=Policy(**{"name": "p", "floors": Floors(speed=0.05), **rules}),
    )
    (result,) = against_pinned(build.facts(), context)
    return result.status, result.reason


def test_nothing_is_pinned(build: ModuleType) -> None:
    assert against_pinned(build.facts(), CheckContext()) == []


@pytest.mark.parametrize(
    ("past", "pinned", "status", "words"),
    [
        ([0.05, 0.05], 0.05, Status.PASS, "1.000 x what mia pinned (0.05 s, run r-old)"),
        ([0.05, 0.05], 0.047, Status.REGRESSION, "1.064 x what mia pinned (0.047 s, run r-old); limit 5.0 %"),
        ([0.05, 0.05], 0.06, Status.IMPROVEMENT, "0.833 x"),
        ([0.04, 0.04], 0.04, Status.PASS, "1.000 x"),
        ([0.05], 0.04, Status.INSUFFICIENT_DATA, "1 more runs required"),
        ([], 0.04, Status.INSUFFICIENT_DATA, "2 more runs required"),
        ([0.05, 0.05], 0.0, Status.INSUFFICIENT_DATA, "the pinned value is 0"),
    ],
)
def test_three_runs_have_to_agree(
    build: ModuleType, past: list[float], pinned: float, status: Status, words: str
) -> None:
    found, reason = output(build, past, pinned=pinned)
    assert (found, words in reason) == (status, True), reason


@pytest.mark.parametrize(("gating", "status"), [(True, Status.INSUFFICIENT_DATA), (False, Status.UNCONFIRMED)])
def test_slow_node_excuses_only_if_the_policy_fails_slow_nodes(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch, gating: bool, status: Status
) -> None:
    excuse = SimpleNamespace(node=lambda *_: "but node alpha itself was 2.00 x slower")
    monkeypatch.setattr("tipcflow.check.baseline.pinned.attribution_of", lambda *_: excuse)
    found, reason = output(build, [0.05, 0.05], pinned=0.02, node_health=NodeRule(gating=gating))
    assert (found, reason.endswith("but node alpha itself was 2.00 x slower")) == (status, True)


@pytest.mark.parametrize(
    ("key", "status"),
    [
        (MetricKey("v_repeat_1/train", "", "batch_cost"), Status.INSUFFICIENT_DATA),
        (MetricKey("v/train", "", "peak_rss"), Status.INSUFFICIENT_DATA),
        (MetricKey("v/nowhere", "leg", "inference_time"), Status.INSUFFICIENT_DATA),
        # The training passed, and what was pinned is not logged any more.
        (MetricKey("v/train", "", "throughput"), Status.FAILED),
    ],
)
def test_a_pin_that_matches_no_metric_is_reported(build: ModuleType, key: str, status: Status) -> None:
    context = CheckContext(pins={key: Pin(value=1.0, run="r-old", who="mia", why="release")})
    (result,) = against_pinned(build.facts(), context)
    assert result.status is status
    assert result.reason.startswith(f"mia pinned {key} (")
    assert result.reason.endswith(", run r-old): no value in this run")
    confirms = CheckContext(pins=context.pins, run=build.run(trigger="confirm"))
    assert against_pinned(build.facts(), confirms) == [], "it does not do everything"
