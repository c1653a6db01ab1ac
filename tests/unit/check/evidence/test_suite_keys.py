"""Which keys of the suite file a first run without any known output of inference names."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tipcflow.check.context import CheckContext
from tipcflow.check.evidence.result import ran_evidence
from tipcflow.check.proof.engine import ran_engine
from tipcflow.config.suite import Prints
from tipcflow.domain import CheckResult, Facts, Status

HINT = (
    "; if the suite prints no AutoLog report, set predictions or prints: {inference: false} in "
    "configs/suites/sample.yaml"
)


def silent(build: ModuleType, **changes: Any) -> Facts:
    facts: Facts = build.facts(**{"engine": {}, "autolog": {}, "predictions": {}, "reports": {}, **changes})
    return facts


def failures(facts: Facts, context: CheckContext) -> list[CheckResult]:
    results = [*ran_evidence(facts, context), *ran_engine(facts, context)]
    return [result for result in results if result.status is Status.FAILED]


def test_first_run_without_known_output_names_keys_and_file(build: ModuleType) -> None:
    found = failures(silent(build), CheckContext())
    assert [result.check for result in found] == ["ran.evidence", "ran.engine", "ran.engine"]
    for result in found:
        assert result.reason.endswith(HINT)
        assert result.reason.count(HINT) == 1


@pytest.mark.parametrize(
    ("context", "changes"),
    [
        (lambda build: CheckContext(prints=Prints(inference=False)), lambda build: {}),
        (lambda build: CheckContext(history=(build.past(),)), lambda build: {}),
        (
            lambda build: CheckContext(),
            lambda build: {"predictions": {f"{build.INFER}/{build.ON}": {"a.png": (0.9, 0.1)}}},
        ),
    ],
    ids=["declared", "history", "another leg prints"],
)
def test_silence_with_another_cause_names_no_keys(
    build: ModuleType,
    context: Callable[[ModuleType], CheckContext],
    changes: Callable[[ModuleType], dict[str, Any]],
) -> None:
    found = failures(silent(build, **changes(build)), context(build))
    assert found
    assert not any("configs/suites" in result.reason for result in found)
