"""A run as tasks of its own do it: they come late, twice or never, and the run is the same."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.certify import Site, wait_for
from tests.support.tasks import Tasks

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import ConfigError, Status, StepKind
from tipcflow.execute.run import phases as task_phases
from tipcflow.execute.run import step as step_task
from tipcflow.execute.run.step import StepTask

pytestmark = pytest.mark.cluster
TRAIN = "norm_train_gpus_0,1_autocast_null_nodes_2/train"
ORDER = (StepKind.PREPARE, StepKind.TRAIN, StepKind.EVAL, StepKind.EXPORT, StepKind.INFER_CPU)


@pytest.fixture
def tasks(nodes: LocalNodes, tmp_path: Path) -> Iterator[Tasks]:
    made = Tasks(Site(tmp_path, nodes))
    yield made
    task_phases.release_run(made.context())  # a failed test must not break the next


def runners(tasks: Tasks, node: str) -> set[int]:
    return {one.pid for one in tasks.site.nodes.processes(node) if f"jobs/{tasks.run}/" in one.cmdline}


def hang(site: Site) -> None:
    site.edit_params("norm_train:train.py", "norm_train:train.py --inject hang@3")


def test_tasks_complete_a_whole_run(tasks: Tasks) -> None:
    tasks.begin()
    for kind in ORDER:
        result = tasks.step(kind)
        assert {status for status, _ in result.values()} == {Status.PASS}, result
    run = tasks.finish()
    assert run.status is Status.PASS, run.reason
    assert tasks.site.left_behind() == []
    assert (tasks.home / "runs" / run.id / "certificate.json").is_file()
    assert "prepared with" in tasks.lines("b")
    losses = tasks.store.measurements.of(run.id, metric="loss")
    assert {(m.node, m.rank) for m in losses} == {("a", 0), ("a", 1), ("b", 2), ("b", 3)}
    assert len(losses) == 40


@pytest.mark.parametrize("comes", ["a", "b"])
def test_single_task_runs_the_whole_gang(tasks: Tasks, comes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other node's task waits for a worker, or died: its node trains all the same."""
    monkeypatch.setattr(step_task, "TAKEOVER_S", 0.5)
    tasks.begin()
    tasks.step(StepKind.PREPARE)
    assert tasks.step(StepKind.TRAIN, comes)[comes][0] is Status.PASS
    task_phases.collect_run(tasks.context())
    assert tasks.store.steps.statuses(tasks.run)[TRAIN] == (Status.PASS, "")
    assert [attempt.attempt for attempt in tasks.store.attempts.of(tasks.run) if attempt.step == TRAIN] == [1]


def test_a_task_that_dies_and_comes_again_finds_its_job(tasks: Tasks) -> None:
    hang(tasks.site)
    tasks.begin()
    tasks.step(StepKind.PREPARE)
    tasks.with_part(StepKind.TRAIN, "a", lambda part: part.begin())
    wait_for(lambda: tasks.site.training_runs_on("b"), what="the training")
    before = runners(tasks, "b")
    assert len(before) == 2, "the runner and its guard"

    def again(part: StepTask) -> None:
        part.begin()
        assert part.attempt == 1
        assert not part.watch(1.0)

    tasks.with_part(StepKind.TRAIN, "b", again)
    assert runners(tasks, "b") == before
    tasks.with_part(StepKind.TRAIN, "a", lambda part: (part.begin(), part.stop("stopped by a test")))
    assert tasks.finish().status is Status.CANCELLED
    assert tasks.site.left_behind() == []


def test_failing_member_ends_its_peers_and_is_named(tasks: Tasks) -> None:
    tasks.site.edit_params("norm_train:train.py", "norm_train:train.py --inject exit@3")
    tasks.begin()
    tasks.step(StepKind.PREPARE)
    result = tasks.step(StepKind.TRAIN)
    assert {status for status, _ in result.values()} != {Status.PASS}
    status, reason = tasks.store.steps.statuses(tasks.run)[TRAIN]
    assert status is Status.FAILED
    assert "on node b" in reason
    run = tasks.finish()
    assert run.status is Status.FAILED
    assert tasks.site.left_behind() == []
    said_of = tasks.store.steps.statuses(tasks.run)
    assert said_of["norm_train_gpus_0,1_autocast_null_nodes_2/export"][0] is Status.BLOCKED


def test_repeated_step_gets_a_new_attempt_and_the_run_a_new_verdict(tasks: Tasks) -> None:
    tasks.begin()
    for kind in ORDER:
        tasks.step(kind)
    assert tasks.finish().status is Status.PASS
    context = tasks.context()
    context.keep_lease(60)
    tasks.step(StepKind.INFER_CPU)
    infer = next(step.id for step in tasks.plan.steps if step.kind is StepKind.INFER_CPU)
    assert [one.attempt for one in tasks.store.attempts.of(tasks.run) if one.step == infer] == [1, 2]
    assert tasks.store.runs.get(tasks.run).status is None
    assert tasks.finish().status is Status.PASS
    assert tasks.site.left_behind() == []


def cannot_begin(part: StepTask) -> None:
    part.begin()
    assert part.watch(0)
    status, reason = part.end()
    assert status is Status.INFRA_FAILURE
    assert "node b" in reason
    assert not part.try_again()


def test_a_gang_with_a_node_that_is_away_never_starts(tasks: Tasks) -> None:
    tasks.begin()
    tasks.step(StepKind.PREPARE)
    tasks.site.nodes.kill_sshd("b")
    try:
        tasks.with_part(StepKind.TRAIN, "a", cannot_begin)
    finally:
        tasks.site.nodes.start_sshd("b")
    assert not tasks.site.training_runs_on("a")
    assert tasks.store.steps.statuses(tasks.run)[TRAIN][0] is Status.INFRA_FAILURE
    assert tasks.finish().status is Status.INFRA_FAILURE
    assert tasks.site.left_behind() == []


def test_a_run_that_was_stopped_before_its_steps_is_cancelled(tasks: Tasks) -> None:
    tasks.begin()
    run = tasks.finish()
    assert run.status is Status.CANCELLED
    assert {status for status, _ in tasks.store.steps.statuses(run.id).values()} <= {
        Status.CANCELLED,
        Status.BLOCKED,
        Status.NOT_RUN,
    }
    assert tasks.site.left_behind() == []


def test_run_that_failed_to_resolve_keeps_its_status(tasks: Tasks) -> None:
    with pytest.raises(ConfigError, match="unknown mode"):
        tasks.resolve(mode="no_such_mode")
    run = tasks.store.runs.get(tasks.run)
    assert run.status is Status.CONFIG_ERROR
    context = tasks.context()
    assert task_phases.collect_run(context) == ["the run ended before it had a plan: nothing to collect"]
    assert task_phases.release_run(context) == []
    assert task_phases.judge_run(context)[0] is Status.CONFIG_ERROR
    assert task_phases.finish_run(context).reason == run.reason


def test_slots_that_are_held_are_waited_for(tasks: Tasks) -> None:
    tasks.begin()
    other = Tasks(tasks.site)
    other.resolve()
    assert f"held by run {tasks.run}" in other.context().acquire()
    tasks.finish()
    assert other.context().acquire() == ""
    other.finish()
    assert tasks.site.left_behind() == []


def test_lease_goes_to_the_following_run_past_a_waiting_one(tasks: Tasks) -> None:
    following, waiting = Tasks(tasks.site), Tasks(tasks.site)
    tasks.begin(lease_to=following.run)
    waiting.resolve()
    assert f"held by run {tasks.run}" in waiting.context().acquire()
    context = tasks.context()
    assert task_phases.release_run(context, hands_over=True) == []
    assert {lease.run for lease in tasks.store.leases.all()} == {following.run}
    assert f"held by run {following.run}" in waiting.context().acquire()
    following.begin(nodes_of=tasks.run)
    following.finish()
    assert waiting.context().acquire() == ""
    waiting.finish()
    assert tasks.store.leases.all() == []
    assert tasks.site.left_behind() == []


def test_stopped_run_releases_its_lease(tasks: Tasks) -> None:
    tasks.begin(lease_to="toy-following-1")
    assert task_phases.release_run(tasks.context()) == []
    assert tasks.store.leases.all() == []
    assert not tasks.store.runs.known(["toy-following-1"])


def test_task_of_the_same_round_takes_the_ended_attempt(tasks: Tasks) -> None:
    """A task that comes when its gang is over already, or is tried again, does not train a second time."""
    tasks.begin()
    tasks.step(StepKind.PREPARE)
    first = tasks.step(StepKind.TRAIN, "a", generation=3)
    late = tasks.step(StepKind.TRAIN, "b", generation=3)
    assert {*first.values(), *late.values()} == {(Status.PASS, "")}
    assert [one.attempt for one in tasks.store.attempts.of(tasks.run) if one.step == TRAIN] == [1]
    tasks.step(StepKind.TRAIN, generation=4)  # cleared
    assert [one.attempt for one in tasks.store.attempts.of(tasks.run) if one.step == TRAIN] == [1, 2]


def test_mapped_tasks_of_different_try_numbers_train_once_after_a_clear(tasks: Tasks) -> None:
    """One of them was retried before: Airflow gives it another `max_tries` than its peer."""
    tasks.begin()
    tasks.step(StepKind.PREPARE, generation=3, cleared=0)
    tasks.step(StepKind.TRAIN, generation=3, cleared=0)
    first = tasks.step(StepKind.TRAIN, "a", generation=4, cleared=1)
    late = tasks.step(StepKind.TRAIN, "b", generation=5, cleared=1)
    assert {*first.values(), *late.values()} == {(Status.PASS, "")}
    assert [one.attempt for one in tasks.store.attempts.of(tasks.run) if one.step == TRAIN] == [1, 2]
