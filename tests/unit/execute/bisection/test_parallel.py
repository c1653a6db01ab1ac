"""A search with several runs at the same time, with a real database."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.bisections.chain import CHAIN, COMMITS, Chain, Value, noisy
from tests.support.stories import a_run, open_store

from tipcflow.config.cluster import load_cluster
from tipcflow.domain import InfraError, Run, Status
from tipcflow.execute.bisection.commits import Commit
from tipcflow.execute.bisection.loop import Bisection
from tipcflow.execute.bisection.parallel import Round, has_free_nodes, run_in_parallel
from tipcflow.execute.bisection.subject import FAILURE, Subject
from tipcflow.store import Store

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[4]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "t.db") as opened:
        yield opened


class Nodes:
    """Executes runs in the calling threads, and counts the active ones; `stopped` runs are cancelled."""

    def __init__(self, store: Store, value: Value, seconds: Callable[[int], float] = lambda place: 0.02) -> None:
        self.chain = Chain(store, lambda place: Status.CANCELLED if self.stopped.is_set() else value(place))
        self.seconds = seconds
        self.lock, self.stopped = threading.Lock(), threading.Event()
        self.active = self.most = 0

    def __call__(self, commit: Commit) -> Run:
        with self.lock:
            self.active += 1
            self.most = max(self.most, self.active)
        self.stopped.wait(self.seconds(COMMITS.index(commit)))
        with self.lock:
            self.active -= 1
            return self.chain(commit)


def searched(store: Store, nodes: Nodes, *, name: str = "batch_cost", **more: Any) -> list[Round]:
    may_start = more.pop("may_start", lambda: True)
    subject = Subject(CHAIN, a_run().mode, "spec", name, step="train" if name != FAILURE else "")
    bisection = Bisection(store, subject, COMMITS, nodes, 0.95, **{"parallel": 3, **more})  # type: ignore[arg-type]
    return list(run_in_parallel(bisection, may_start=may_start, stop=nodes.stopped.set, poll_s=0.01))


@pytest.mark.parametrize("change", [1, 6, 16])
def test_commit_is_found_by_runs_at_the_same_time(store: Store, change: int) -> None:
    nodes = Nodes(store, noisy(change, 1.2, 0.01))
    rounds = searched(store, nodes)
    result = rounds[-1].progress
    assert result.assessment is not None
    assert (result.is_certain, result.assessment.best.versions) == (True, (change,))
    assert nodes.most >= 2
    assert nodes.active == 0
    first = [place for one in rounds for place in one.started][:4]
    assert sorted(first) == [0, 0, 16, 16], "the ends first, without waiting for each other"


def test_failure_is_found_by_runs_at_the_same_time(store: Store) -> None:
    nodes = Nodes(store, lambda place: Status.FAILED if place >= 9 else 1.0)
    result = searched(store, nodes, name=FAILURE)[-1].progress
    assert result.assessment is not None
    assert result.assessment.best.versions == (9,)
    assert [nodes.chain.executed.count(end) for end in (16, 0)] >= [3, 2]


def test_active_runs_are_cancelled_when_the_result_is_certain(store: Store) -> None:
    # The first run of the good end takes longer than the whole search.
    slow = iter([30.0])
    nodes = Nodes(
        store, noisy(16, 2.0, 0.001), seconds=lambda place: 0.01 if place not in (8,) else next(slow, 0.01)
    )
    began = time.monotonic()
    result = searched(store, nodes)[-1].progress
    assert result.is_certain
    assert time.monotonic() - began < 20
    assert nodes.stopped.is_set()


def test_cancelled_run_ends_the_search_after_all_runs(store: Store) -> None:
    nodes = Nodes(store, lambda place: Status.CANCELLED)
    rounds = searched(store, nodes)
    assert rounds[-1].progress.why.endswith("was cancelled")
    assert nodes.active == 0
    assert len(nodes.chain.executed) <= 3


def test_limits_count_active_runs_too(store: Store) -> None:
    nodes = Nodes(store, noisy(6, 1.2, 0.01))
    result = searched(store, nodes, most_runs=5)[-1].progress
    assert (len(nodes.chain.executed), result.why) == (5, "the limit of 5 runs is reached")


def test_further_runs_need_free_nodes(store: Store) -> None:
    nodes = Nodes(store, noisy(6, 1.2, 0.01))
    assert searched(store, nodes, may_start=lambda: False)[-1].progress.is_certain
    assert nodes.most == 1


def test_search_resumes_with_stored_runs(store: Store) -> None:
    first = Nodes(store, noisy(6, 1.2, 0.01))
    searched(store, first, most_runs=4)
    again = Nodes(store, noisy(6, 1.2, 0.01))
    again.chain.numbers = iter(range(100, 200))  # type: ignore[assignment]
    assert searched(store, again)[-1].progress.is_certain
    assert not {0, 16} & set(again.chain.executed), "both ends are measured"


def test_unusable_nodes_end_the_search_and_its_runs(store: Store) -> None:
    nodes = Nodes(store, lambda place: Status.INFRA_FAILURE)
    with pytest.raises(InfraError, match="runs in a row are infra_failure"):
        searched(store, nodes)
    assert nodes.active == 0
    assert nodes.stopped.is_set()


def test_nodes_are_free_without_active_and_waiting_runs(store: Store) -> None:
    cluster = load_cluster(str(ROOT / "configs/clusters/example.yaml"), ROOT / "configs")
    names = [node.name for node in cluster.nodes]
    assert len(names) >= 2
    store.runs.create(a_run("run-1", cluster=cluster.name, nodes=[]))
    assert not has_free_nodes(store, cluster, ["run-1"]), "not placed yet"
    store.runs.update("run-1", nodes=names[:1])
    assert has_free_nodes(store, cluster, ["run-1"])
    store.runs.create(a_run("run-2", cluster=cluster.name, nodes=names[1:]))
    assert not has_free_nodes(store, cluster, ["run-1"])
    store.runs.finish("run-2", Status.PASS, "", 9.0)
    assert has_free_nodes(store, cluster, ["run-1"])
    store.queue.join("run-1", [(cluster.nodes[1].address, 0)], owner="me", ttl_s=60)
    assert not has_free_nodes(store, cluster, ["run-1"]), "another run waits"
