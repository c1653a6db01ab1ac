"""Runs while the clock of the database server is set; PostgreSQL runs under libfaketime, and only PostgreSQL."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import postgres
from tests.support.certify import Site, wait_for
from tests.support.programs import need
from tests.support.tasks import Tasks

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import Status, StepKind
from tipcflow.execute.run.phases import refuse_step
from tipcflow.execute.run.step import StepTask

pytestmark = [pytest.mark.cluster, pytest.mark.full]
HOUR_S = 3600


class Clock:
    """The clock of a database server, by its difference from that of this machine."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "clock"
        self.set(0)

    def set(self, ahead_s: int) -> None:
        new = self.file.with_suffix(".new")
        new.write_text(f"{ahead_s:+d}\n")
        new.chmod(0o644)
        new.rename(self.file)


@pytest.fixture
def clock() -> Iterator[Clock]:
    folder = Path(tempfile.mkdtemp(prefix="tipcflow-clock-"))
    folder.chmod(0o755)  # the server has another account
    yield Clock(folder)
    shutil.rmtree(folder)


@pytest.fixture
def site(nodes: LocalNodes, tmp_path: Path, clock: Clock) -> Iterator[Site]:
    words = [need("faketime"), "-f", "+0", "printenv", "LD_PRELOAD"]
    library = subprocess.run(words, capture_output=True, text=True, check=True, timeout=30).stdout.strip()
    env = {"LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": str(clock.file), "FAKETIME_NO_CACHE": "1"}
    with postgres.running(env={**env, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}) as server:
        yield Site(tmp_path, nodes, database_url=server.create())


def left_s(site: Site) -> list[float]:
    """Seconds until each lease expires, by the clock of the server; negative after its expiry."""
    with site.store() as store:
        return [lease.expires_at - store.now() for lease in store.leases.all()]


def test_run_renews_leases_that_a_wrong_clock_expired(site: Site, clock: Clock) -> None:
    """Forward and back again, while `tipcflow run` trains."""
    site.configure_policy(waits={"lease_ttl_s": 6.0})
    site.edit_params("norm_train:train.py", "norm_train:train.py --step-time=1")

    def correct(process: "subprocess.Popen[str]") -> None:
        clock.set(HOUR_S)
        assert max(left_s(site)) < 6 - HOUR_S
        wait_for(lambda: min(left_s(site)) > 0, what="new leases", also=lambda: process.poll() is None)
        clock.set(0)
        assert min(left_s(site)) > HOUR_S - 6
        wait_for(lambda: max(left_s(site)) < 7, what="the usual leases", also=lambda: process.poll() is None)

    done = site.run_and(lambda: site.training_runs_on("b"), correct)
    assert done.code == 0, done.output
    assert "lease" not in done.stderr
    assert site.left_behind() == []


def begin_a_hang(site: Site) -> Tasks:
    """The tasks of a run whose training does not end."""
    site.edit_params("norm_train:train.py", "norm_train:train.py --inject hang@3")
    tasks = Tasks(site)
    tasks.begin()
    tasks.step(StepKind.PREPARE)
    tasks.with_part(StepKind.TRAIN, "a", lambda part: part.begin())
    wait_for(lambda: site.training_runs_on("b"), what="the training")
    return tasks


def test_task_ends_a_training_that_is_late_by_the_new_clock(site: Site, clock: Clock) -> None:
    """As Airflow's tasks do it: the attempt began before the forward step, and the task continues after it."""
    tasks = begin_a_hang(site)
    clock.set(HOUR_S)
    ended: list[tuple[Status, str]] = []

    def resume(part: StepTask) -> None:
        part.begin()
        assert part.watch(120)
        ended.append(part.end())
        assert not part.try_again()

    tasks.with_part(StepKind.TRAIN, "b", resume)
    assert ended == [(Status.INFRA_FAILURE, "the controller ended the job on node b (no exit record in time)")]
    assert tasks.finish().status is Status.INFRA_FAILURE
    assert site.left_behind() == []


def test_waiting_run_takes_slots_between_two_steps(site: Site, clock: Clock) -> None:
    first, second = Tasks(site), Tasks(site)
    first.begin()
    first.step(StepKind.PREPARE)
    second.resolve()
    waiting = second.context()
    assert "held by" in waiting.acquire()
    clock.set(HOUR_S)
    wait_for(lambda: second.context().acquire() == "", what="the slots")
    context = first.context()
    step = next(step for step in first.plan.steps if step.kind is StepKind.TRAIN)
    refused = refuse_step(context, step, lease=lambda: context.keep_lease(60))
    assert refused is not None
    assert refused[0] is Status.INFRA_FAILURE
    assert "the run's lease has expired and the slots are taken" in refused[1]
    for tasks in (first, second):
        tasks.finish()
    assert site.left_behind() == []
