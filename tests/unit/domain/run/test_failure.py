"""Every class of failure has its consequences, in the code and in the docs."""

import re
from pathlib import Path

import pytest

from tipcflow.domain import Attempt, Failure, FailureClass, Status
from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.run.failure import REMEDIES
from tipcflow.domain.run_documents import FailuresDocument

DOC = Path(__file__).parents[4] / "docs" / "reference" / "failures.md"
ROW = re.compile(r"^\| `(\w+)` \| (.*?) \| `(\w+)` \| (no|once.*?) \| ", re.MULTILINE)


def test_documented_failure_classes_equal_the_code() -> None:
    found = {name: (status, again != "no") for name, _, status, again in ROW.findall(DOC.read_text())}
    expected = {kind.value: (one.status.value, one.retries > 0) for kind, one in REMEDIES.items()}
    assert found == expected


@pytest.mark.parametrize("kind", FailureClass)
def test_every_class_has_a_remedy(kind: FailureClass) -> None:
    remedy = REMEDIES[kind]
    assert remedy.status in (Status.FAILED, Status.INFRA_FAILURE)
    assert remedy.advice.endswith(".")
    assert not remedy.means.endswith(".")


def test_failures_of_the_model_are_not_retried() -> None:
    assert not [kind for kind, one in REMEDIES.items() if one.retries and one.status is Status.FAILED]


def test_root_causes_in_words() -> None:
    failure = Failure(failure_class=FailureClass.HANG, node="b", rank=3)
    assert failure.root_cause == "node b, rank 3"
    assert failure.headline == "hang (no progress); root cause: node b, rank 3"
    assert Failure(failure_class=FailureClass.HANG).headline == "hang (no progress)"
    assert failure.model_copy(update={"again": True}).then == "retried"
    assert Failure.model_validate(failure.model_dump(mode="json")) == failure


def test_only_failures_of_known_attempts_are_read() -> None:
    hang = Failure(failure_class=FailureClass.HANG)
    tried = Attempt(run="r", step="v/train", attempt=1, nodes=("a",), started_at=1.0)
    kept = FailuresDocument({AttemptKey("v/train", 1): hang, AttemptKey("other", 1): hang})
    assert kept.of([]) == {}
    assert kept.of([tried]) == {AttemptKey("v/train", 1): hang}
    assert FailuresDocument().of([tried]) == {}
    assert (kept.before, FailuresDocument({FailuresDocument.BEFORE: hang}).before) == (None, hang)
