"""A number that became worse: the reason names what changed since the last good run."""

from types import ModuleType

from tipcflow.check import CheckContext, Confirmation
from tipcflow.check.baseline.baseline import against_baseline
from tipcflow.check.baseline.changes import changed_since
from tipcflow.config.policy import Floors, Policy
from tipcflow.domain import MetricKey, PastRun, Status
from tipcflow.domain.numbers.changes import Origin

KEY = MetricKey("v/train", "", "batch_cost")
BEFORE = Origin(framework="paddlepaddle 3.3.0", suite_commit="a1b2c3d4e5", nodes=("alpha", "beta"))


def _history(*values: float) -> tuple[PastRun, ...]:
    return tuple(PastRun(run=f"r{n}", medians={KEY: value}, origin=BEFORE) for n, value in enumerate(values))


def _context(build: ModuleType, past: tuple[PastRun, ...], confirmed: float) -> CheckContext:
    return CheckContext(
        policy=Policy(name="x", floors=Floors(speed=0.2)),
        history=past,
        confirmation=Confirmation(run="c", medians={KEY: confirmed}),
        run=build.run(framework="paddlepaddle 3.4.0", suite_commit="d4e5f6a7"),
    )


def test_a_regression_names_framework_and_commit(build: ModuleType) -> None:
    facts = build.facts(measurements=tuple(build.series((0.2,), "batch_cost")))
    (result,) = against_baseline(facts, _context(build, _history(*[0.05] * 6), 0.2))
    assert result.status is Status.REGRESSION
    output = "since run r5: framework 3.3.0 -> 3.4.0, suite a1b2c3d -> d4e5f6a"
    assert result.values["changed"] == output
    assert output in result.reason


def test_a_number_that_is_as_usual_names_nothing(build: ModuleType) -> None:
    facts = build.facts(measurements=tuple(build.series((0.05,), "batch_cost")))
    (result,) = against_baseline(facts, _context(build, _history(*[0.05] * 6), 0.05))
    assert result.status is Status.PASS
    assert "changed" not in result.values


def test_earlier_change_names_the_last_good_and_the_first_bad_run(build: ModuleType) -> None:
    past = _history(*[0.05] * 6)
    newer = past[4].origin.model_copy(update={"framework": "paddlepaddle 3.3.9"})
    past = (*past[:4], past[4].model_copy(update={"origin": newer}), past[5])
    context = _context(build, past, 0.2)
    assert changed_since(KEY, build.facts(), context, 4) == "since run r3: framework 3.3.0 -> 3.3.9"
    assert changed_since(KEY, build.facts(), context, 6).startswith("since run r5: framework 3.3.0 -> 3.4.0")
    assert changed_since(MetricKey("other", "", "x"), build.facts(), context) == ""
