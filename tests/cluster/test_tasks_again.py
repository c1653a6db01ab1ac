"""Tasks that run again after a clear, and nodes that go away while a task waits: nothing old is taken for new."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.certify import Site, wait_for
from tests.support.stories import a_run
from tests.support.tasks import Tasks

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import InfraError, Status, StepKind
from tipcflow.execute.run import phases as task_phases
from tipcflow.execute.run.step import StepTask

pytestmark = pytest.mark.cluster
TRAIN = "norm_train_gpus_0,1_autocast_null_nodes_2/train"
ORDER = (StepKind.PREPARE, StepKind.TRAIN, StepKind.EVAL, StepKind.EXPORT, StepKind.INFER_CPU)


@pytest.fixture
def tasks(nodes: LocalNodes, tmp_path: Path) -> Iterator[Tasks]:
    made = Tasks(Site(tmp_path, nodes))
    yield made
    task_phases.release_run(made.context())


def test_cleared_run_with_unreachable_nodes_loses_its_old_verdict(tasks: Tasks) -> None:
    tasks.begin()
    for kind in ORDER:
        tasks.step(kind)
    assert tasks.finish().status is Status.PASS
    tasks.resolve()
    context = tasks.context()
    assert context.acquire() == ""
    tasks.site.nodes.kill_sshd("b")
    try:
        with pytest.raises(InfraError, match="node b"):
            task_phases.prepare_nodes(context)
    finally:
        tasks.site.nodes.start_sshd("b")
    assert tasks.finish().status is Status.INFRA_FAILURE


def test_run_that_failed_before_the_first_step_can_be_cleared(tasks: Tasks) -> None:
    tasks.resolve()
    tasks.site.nodes.kill_sshd("b")
    try:
        context = tasks.context()
        context.acquire()
        with pytest.raises(InfraError, match="node b"):
            task_phases.prepare_nodes(context)
        assert tasks.finish().status is Status.INFRA_FAILURE
    finally:
        tasks.site.nodes.start_sshd("b")
    with tasks.site.store() as store:
        for lease in store.leases.all():  # of the unlisted node: a sweep inspects it when its lease has expired
            assert lease.run == tasks.run
    tasks.begin()
    for kind in ORDER:
        tasks.step(kind)
    assert tasks.finish().status is Status.PASS
    assert tasks.site.left_behind() == []


def test_node_lost_while_its_task_waits_is_the_root_cause(tasks: Tasks) -> None:
    tasks.site.edit_params("norm_train:train.py", "norm_train:train.py --inject hang@0")
    tasks.begin()
    tasks.step(StepKind.PREPARE)
    tasks.with_part(StepKind.TRAIN, "a", lambda part: part.begin())
    wait_for(lambda: tasks.site.training_runs_on("a"), what="the training")
    tasks.site.nodes.kill_sshd("b")

    def come_again(part: StepTask) -> None:
        part.begin()
        assert part.watch(60)
        assert part.end()[0] is Status.INFRA_FAILURE

    try:
        step = next(step for step in tasks.plan.steps if step.kind is StepKind.TRAIN)
        context = tasks.context()
        with context.nodes(*step.nodes) as made:
            come_again(StepTask(context, step, ("b",), made, resume={}))
    finally:
        tasks.site.nodes.start_sshd("b")
    status, reason = tasks.store.steps.statuses(tasks.run)[TRAIN]
    assert status is Status.INFRA_FAILURE
    assert "node b" in reason
    assert not tasks.site.training_runs_on("a")
    assert tasks.finish().status is Status.INFRA_FAILURE


def test_stopped_task_starts_over_when_repeated(tasks: Tasks) -> None:
    tasks.site.edit_params("norm_train:train.py", "norm_train:train.py --inject hang@3")
    tasks.begin()
    tasks.step(StepKind.PREPARE)

    def begin_and_stop(part: StepTask) -> None:
        part.begin()
        wait_for(lambda: tasks.site.training_runs_on("b"), what="the training")
        part.stop("stopped from Airflow")
        wait_for(lambda: not tasks.site.training_runs_on("b"), what="its end")

    tasks.with_part(StepKind.TRAIN, "a", begin_and_stop)
    tasks.with_part(StepKind.TRAIN, "b", begin_and_stop)
    tried = [(one.attempt, one.status) for one in tasks.store.attempts.of(tasks.run) if one.step == TRAIN]
    assert tried == [(1, Status.CANCELLED), (2, None)]
    assert tasks.finish().status is Status.CANCELLED


def test_a_stopped_task_starts_nothing_more(tasks: Tasks) -> None:
    tasks.begin()
    tasks.step(StepKind.PREPARE)

    def killed_before(part: StepTask) -> None:
        part.kill()
        part.begin()
        assert part.watch(0)
        assert part.end() == (Status.CANCELLED, "stopped by a user")

    tasks.with_part(StepKind.TRAIN, "a", killed_before)
    assert not tasks.site.training_runs_on("a")
    assert not tasks.site.training_runs_on("b")


def test_files_of_an_earlier_attempt_are_put_aside(tasks: Tasks) -> None:
    tasks.begin()
    for kind in ORDER:
        tasks.step(kind)
    folder = next(path for path in (tasks.home / "runs" / tasks.run).iterdir() if path.name.endswith("infer_cpu"))
    (folder / "a" / "only_of_the_first").write_text("x")
    tasks.step(StepKind.INFER_CPU)
    assert not (folder / "a" / "only_of_the_first").exists()
    assert (folder.with_name(f"{folder.name}~1") / "a" / "only_of_the_first").exists()
    assert tasks.finish().status is Status.PASS


def test_run_that_moved_completes_on_its_new_nodes(make_nodes: Callable[..., LocalNodes], tmp_path: Path) -> None:
    nodes = make_nodes(names=tuple("abcd"))
    tasks = Tasks(Site(tmp_path / "site", nodes))
    tasks.resolve()
    tasks.store.runs.create(a_run("other", cluster="local", nodes=("a", "d")))
    held = [(node.address, 0) for node in nodes.cluster.nodes if node.name in "ad"]
    assert tasks.store.leases.acquire("other", held, owner="test", ttl_s=600)
    context = tasks.context().choose_nodes()
    assert context.plan.nodes == ("c", "b")
    assert context.acquire() == ""
    task_phases.prepare_nodes(context)
    for kind in ORDER:
        result = tasks.step(kind)
        assert {status for status, _ in result.values()} == {Status.PASS}, result
    run = tasks.finish()
    assert run.status is Status.PASS, run.reason
    assert run.nodes == ("c", "b")
    losses = tasks.store.measurements.of(run.id, metric="loss")
    assert {(loss.node, loss.rank) for loss in losses} == {("c", 0), ("c", 1), ("b", 2), ("b", 3)}
    tasks.store.leases.release("other")
    assert tasks.site.left_behind() == []
