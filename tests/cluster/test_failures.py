"""What went wrong on real nodes: its class, whose fault it is, what was seen before, and what is tried again."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.certify import Site, wait_for
from tests.support.tasks import Tasks

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import EndReason, FailureClass, Status, StepKind
from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.run_documents import FailuresDocument
from tipcflow.execute.run import phases as task_phases
from tipcflow.execute.run import step as step_task

pytestmark = pytest.mark.cluster
TRAIN = "norm_train_gpus_0,1_autocast_null_nodes_2/train"


@pytest.fixture
def site(nodes: LocalNodes, tmp_path: Path) -> Site:
    return Site(tmp_path, nodes)


@pytest.fixture
def tasks(site: Site) -> Iterator[Tasks]:
    made = Tasks(site)
    yield made
    task_phases.release_run(made.context())  # a failed test must not break the next


def inject(site: Site, what: str) -> None:
    site.edit_params("norm_train:train.py", f"norm_train:train.py --inject {what}")


@pytest.mark.full
def test_stalled_rank_is_named_by_the_evidence_of_all_nodes(site: Site) -> None:
    """Rank 3 is in its own code, the others wait for it in a collective: all are silent."""
    inject(site, "stall@3")
    site.configure_policy(hang_s=3)
    outcome = site.run()
    assert outcome.code == 1, outcome.output
    with site.store() as store:
        failure = store.history.facts(outcome.run.id).failures[TRAIN]
    assert (failure.failure_class, failure.root_cause) == (FailureClass.HANG, "node b, rank 3"), outcome.output
    assert "rank 3 on node b is in" in outcome.run.reason
    assert "(prepare_batch)" in outcome.run.reason
    folder = site.home / "runs" / outcome.run.id
    assert {name.split("/")[1] for name in failure.evidence} == {"a", "b"}
    assert all((folder / name).is_file() for name in failure.evidence)
    assert site.left_behind() == []


def test_a_gang_is_tried_again_by_its_tasks_when_the_network_failed(tasks: Tasks) -> None:
    inject(tasks.site, "net@3")
    tasks.begin()
    tasks.step(StepKind.PREPARE, generation=1)
    result = tasks.step(StepKind.TRAIN, generation=1)
    assert {status for status, _ in result.values()} == {Status.PASS}, result
    made = [attempt for attempt in tasks.store.attempts.of(tasks.run) if attempt.step == TRAIN]
    assert [attempt.status for attempt in made] == [Status.INFRA_FAILURE, Status.PASS]
    failures = tasks.store.documents.get(tasks.run, FailuresDocument) or FailuresDocument()
    failure = failures.of(made)[AttemptKey(TRAIN, 1)]
    assert (failure.failure_class, failure.root_cause) == (FailureClass.COMMUNICATION, "node b, rank 3")
    assert failure.again
    assert tasks.store.steps.statuses(tasks.run)[TRAIN] == (Status.PASS, "")
    assert tasks.site.left_behind() != []  # the run still holds its lease


@pytest.mark.full
def test_failed_prepare_on_a_node_does_not_stop_the_others(site: Site) -> None:
    script = site.suite / "test_tipc" / "prepare.sh"
    script.write_text(
        script.read_text()
        + "case $(pwd) in */b/*) echo 'wget: unable to resolve host address' >&2; exit 4 ;; *) sleep 3 ;; esac\n"
    )
    site.configure_policy(retries={"download": 0})
    outcome = site.run()
    assert outcome.code == 5, outcome.output
    with site.store() as store:
        prepare = store.attempts.of(outcome.run.id)[0]
    ends = {record.node: (record.reason, record.exit_code) for record in prepare.records}
    assert ends == {"a": (EndReason.EXITED, 0), "b": (EndReason.EXITED, 4)}
    failure = next(iter(site.facts(outcome.run)["failures"]))
    assert (failure["failure_class"], failure["node"]) == ("download", "b")


def test_clearing_only_the_failed_task_runs_the_whole_gang(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other node's task stays as it ended: only the cleared task handles its part."""
    monkeypatch.setattr(step_task, "TAKEOVER_S", 0.5)
    inject(tasks.site, "net@3")
    tasks.site.configure_policy(retries={"communication": 0})
    tasks.begin()
    tasks.step(StepKind.PREPARE, generation=1)
    assert Status.PASS not in {status for status, _ in tasks.step(StepKind.TRAIN, generation=1).values()}
    assert tasks.step(StepKind.TRAIN, "b", generation=2) == {"b": (Status.PASS, "")}
    assert tasks.store.steps.statuses(tasks.run)[TRAIN] == (Status.PASS, "")
    made = [attempt for attempt in tasks.store.attempts.of(tasks.run) if attempt.step == TRAIN]
    assert [len(attempt.records) for attempt in made] == [2, 2]


@pytest.mark.full
def test_the_runs_budget_cuts_a_step_of_a_task_and_is_reported(tasks: Tasks) -> None:
    tasks.site.configure_suite(budget_minutes=0.1)
    inject(tasks.site, "hang@3")
    tasks.begin()
    tasks.step(StepKind.PREPARE, generation=1)
    tasks.step(StepKind.TRAIN, generation=1)
    status, reason = tasks.store.steps.statuses(tasks.run)[TRAIN]
    assert status is Status.INFRA_FAILURE
    assert reason.startswith("the run's budget of 6 s is used up: ")
    late = (Status.INFRA_FAILURE, "not started: the run's budget of 6 s is used up")
    assert task_phases.over_budget(tasks.context(), tasks.plan.steps[-1]) == late
    run = tasks.finish()
    assert run.status is Status.INFRA_FAILURE
    assert tasks.site.left_behind() == []


@pytest.mark.full
def test_a_gang_that_hangs_is_inspected_by_its_tasks_too(tasks: Tasks) -> None:
    inject(tasks.site, "stall@3")
    tasks.site.configure_policy(hang_s=3)
    tasks.begin()
    tasks.step(StepKind.PREPARE, generation=1)
    tasks.step(StepKind.TRAIN, generation=1)
    failure = tasks.store.history.facts(tasks.run).failures[TRAIN]
    assert (failure.failure_class, failure.root_cause) == (FailureClass.HANG, "node b, rank 3")
    assert {name.split("/")[1] for name in failure.evidence} == {"a", "b"}
    assert tasks.finish().status is Status.FAILED
    # The collection of evidence on a node ends at its own deadline, also if its task has stopped waiting.
    wait_for(lambda: tasks.site.left_behind() == [], what="the end of all processes", seconds=30)
