"""What the framework probe saw of predictors proves legs of suites that print nothing about inference."""

from types import ModuleType
from typing import Any

import pytest

from tipcflow.check.context import CheckContext
from tipcflow.check.evidence.predictors import predictor_runs, predictor_settings
from tipcflow.check.evidence.result import ran_evidence
from tipcflow.check.proof.engine import ran_engine
from tipcflow.config.suite import Prints
from tipcflow.domain import Facts, ProcessReport, Status

QUIET = CheckContext(prints=Prints(inference=False))
FLAGS = {"gpu": 0, "onednn": 1, "tensorrt": 0, "threads": 1}


def seen(build: ModuleType, *, runs: int = 3, flags: tuple[dict[str, int], ...] = (FLAGS,)) -> Facts:
    """A run whose legs print nothing, with what the probe saw in their processes."""
    report = ProcessReport(framework="paddle", predictors=flags, predictions=runs)
    legs = {build.ON, build.OFF}
    kept = [record for record in build.records() if record.leg not in legs]
    own = [build.record(build.INFER, "alpha", leg, probed=True, processes=(report,)) for leg in sorted(legs)]
    facts: Facts = build.facts(engine={}, autolog={}, predictions={}, reports={}, records=(*kept, *own))
    return facts


def problems(results: list[Any]) -> list[str]:
    return [result.reason for result in results if result.status is Status.FAILED]


def test_a_predictor_that_ran_proves_a_silent_leg(build: ModuleType) -> None:
    facts = seen(build)
    assert problems(ran_evidence(facts, QUIET)) == []
    assert problems(ran_engine(facts, QUIET)) == []


@pytest.mark.parametrize(("runs", "flags"), [(0, (FLAGS,)), (0, ())])
def test_a_predictor_that_did_not_run_proves_nothing(
    build: ModuleType, runs: int, flags: tuple[dict[str, int], ...]
) -> None:
    facts = seen(build, runs=runs, flags=flags)
    assert "the framework probe observed no run of a predictor" in problems(ran_evidence(facts, QUIET))[0]
    assert len(problems(ran_engine(facts, QUIET))) == 2


def test_a_suite_that_should_print_must_print(build: ModuleType) -> None:
    facts = seen(build)
    assert "no AutoLog report and no prediction" in problems(ran_evidence(facts, CheckContext()))[0]
    assert len(problems(ran_engine(facts, CheckContext()))) == 2


def test_another_device_than_declared_is_seen(build: ModuleType) -> None:
    facts = seen(build, flags=({**FLAGS, "gpu": 1},))
    assert problems(ran_engine(facts, QUIET)) == ["declared device=cpu, ran with device=gpu"] * 2


def test_only_declared_onednn_and_threads_settings_count(build: ModuleType) -> None:
    """Paddle 3 enables oneDNN by itself."""
    (open_questions,) = ran_engine(seen(build, flags=({**FLAGS, "threads": 9},)), QUIET)
    assert open_questions.status is Status.INSUFFICIENT_DATA
    reported = {leg: names for leg, _, names in (text.partition(" ") for text in open_questions.values["legs"])}
    assert "onednn" not in reported[build.ON]
    assert "onednn" in reported[build.OFF]
    assert "threads" in reported[build.ON]


def test_settings_on_which_all_predictors_agree_are_returned(build: ModuleType) -> None:
    facts = seen(build, flags=(FLAGS, {**FLAGS, "threads": 4}))
    step = next(step for step in facts.plan.steps if step.id == build.INFER)
    assert predictor_settings(facts, step, build.ON) == {"device": "cpu", "onednn": "1", "tensorrt": "0"}
    assert predictor_runs(facts, step, build.ON) == 3
    assert predictor_settings(seen(build, flags=()), step, build.ON) == {}
