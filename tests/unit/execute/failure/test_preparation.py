"""A step that misses a file after a download failed in its preparation."""

import pytest

from tipcflow.domain import Status
from tipcflow.domain.run.failure import Failure, FailureClass, Suspicion
from tipcflow.execute.failure.outcome import Outcome
from tipcflow.execute.failure.preparation import attributed_to_preparation

WGET = "wget: unable to resolve host address ‘data.example’"
SUSPICIONS = [
    Suspicion(failure_class=FailureClass.DISK, step="prepare", node="a", log_line="tar: No space left on device"),
    Suspicion(failure_class=FailureClass.DOWNLOAD, step="prepare", node="b", log_line=WGET),
]


def failed(kind: FailureClass) -> Outcome:
    return Outcome(Status.FAILED, "a required file is missing", Failure(failure_class=kind, node="b"))


def test_a_missing_file_is_the_failed_download_on_that_node() -> None:
    result = attributed_to_preparation(failed(FailureClass.DATA_MISSING), SUSPICIONS)
    assert result.status is Status.INFRA_FAILURE
    assert result.reason == f"a download failed in prepare on node b: {WGET}; therefore a required file is missing"
    assert result.failure is not None
    assert (result.failure.failure_class, result.failure.cause) == (FailureClass.DOWNLOAD, "prepare")


@pytest.mark.parametrize("kind", [FailureClass.CODE_ERROR, FailureClass.OOM_HOST])
def test_other_failures_keep_their_class(kind: FailureClass) -> None:
    assert attributed_to_preparation(failed(kind), SUSPICIONS) == failed(kind)


def test_without_a_failed_download_a_missing_file_is_the_models_failure() -> None:
    assert attributed_to_preparation(failed(FailureClass.DATA_MISSING), []).status is Status.FAILED
    assert attributed_to_preparation(Outcome(Status.PASS), SUSPICIONS) == Outcome(Status.PASS)
