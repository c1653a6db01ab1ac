"""parity.chain: every leg against the network before its export."""

from types import ModuleType

import pytest

from tipcflow.check import CheckContext
from tipcflow.check.parity_chain import parity_chain
from tipcflow.domain import CheckResult, Facts, Status

PASS, FAILED, OPEN = Status.PASS, Status.FAILED, Status.INSUFFICIENT_DATA


def judged(facts: Facts) -> list[CheckResult]:
    return parity_chain(facts, CheckContext())


def with_network(build: ModuleType, step: str, **rows: tuple[float, ...]) -> Facts:
    """The good run whose step printed what the network says; some images otherwise."""
    both = build.predictions()
    both[step] = {**both[f"{build.INFER}/{build.OFF}"], **{f"{name}.png": row for name, row in rows.items()}}
    return build.facts(predictions=both)


@pytest.mark.parametrize("source", ["EXPORT", "EVAL"])
def test_every_leg_is_compared_with_the_network(build: ModuleType, source: str) -> None:
    step = getattr(build, source)
    results = judged(with_network(build, step))
    assert [(one.leg, one.status) for one in results] == [(build.ON, PASS), (build.OFF, PASS)]
    assert results[0].values["compared_with"] == step


def test_an_export_that_changed_the_network(build: ModuleType) -> None:
    results = judged(with_network(build, build.EXPORT, b=(0.1, 0.5, 0.4)))
    assert [one.status for one in results] == [FAILED, FAILED]
    assert "image b.png, against the network in v/export" in results[0].reason


def test_a_network_that_answers_one_class_proves_nothing(build: ModuleType) -> None:
    dead = dict.fromkeys("abc", (0.9, 0.05, 0.05))
    results = judged(with_network(build, build.EXPORT, **dead))
    assert {one.status for one in results} == {OPEN}
    assert results[0].reason == "all 3 images got the same class: parity would mean nothing"


def test_other_images(build: ModuleType) -> None:
    results = judged(with_network(build, build.EXPORT, d=(0.1, 0.8, 0.1)))
    assert {one.status for one in results} == {OPEN}
    assert results[0].reason.startswith("not the same images as in v/export: 1 images")


def test_a_network_that_printed_nothing_is_said_once(build: ModuleType) -> None:
    (result,) = judged(build.facts())
    assert (result.status, result.leg) == (OPEN, "")
    assert result.reason == "neither the export nor the evaluation printed predictions of the network itself"
