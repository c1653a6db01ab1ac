"""A node is lost in the middle of a training whose launcher appends to its logs, and is reachable again:
the losses of both attempts are stored once, each with the attempt that printed it."""

import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.faults.losses import EPOCHS, ITERATIONS, RANKS, doubled_or_lost, stored
from tests.faults.world import WAITS, World
from tests.support.certify import TIPCFLOW, Site, wait_for
from tests.support.faults.case import STRICT

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import Status
from tipcflow.domain.run.failure import FailureClass
from tipcflow.domain.run_documents import LateLogsDocument
from tipcflow.execute.sweeps.late_logs import late_logs
from tipcflow.execute.sweeps.maintenance import DAY_S, Upkeep
from tipcflow.transport.connect import connect

pytestmark = pytest.mark.cluster
ON_B = (2, 3)
# After the line that each rank prints at its start.
BEFORE_EPOCHS = "generator = random.Random("
SECOND_ATTEMPT_FAILS = (
    "if os.environ['TIPCFLOW_JOB'].endswith('/2'):\n    time.sleep(0.5)\n    sys.exit('the data is broken')\n"
)


@pytest.fixture
def world(nodes: LocalNodes, tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, Site(tmp_path / "user", nodes), random.Random(0), target="b", rank=ON_B[0], iteration=3)
    made.set_up()
    retries = {**STRICT["retries"], FailureClass.NODE_LOST.value: 1}
    made.site.configure_policy(retries=retries, waits={**WAITS, "reconnect_s": 4})
    made.site.edit_params("--step-time 0.15", "--step-time 2")
    yield made
    # A run that ends while b is away leaves its claim there, and other databases (the next test) respect it.
    nodes.exec("b", ["rm", "-rf", f"{nodes.cluster.node('b').workspace}/claims"])


@pytest.mark.full
def test_losses_of_a_lost_node_are_stored_once_with_their_attempt(world: World) -> None:
    site, nodes = world.site, world.nodes
    lost: dict[int, int] = {}

    def lose(_: object) -> None:
        nodes.cut("b")
        # The controller gives b up and stops the peers on a.
        wait_for(lambda: not site.training_runs_on("a"), what="the end of the training on node a")
        time.sleep(1.0)  # the logs of b cannot be fetched with the end of attempt 1
        lost.update({rank: len(world.ledger()[1, rank]) for rank in ON_B})
        nodes.restore("b")

    try:
        outcome = site.run_and(world.reached, lose, "--keep")
    finally:
        nodes.restore("b")
    assert outcome.run.status is Status.PASS, outcome.output
    printed, kept = world.ledger(), stored(site, outcome.run.id)
    with site.store() as store:
        tries = [one for one in store.attempts.of(outcome.run.id) if one.step.endswith("/train")]
    assert [one.attempt for one in tries] == [1, 2]
    assert doubled_or_lost(printed, kept, passed=True) == []
    for rank in range(RANKS):
        assert len(kept[2, rank]) == EPOCHS * ITERATIONS, f"rank {rank} of attempt 2"
    for rank in ON_B:
        # The line that was just being written when the job ended may be missing.
        assert abs(len(kept[1, rank]) - len(printed[1, rank])) <= 1, f"rank {rank} of attempt 1"
        assert len(kept[1, rank]) >= lost[rank] - 1 >= 2, "fetched late, with what was printed while b was away"
    (log,) = (Path(nodes.cluster.node("b").workspace) / "runs").glob(f"{outcome.run.id}/src/**/workerlog.0")
    both = len(printed[1, ON_B[0]]) + EPOCHS * ITERATIONS
    assert log.read_text().count("loss:") >= both - 1, "the launcher did not append to its log"
    second = site.run()
    assert second.run.status is Status.PASS, second.output
    assert "equal those of run" in second.output


Swept = Callable[[Site], list[str]]


def by_reap(site: Site) -> list[str]:
    """What `tipcflow nodes reap` prints about late logs."""
    command = [str(TIPCFLOW), "nodes", "reap", "--cluster", "local"]
    done = subprocess.run(command, env=site.env, capture_output=True, text=True, timeout=120, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return [line.removeprefix("logs: ") for line in done.stdout.splitlines() if line.startswith("logs: ")]


def by_maintenance(site: Site, *, later: float = 0.0) -> list[str]:
    """What the task `late_logs` of the DAG `maintenance` reports."""
    messages: list[str] = []
    with site.store() as store:
        now = store.now() + later
        late_logs(Upkeep(store, site.home, site.configs, connect, messages.append, now=now))
    return messages


def lose_b(world: World) -> str:
    """Run a training, cut the link of node b in it, restore the link after the end of the run; return the run."""
    site = world.site
    site.configure_policy(retries=STRICT["retries"])
    try:
        outcome = site.run_and(world.reached, lambda _: world.nodes.cut("b"))
        assert outcome.run.status is Status.INFRA_FAILURE, outcome.output
        assert by_maintenance(site) == [], "node b does not respond"
    finally:
        world.nodes.restore("b")
    wait_for(lambda: not world.nodes.processes("b"), what="the end of the job by its lease")
    return outcome.run.id


def unchanged(site: Site, run: str) -> tuple[object, ...]:
    """What a sweep must not change: the run, its steps and attempts."""
    with site.store() as store:
        return store.runs.get(run), store.steps.statuses(run), store.attempts.of(run)


@pytest.mark.parametrize(
    ("first", "second"),
    [(by_reap, by_maintenance), pytest.param(by_maintenance, by_reap, marks=pytest.mark.full)],
)
def test_logs_of_a_lost_node_are_fetched_after_the_run(world: World, first: Swept, second: Swept) -> None:
    site = world.site
    run = lose_b(world)
    before, state = stored(site, run), unchanged(site, run)
    assert not any(before.get((1, rank)) for rank in ON_B), "the controller had the losses of node b"
    printed = world.ledger()
    (messages,) = first(site)
    assert messages.startswith(f"run {run}: "), messages
    assert "/train, attempt 1, fetched late from node b" in messages
    assert unchanged(site, run) == state
    kept = stored(site, run)
    assert doubled_or_lost(printed, kept, passed=False) == []
    for rank in ON_B:
        # The line that was just being written when the job ended may be missing.
        assert abs(len(kept[1, rank]) - len(printed[1, rank])) <= 1, f"rank {rank}"
        assert len(kept[1, rank]) >= 3
    assert {key: kept[key] for key in before} == before
    assert second(site) == []
    assert (stored(site, run), unchanged(site, run)) == (kept, state)
    verified = [str(TIPCFLOW), "certificate", "verify", str(site.home / "runs" / run / "certificate.json")]
    done = subprocess.run(verified, env=site.env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list((site.home / "runs" / run).glob("*train*/b/files/**/workerlog.0*"))


@pytest.mark.full
def test_logs_that_are_gone_are_not_requested_again(world: World) -> None:
    site = world.site
    run = lose_b(world)
    assert by_maintenance(site, later=15 * DAY_S) == [], "after two weeks the folder is removed"
    for kind in ("runs", "jobs"):
        world.nodes.exec("b", ["rm", "-rf", f"{world.nodes.cluster.node('b').workspace}/{kind}/{run}"])
    (messages,) = by_maintenance(site)
    assert messages.startswith(f"run {run}: the logs of ")
    assert messages.endswith("are no longer on node b")
    assert by_maintenance(site) == []
    with site.store() as store:
        late = store.documents.get(run, LateLogsDocument)
    assert late is not None
    assert [one.done for one in late.root.values()] == [True]


@pytest.mark.full
def test_logs_of_a_later_attempt_are_not_stored_for_the_lost_attempt(world: World) -> None:
    """Both attempts append to one file, and node b is lost in both."""
    site, nodes = world.site, world.nodes

    def lose_twice(_: object) -> None:
        nodes.cut("b")
        wait_for(lambda: not site.training_runs_on("a"), what="the end of attempt 1 on node a")
        nodes.restore("b")
        wait_for(lambda: len(world.ledger().get((2, ON_B[0]), [])) >= 2, what="attempt 2")
        nodes.cut("b")

    try:
        outcome = site.run_and(world.reached, lose_twice)
    finally:
        nodes.restore("b")
    assert outcome.run.status is Status.INFRA_FAILURE, outcome.output
    wait_for(lambda: not nodes.processes("b"), what="the end of the job by its lease")
    run = outcome.run.id
    before = stored(site, run)
    (messages,) = by_maintenance(site)
    assert "attempt 2, fetched late from node b" in messages
    assert "attempt 1" not in messages, "those were fetched when attempt 2 began"
    printed, kept = world.ledger(), stored(site, run)
    assert doubled_or_lost(printed, kept, passed=False) == []
    for rank in ON_B:
        assert abs(len(kept[2, rank]) - len(printed[2, rank])) <= 1, f"rank {rank}"
        assert kept[1, rank] == before[1, rank]


def test_an_attempt_that_ends_before_its_first_loss_stores_none(nodes: LocalNodes, tmp_path: Path) -> None:
    site = Site(tmp_path / "user", nodes)
    world = World(tmp_path, site, random.Random(0), target="b", rank=2, iteration=3)
    world.set_up()
    site.configure_policy(retries={**STRICT["retries"], FailureClass.COMMUNICATION.value: 1}, waits=WAITS)
    site.edit_params("norm_train:train.py", "norm_train:train.py --inject net@2")
    world.in_train(BEFORE_EPOCHS, SECOND_ATTEMPT_FAILS + BEFORE_EPOCHS)
    outcome = site.run("--keep")
    assert outcome.run.status is Status.FAILED, outcome.output
    assert "the data is broken" in outcome.run.reason
    assert "NCCL" not in outcome.run.reason, "that is what attempt 1 printed"
    printed, kept = world.ledger(), stored(site, outcome.run.id)
    assert {attempt for attempt, _ in printed} == {1}, "attempt 2 was to end before its first loss"
    assert all(len(kept[1, rank]) >= 2 for rank in range(RANKS)), "attempt 1 printed losses"
    assert [key for key in kept if key[0] == 2] == []
    (log,) = (Path(nodes.cluster.node("a").workspace) / "runs").glob(f"{outcome.run.id}/src/**/workerlog.0")
    assert log.read_text().count("backend gloo") == 2, "the launcher did not append to its log"
