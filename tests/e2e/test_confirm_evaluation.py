"""An accuracy that fell, in a real Airflow: what was trained is evaluated again, before the verdict."""

from collections.abc import Iterator

import pytest
from tests.support.precedents import remember
from tests.support.scheduler import Scheduler

from tipcflow.domain import Run, Status
from tipcflow.execute.verdict import confirm

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(600)]
ASKED = {"suite": "toy", "params_file": "toy/train_infer_python.txt", "mode": "whole_train_whole_infer"}


@pytest.fixture
def worse(scheduler: Scheduler) -> Iterator[Run]:
    """A run whose model evaluates worse than that of those before it."""
    site, script = scheduler.site, scheduler.site.suite / "train.py"
    policy = site.configs / "policies" / "pr.yaml"
    kept, text = policy.read_text(), script.read_text()
    site.configure_policy(accuracy={"too_good": 3, "history": True})
    _, first = scheduler.certify("certify", **ASKED)
    assert first.status is Status.PASS, first.reason
    with site.store() as store:
        remember(store, first, runs=6)
    script.write_text(text.replace("Acc@1 0.875", "Acc@1 0.500"))
    _, run = scheduler.certify("certify", **ASKED)
    yield run
    script.write_text(text)
    policy.write_text(kept)


def test_accuracy_that_fell_is_confirmed_by_evaluating_again(worse: Run, scheduler: Scheduler) -> None:
    with scheduler.site.store() as store:
        requested = confirm.confirm_request_of(store, worse.id)
        assert requested
        child, steps = store.runs.get(requested.run), store.plans.get(requested.run).steps
        ended = [status for status, _ in store.steps.statuses(requested.run).values()]
        reasons = [one.reason for one in store.checks.results(worse.id) if one.status is Status.REGRESSION]
    assert worse.status is Status.REGRESSION, worse.reason
    assert ([step.id.rpartition("/")[2] for step in steps], ended) == (["eval"], [Status.PASS]), child.reason
    assert any("the confirm run measured 0.5" in reason for reason in reasons), reasons
