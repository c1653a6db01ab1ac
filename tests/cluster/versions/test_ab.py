"""`tipcflow ab` as a user types it: two commits of the toy suite, real SSH nodes."""

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
from tests.support.framework.wheels import make_wheel

from devcluster.local_nodes.nodes import LocalNodes, local_nodes

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

BATCH_COST = "avg_batch_cost: {args.step_time:.5f} sec"
# About 0.5 % of noise: equal figures would be a special case.
NOISY = "avg_batch_cost: {args.step_time * __import__('random').uniform(0.995, 1.005):.7f} sec"
SLOWER = "avg_batch_cost: {args.step_time * 1.1 * __import__('random').uniform(0.995, 1.005):.7f} sec"


@pytest.fixture(scope="module")
def ab_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalNodes]:
    with local_nodes(tmp_path_factory.mktemp("nodes"), python=Path(sys.executable)) as made:
        yield made


class Compared(History):
    """A history of three commits: noisy, noisy, and 10 % slower."""

    def __init__(self, site: Site) -> None:
        train = site.suite / "train.py"
        train.write_text(train.read_text().replace(BATCH_COST, NOISY, 1))
        super().__init__(site, 2)
        self.plant(2, NOISY, SLOWER)

    def command(self, *more: str) -> list[str]:
        where = ["--suite", "toy", "--mode", MODE, "--cluster", "local", "--metric", "batch_cost"]
        return [str(TIPCFLOW), "ab", PARAMS, *where, *more]

    def ab(self, *more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*more), env=self.site.env, capture_output=True, text=True, timeout=500, check=False
        )


def test_a_slower_commit_is_worse_and_joins_no_history(ab_nodes: LocalNodes, tmp_path: Path) -> None:
    history = Compared(Site(tmp_path, ab_nodes))
    done = history.ab("--a", "main~2", "--b", "main", "--json")
    assert done.returncode == 1, done.stderr
    result = json.loads(done.stdout)
    (metric,) = result["metrics"]
    assert (metric["outcome"], result["why"]) == ("worse", "every metric is decided")
    assert 1.05 < metric["low"] < 1.1 < metric["high"] < 1.15
    assert [pair["order"] for pair in result["pairs"][:3]] == ["AB", "BA", "AB"]
    assert history.site.left_behind() == []
    with history.site.store() as store:
        runs = [store.runs.get(pair[side]) for pair in result["pairs"] for side in ("a", "b")]
        assert {run.trigger for run in runs} == {"ab"}
        assert len({run.nodes for run in runs}) == 1
        assert {run.suite_commit for run in runs} == {commit_of(history, "main~2"), commit_of(history, "main")}
        assert store.leases.all() == []
        assert store.history.accepted(runs[0].chain, MODE, runs[0].environment) == []


@pytest.mark.full
def test_a_slower_release_of_the_framework_is_worse(ab_nodes: LocalNodes, tmp_path: Path) -> None:
    site = Site(tmp_path, ab_nodes)
    for version, word in (("1.0", "fast"), ("2.0", "slow")):
        make_wheel(tmp_path / "index", version=version, text=word)
    index = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "index")}
    for node in ab_nodes.cluster.nodes:
        site.configure_node(node.name, cache=str(tmp_path / f"cache-{node.name}"), env=index)
    train = site.suite / "train.py"
    slower = NOISY.replace("args.step_time", "args.step_time * (1.1 if toyframe.word == 'slow' else 1.0)")
    text = train.read_text().replace("import argparse\n", "import argparse\nimport toyframe\n", 1)
    train.write_text(text.replace(BATCH_COST, slower, 1))
    where = ["--suite", "toy", "--mode", MODE, "--cluster", "local", "--metric", "batch_cost", "--until-decided"]
    versions = ["--framework-a", "toyframe==1.0", "--framework-b", "toyframe==2.0"]
    command = [str(TIPCFLOW), "ab", PARAMS, *versions, *where, "--json"]
    done = subprocess.run(command, env=site.env, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 1, done.stderr
    result = json.loads(done.stdout)
    (metric,) = result["metrics"]
    assert (metric["outcome"], result["why"]) == ("worse", "every metric is decided")
    assert 1.05 < metric["low"] < 1.1 < metric["high"] < 1.15
    assert site.left_behind() == []
    with site.store() as store:
        for side, framework in (("a", "toyframe 1.0"), ("b", "toyframe 2.0")):
            assert {store.runs.get(pair[side]).framework for pair in result["pairs"]} == {framework}
        assert len({run.nodes for run in store.runs.newest()}) == 1


def commit_of(history: History, ref: str) -> str:
    command = ["git", "-C", str(history.site.suite), "rev-parse", ref]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.full
def test_equal_commits_are_the_same(ab_nodes: LocalNodes, tmp_path: Path) -> None:
    history = Compared(Site(tmp_path, ab_nodes))
    done = history.ab("--a", "main~2", "--b", "main~1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warm-up pair (A, B): " in done.stdout
    assert "pair 1 (B, A): " in done.stdout
    assert done.stdout.splitlines()[-1].startswith("same within 2.0 %: 1 of 1 metrics; every metric is decided (")


def test_ctrl_c_ends_the_comparison_with_the_known_results(ab_nodes: LocalNodes, tmp_path: Path) -> None:
    history = Compared(Site(tmp_path, ab_nodes))
    with (tmp_path / "out").open("w") as out:
        running = subprocess.Popen(
            history.command("--a", "main~2", "--b", "main", "--pairs", "9"),
            env=history.site.env,
            stdout=out,
            stderr=out,
        )
        deadline = time.monotonic() + 120
        # Two trainings of the warm-up pair; the third one is of the first pair that counts.
        while (tmp_path / "out").read_text().count("train started") < 3:
            assert time.monotonic() < deadline, (tmp_path / "out").read_text()
            time.sleep(0.2)
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 4
    assert "undecided: stopped by a user" in (tmp_path / "out").read_text()
    assert history.site.left_behind() == []
    with history.site.store() as store:
        assert store.leases.all() == []
        assert all(run.status is not None for run in store.runs.newest())


def test_a_version_that_fails_is_worse(ab_nodes: LocalNodes, tmp_path: Path) -> None:
    history = Compared(Site(tmp_path, ab_nodes))
    train = history.site.suite / "train.py"
    train.write_text(
        train.read_text().replace("import argparse\n", "import argparse\nraise SystemExit('broken')\n")
    )
    history.commit("Break it")
    done = history.ab("--a", "main~2", "--b", "main")
    assert done.returncode == 1
    assert "worse: run " in done.stdout
    assert " of B is failed: " in done.stdout
    assert history.site.left_behind() == []


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--a", "none", "--b", "main"], "--a: the suite has no such ref; found 'none'"),
        (["--a", "main", "--b", "main"], "A and B are the same version; found 'main ("),
        ([], "--a, --b, --framework-a, --framework-b: A and B are the same version; found 'the working tree'"),
        (["--a", "main~1", "--framework-b", "paddle == banana"], "paddle == banana"),
        (["--a", "main~1", "--metric", "samples"], "--metric: neither a lower nor a higher value of this metric"),
        (
            ["--a", "main~1", "--pairs", "3"],
            "--pairs: is too small for an error of 0.02; found '3'; expected at least 4",
        ),
        (["--a", "main~1", "--cluster", "none"], "none"),
    ],
)
def test_bad_input_is_one_error_before_any_run(
    ab_nodes: LocalNodes, tmp_path: Path, more: list[str], words: str
) -> None:
    history = Compared(Site(tmp_path, ab_nodes))
    done = history.ab(*more)
    assert done.returncode == 2, done.stdout + done.stderr
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    with history.site.store() as store:
        assert store.runs.newest() == []
