"""A gang that is tried again by its tasks in a real Airflow, each of which has been to the triggerer and back."""

import pytest
from tests.support.scheduler import Scheduler

from tipcflow.domain import FailureClass, Status
from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.run_documents import FailuresDocument

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(600)]
TRAIN = "norm_train_gpus_0,1_autocast_null_nodes_2/train"


def test_training_is_repeated_after_a_network_failure(scheduler: Scheduler) -> None:
    # Each attempt takes longer than a task stays in its worker.
    scheduler.site.edit_params("norm_train:train.py", "norm_train:train.py --inject net@3 --step-time 6")
    dag_run, run = scheduler.certify()
    # Slower than the runs of this chain that other tests have made; what counts here is that it was tried again.
    assert run.status in (Status.PASS, Status.REGRESSION), run.reason
    with scheduler.site.store() as store:
        made = [one for one in store.attempts.of(run.id) if one.step == TRAIN]
        failures = (store.documents.get(run.id, FailuresDocument) or FailuresDocument()).of(made)
        losses = store.measurements.of(run.id, metric="loss")
    assert [one.status for one in made] == [Status.INFRA_FAILURE, Status.PASS]
    first = failures[AttemptKey(TRAIN, 1)]
    assert (first.failure_class, first.again) == (FailureClass.COMMUNICATION, True)
    assert len([one for one in losses if one.attempt == 2]) == 40
    states = scheduler.states(dag_run)
    assert states["train[a]"] == states["train[b]"] == "success"
    logs = scheduler.log(dag_run, "train", map_index=0) + scheduler.log(dag_run, "train", map_index=1)
    assert "communication (the processes could not communicate); root cause: node b, rank 3; retried" in logs
