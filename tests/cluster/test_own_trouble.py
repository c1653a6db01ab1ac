"""Trouble of the controller's own machine, and a runner that does nothing any more."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.certify import TIPCFLOW, Site, wait_for
from tests.support.faults.case import STRICT
from tests.support.tasks import Tasks

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import FailureClass, Status, StepKind
from tipcflow.execute.run import step as step_task
from tipcflow.execute.run.step import StepTask
from tipcflow.remote.stillness import Stalled, Stillness

pytestmark = pytest.mark.cluster
TRAIN = "norm_train_gpus_0,1_autocast_null_nodes_2/train"


@pytest.fixture
def site(nodes: LocalNodes, tmp_path: Path) -> Site:
    made = Site(tmp_path, nodes)
    made.configure_policy(**STRICT)
    return made


@pytest.fixture
def own_site(make_nodes: Callable[..., LocalNodes], tmp_path: Path) -> Site:
    """A site with nodes of its own: a controller that loses its database leaves the job to the node's lease."""
    made = Site(tmp_path / "site", make_nodes(tmp_path / "nodes", python=Path(sys.executable)))
    made.configure_policy(**STRICT)
    return made


def test_a_runner_that_is_stalled_is_seen_and_ended(site: Site) -> None:
    site.configure_policy(waits={"silence_s": 4})
    site.edit_params("norm_train:train.py", "norm_train:train.py --step-time 6")
    stopped: list[float] = []

    def stop(_: object) -> None:
        runner = next(one for one in site.nodes.processes("b") if " daemon " in one.cmdline)
        site.nodes.exec("b", ["kill", "-STOP", str(runner.pid)])
        stopped.append(time.monotonic())

    outcome = site.run_and(lambda: site.training_runs_on("b"), stop)
    assert time.monotonic() - stopped[0] < 45, "the deadline, not the silence, ended it"
    assert outcome.run.status is Status.INFRA_FAILURE, outcome.output
    assert f"{TRAIN}: the runner on node b stopped responding" in outcome.run.reason
    with site.store() as store:
        failure = store.history.facts(outcome.run.id).failures[TRAIN]
    assert (failure.failure_class, failure.root_cause) == (FailureClass.NODE_LOST, "node b")
    assert site.left_behind() == []


def test_a_deferred_task_ends_a_runner_that_is_stalled(
    nodes: LocalNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its watch in the triggerer is shorter than the silence; then the task resumes with what that has seen."""
    monkeypatch.setattr(step_task, "TAKEOVER_S", 0.5)
    tasks = Tasks(Site(tmp_path, nodes))
    tasks.site.configure_policy(**STRICT)
    tasks.site.edit_params("norm_train:train.py", "norm_train:train.py --step-time 6")
    tasks.begin()
    tasks.step(StepKind.PREPARE)
    stillness = Stillness(4.0)

    def watched(part: StepTask) -> None:
        part.begin()
        runners = [one for one in nodes.processes("b") if " daemon " in one.cmdline]
        nodes.exec("b", ["kill", "-STOP", str(runners[0].pid)])
        member, stalled = part.own_member, None
        for _ in range(10):
            stillness.begin_watch()
            for event in member.session.watch(member.spec, {}, 3.0):
                if event["event"] == "alive" and not stalled and (still_s := stillness.beyond(event)):
                    stalled = Stalled(event["up"], still_s)
            if stalled:
                break
        assert stalled
        member.end_if_stalled(stalled)
        part.end()

    tasks.with_part(StepKind.TRAIN, "b", watched)
    run = tasks.finish()
    assert run.status is Status.INFRA_FAILURE
    assert f"{TRAIN}: the runner on node b stopped responding: no heartbeat for " in run.reason
    assert tasks.site.left_behind() == []


def test_a_run_whose_reader_has_gone_ends_with_its_own_exit_code(site: Site) -> None:
    site.edit_params("norm_train:train.py", "norm_train:train.py --inject exit@3")
    words = " ".join(f"'{word}'" for word in site.command())
    script = f"set -o pipefail; {words} 2>&1 | head -n 1"
    done = subprocess.run(
        ["bash", "-c", script], env=site.env, capture_output=True, text=True, timeout=120, check=False
    )
    assert site.latest().status is Status.FAILED, done
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    site.edit_params("norm_train:train.py --inject exit@3", "norm_train:train.py")
    done = subprocess.run(
        ["bash", "-c", script], env=site.env, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, site.latest().status) == (0, Status.PASS), done


def test_the_verdict_does_not_depend_on_terminal_and_stdout(site: Site) -> None:
    env = {**site.env, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(site.command(), env=env, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, site.latest().status) == (0, Status.PASS), done.stderr
    words = " ".join(f"'{word}'" for word in site.command())
    closed = subprocess.run(
        ["bash", "-c", f"{words} >&-"], env=site.env, capture_output=True, text=True, timeout=120, check=False
    )
    assert (closed.returncode, site.latest().status) == (0, Status.PASS), closed.stderr
    assert "Traceback" not in done.stderr + closed.stderr


def statuses_once_repaired(site: Site) -> list[str]:
    """The run's status after the next command that could write the database."""
    subprocess.run([str(TIPCFLOW), "runs"], env=site.env, capture_output=True, timeout=60, check=True)
    run = site.latest()
    return [run.status.value if run.status else "none", run.reason]


def test_truncated_database_ends_a_run_with_one_line(own_site: Site) -> None:
    """SQLite's mapped file: the process gets SIGBUS, as it does when the file is made immutable."""
    site = own_site
    site.edit_params("norm_train:train.py", "norm_train:train.py --step-time 1")
    shared = site.home / "tipcflow.db-shm"
    outcome = site.run_and(lambda: site.training_runs_on("b"), lambda _: shared.write_bytes(b""))
    assert outcome.code == 5, outcome.output
    assert outcome.stderr.count("infra_failure:") == 1, outcome.stderr
    assert "Traceback" not in outcome.stderr
    status, reason = statuses_once_repaired(site)
    assert (status, "SIGBUS" in reason) == ("infra_failure", True), reason


def lose_database(site: Site, how: str) -> None:
    """Delete or replace the database's files, or take away the permission to write them."""
    database = site.home / "tipcflow.db"
    if how == "file":
        database.chmod(0o444)
        return
    if how == "folder":
        site.home.chmod(0o555)
        return
    for suffix in ("", "-wal", "-shm"):
        (site.home / f"tipcflow.db{suffix}").unlink()
    if how == "replaced":
        site.store().close()


@pytest.mark.parametrize(
    "how",
    [
        pytest.param("deleted", marks=pytest.mark.full),
        pytest.param("replaced", marks=pytest.mark.full),
        "file",
        "folder",
    ],
)
def test_database_lost_during_a_training_ends_the_run_with_one_line(own_site: Site, how: str) -> None:
    site = own_site
    site.configure_policy(waits={"lease_ttl_s": 6})
    site.edit_params("norm_train:train.py", "norm_train:train.py --step-time 6")
    # Without its capabilities, root obeys the permissions of files like any user.
    as_user = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if how in ("file", "folder") else []
    lost: list[float] = []
    process = subprocess.Popen(
        [*as_user, *site.command()], env=site.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        wait_for(lambda: site.training_runs_on("b"), what="the training", also=lambda: process.poll() is None)
        run = site.latest().id
        lose_database(site, how)
        lost.append(time.monotonic())
        stdout, stderr = process.communicate(timeout=120)
    finally:
        process.kill()
        site.home.chmod(0o755)
    assert time.monotonic() - lost[0] < 45, "the next renewal of the lease did not notice it"
    words = f"the metrics database {site.home / 'tipcflow.db'} "
    words += "was deleted or replaced" if how in ("deleted", "replaced") else "or its folder became read-only"
    result = [line for line in stderr.splitlines() if line.startswith("infra_failure:")]
    assert result == [f"infra_failure: {words} during the run"], stderr
    assert (process.returncode, "Traceback" in stderr, stdout) == (5, False, ""), stderr
    assert not [one.cmdline for name in "ab" for one in site.nodes.processes(name)], "the jobs still run"
    assert [path.name for path in site.home.glob("unfinished/*")] == [f"{run}.json"]
    assert (site.home / "tipcflow.db").exists() == (how != "deleted"), "an empty database appeared"
    if how == "file":
        (site.home / "tipcflow.db").chmod(0o644)
    assert statuses_once_repaired(site) == ["infra_failure", f"{words} during the run"]
    assert site.latest().id == run
    assert not list(site.home.glob("unfinished/*"))


def test_a_full_disk_here_leaves_room_for_the_runs_status(own_site: Site) -> None:
    site = own_site
    site.edit_params("norm_train:train.py", "norm_train:train.py --step-time 1")
    site.home.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(site.home)], check=True)
    filler = site.home / "filler"

    def fill(_: object) -> None:
        for size in ("1M", "4k"):
            subprocess.run(["dd", "if=/dev/zero", f"of={filler}.{size}", f"bs={size}"], stderr=-3, check=False)

    try:
        outcome = site.run_and(lambda: site.training_runs_on("b"), fill)
        assert outcome.code == 5, outcome.output
        assert "Traceback" not in outcome.stderr
        assert list(site.home.glob("unfinished/*.json")), outcome.stderr
        for one in site.home.glob("filler.*"):
            one.unlink()
        assert statuses_once_repaired(site)[0] == "infra_failure"
    finally:
        subprocess.run(["umount", "-l", str(site.home)], check=False)
