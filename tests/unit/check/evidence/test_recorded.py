"""Evidence that was recorded when the plan was made."""

from types import ModuleType

from tipcflow.check import CheckContext
from tipcflow.check.evidence import ran_evidence
from tipcflow.domain import CheckResult, Evidence, Expectation, Source, Status


def judged(build: ModuleType, *recorded: Expectation) -> CheckResult:
    (result,) = ran_evidence(build.facts(), CheckContext(expected=recorded))
    return result


def test_evidence_expected_by_the_plan_is_required(build: ModuleType) -> None:
    """A history that is shorter when the run is judged does not remove requirements; another plan does."""
    gone = Expectation(
        kind=Evidence.METRIC, step=build.TRAIN, metric="top9", source=Source.HISTORY, because="five runs had it"
    )
    other = gone.model_copy(update={"step": "v/nowhere"})
    assert judged(build, other).status is Status.PASS
    result = judged(build, gone, other)
    assert (result.status, "top9 is missing or not a finite number; five runs had it" in result.reason) == (
        Status.FAILED,
        True,
    )
