"""`tipcflow bisect` as a user types it: a git history of the toy suite, real SSH nodes."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.versions.git_history import History
from tests.support.certify import MODE, PARAMS, TIPCFLOW, Site

from devcluster.local_nodes.nodes import LocalNodes, local_nodes
from tipcflow.domain import Status

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

BATCH_COST = "avg_batch_cost: {args.step_time:.5f} sec"
SLOWER = "avg_batch_cost: {args.step_time * 1.2:.5f} sec"


@pytest.fixture(scope="module")
def bisect_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalNodes]:
    with local_nodes(tmp_path_factory.mktemp("nodes"), python=Path(sys.executable)) as made:
        yield made


class Bisected(History):
    """A history that is bisected."""

    def command(self, metric: str, *more: str) -> list[str]:
        """The command that bisects from the first commit to the last one."""
        ends = ["--good", f"main~{self.commits}", "--bad", "main"]
        where = ["--suite", "toy", "--mode", MODE, "--cluster", "local"]
        return [str(TIPCFLOW), "bisect", PARAMS, metric, *ends, *where, *more]

    def bisect(self, metric: str, *more: str) -> subprocess.CompletedProcess[str]:
        """Bisect to the end."""
        command = self.command(metric, *more)
        return subprocess.run(command, env=self.site.env, capture_output=True, text=True, timeout=850, check=False)


def test_a_slower_commit_is_found_after_a_stop(bisect_nodes: LocalNodes, tmp_path: Path) -> None:
    history = Bisected(Site(tmp_path, bisect_nodes), 4)
    history.plant(3, BATCH_COST, SLOWER)
    stopped = history.bisect("batch_cost", "--max-runs", "2")
    assert stopped.returncode == 4, stopped.stdout + stopped.stderr
    assert "undecided: the limit of 2 runs is reached (2 runs" in stopped.stdout
    done = history.bisect("batch_cost", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert [commit["title"] for commit in result["candidates"][0]["commits"]] == ["Change 3"]
    assert len(result["runs"]) <= 7
    assert history.site.left_behind() == []
    with history.site.store() as store:
        environment = store.runs.get(result["runs"][0]).environment
        assert environment
        assert store.history.accepted("toy/toy/train_infer_python", MODE, environment) == []
    again = history.bisect("batch_cost")
    assert "run 1:" not in again.stdout, "nothing is measured twice"
    assert "'Change 3' (" in again.stdout
    assert "(1.200 x)" in again.stdout


def test_bisect_runs_in_parallel_and_resumes_after_a_signal(bisect_nodes: LocalNodes, tmp_path: Path) -> None:
    site = Site(tmp_path, bisect_nodes)
    site.edit_params("gpu_list:192.168.0.1,192.168.0.2;0,1", "gpu_list:0,1")
    history = Bisected(site, 8)
    history.plant(5, BATCH_COST, SLOWER)
    command = history.command("batch_cost", "--parallel", "2")
    child = subprocess.Popen(command, env=site.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    deadline = time.monotonic() + 300
    while len(nodes := active_nodes(site)) < 2:
        assert child.poll() is None, child.communicate()[0]
        assert time.monotonic() < deadline, nodes
        time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    output, _ = child.communicate(timeout=300)
    assert child.returncode == 4, output
    assert "was cancelled" in output
    assert site.left_behind() == []
    done = history.bisect("batch_cost", "--parallel", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "'Change 5' (" in done.stdout
    assert "if it touches files of the chain (1 commit)" in done.stdout
    assert site.left_behind() == []
    with site.store() as store:
        runs = [run for run in store.runs.newest() if run.status is not None]
    assert {node for run in runs for node in run.nodes} == {"a", "b"}
    assert all(len(run.nodes) == 1 for run in runs)


def test_bisect_resumes_after_sigkill_without_repeating_ended_runs(
    bisect_nodes: LocalNodes, tmp_path: Path
) -> None:
    site = Site(tmp_path, bisect_nodes)
    history = Bisected(site, 4)
    history.plant(3, BATCH_COST, SLOWER)
    with (tmp_path / "out").open("w") as out:
        killed = subprocess.Popen(history.command("batch_cost"), env=site.env, stdout=out, stderr=out)
        deadline = time.monotonic() + 300
        # In the training of the second run.
        while (tmp_path / "out").read_text().count("train started") < 2 or not site.training_runs_on("a"):
            assert killed.poll() is None, (tmp_path / "out").read_text()
            assert time.monotonic() < deadline, (tmp_path / "out").read_text()
            time.sleep(0.05)
        killed.send_signal(signal.SIGKILL)
        killed.wait(30)
    with site.store() as store:
        (lost,) = store.runs.unfinished()
        ended = {run.id for run in store.runs.newest()} - {lost.id}
    assert len(ended) == 1
    done = history.bisect("batch_cost", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert [commit["title"] for commit in result["candidates"][0]["commits"]] == ["Change 3"]
    assert len(result["runs"]) <= 7
    with site.store() as store:
        runs = {run.id: run for run in store.runs.newest()}
    assert ended < set(result["runs"]) == runs.keys() - {lost.id}, "only the interrupted run is repeated"
    assert runs[lost.id].status is Status.INFRA_FAILURE
    assert "it was killed" in runs[lost.id].reason
    assert site.left_behind() == []


def active_nodes(site: Site) -> set[str]:
    """The nodes of the runs that are active and know their nodes."""
    if not (site.home / "tipcflow.db").exists():
        return set()
    with site.store() as store:
        return {node for run in store.runs.unfinished() for node in run.nodes}


@pytest.mark.full
@pytest.mark.parametrize(
    ("metric", "old", "new", "most"),
    [
        ("batch_cost", BATCH_COST, SLOWER, 11),
        ("failure", "import argparse\n", "import argparse\nraise SystemExit('broken')\n", 13),
    ],
)
def test_bisect_finds_the_commit_among_64(
    bisect_nodes: LocalNodes, tmp_path: Path, metric: str, old: str, new: str, most: int
) -> None:
    history = Bisected(Site(tmp_path, bisect_nodes), 64)
    history.plant(23, old, new)
    done = history.bisect(metric, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert [commit["title"] for commit in result["candidates"][0]["commits"]] == ["Change 23"]
    assert len(result["runs"]) <= most


@pytest.mark.parametrize(
    ("metric", "more", "words"),
    [
        ("batch_cost", ["--good", "none"], "--good: the suite has no such ref; found 'none'"),
        ("batch_cost", ["--good", "main", "--bad", "main~1"], "--good: is not an earlier commit of the bad end"),
        ("seen", [], "METRIC: neither a lower nor a higher value of this metric is better; found 'seen'"),
        ("batch_cost", ["--cluster", "none"], "none"),
        ("batch_cost", ["--parallel", "9"], "--parallel: invalid value; found '9'; expected at most 8"),
    ],
)
def test_bad_input_is_one_error_before_any_run(
    bisect_nodes: LocalNodes, tmp_path: Path, metric: str, more: list[str], words: str
) -> None:
    history = Bisected(Site(tmp_path, bisect_nodes), 2)
    history.plant(1, BATCH_COST, SLOWER)
    done = history.bisect(metric, *more)
    assert done.returncode == 2, done.stdout + done.stderr
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    with history.site.store() as store:
        assert store.runs.newest() == []
