"""Draining of slow nodes: evidence, limits, placement, and the return to service."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.stories import a_run, open_store
from tests.support.two_nodes import record_slow_node

from tipcflow.domain import Cluster, ConfigError, Node
from tipcflow.domain.run.drains import DoubtfulDocument, Drain
from tipcflow.execute.drain.drains import all_drains, drain_slowest, drained_nodes, end_drain
from tipcflow.execute.overview.node_history import load_node_history
from tipcflow.execute.resolve.placement import doubtful_nodes, place_nodes
from tipcflow.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "t.db", record_slow_node) as opened:
        yield opened


def cluster(count: int = 2, drain: str = "auto") -> Cluster:
    nodes = tuple(
        Node(name=name, address=f"10.0.0.{number}", python="/p", workspace="/w")
        for number, name in enumerate("abcdefgh"[:count])
    )
    return Cluster(name="local", drain=drain, nodes=nodes)  # type: ignore[arg-type]


def drained(store: Store, where: Cluster) -> tuple[Drain | None, str]:
    history = load_node_history(store, cluster="local")
    return drain_slowest(store, where, history, store.now())


def test_slow_node_is_drained_with_its_evidence(store: Store) -> None:
    drain, line = drained(store, cluster())
    assert drain is not None
    assert line.startswith("b is drained: probe cpu +40.0 % slower since ")
    assert (drain.who, drain.doubtful[:2], len(drain.doubtful)) == ("tipcflow", ("b-20", "b-21"), 10)
    ((run, kept, _),) = all_drains(store)
    assert (run, kept) == ("b-20", drain)
    marked = store.documents.of_type(DoubtfulDocument)
    assert set(marked) == set(drain.doubtful)
    assert marked["b-29"].why.startswith("node b is slower than before: probe cpu +40.0 % slower")


def test_drained_node_is_chosen_last_and_only_on_clusters_with_auto(store: Store) -> None:
    drained(store, cluster())
    for drain, expected in (("auto", ["b"]), ("ask", [])):
        assert list(drained_nodes(store, cluster(drain=drain))) == expected
    reversed_nodes = cluster().model_copy(update={"nodes": tuple(reversed(cluster().nodes))})
    placed = place_nodes(reversed_nodes, 1, {}, doubtful=doubtful_nodes(store, reversed_nodes))
    assert [node.name for node in placed.nodes] == ["a", "b"]
    both = place_nodes(reversed_nodes, 2, {}, doubtful=doubtful_nodes(store, reversed_nodes))
    assert [node.name for node in both.nodes] == ["b", "a"], "a run of all nodes uses the drained one"


def test_nodes_that_runs_need_are_not_drained(store: Store) -> None:
    assert drained(store, cluster(1)) == (None, ""), "b is not part of the cluster"
    store.runs.create(a_run("wide", nodes=("a", "b"), created_at=store.now()))
    drain, line = drained(store, cluster())
    assert drain is None
    assert line == "b is not drained: 1 node of local would be left, and its runs use up to 2"
    assert drained(store, cluster(3))[0] is not None


def test_share_of_drained_nodes_is_limited(store: Store) -> None:
    other = Drain(cluster="local", node="c", at=1.0, who="tipcflow", why="slow")
    from tipcflow.domain.run.drains import DrainsDocument

    store.documents.merge("a-1", DrainsDocument, {other.key: other})
    assert (
        drained(store, cluster(4))[1] == "b is not drained: 1 of 4 nodes of local are drained, at most 25% may be"
    )
    assert drained(store, cluster(8))[0] is not None


def test_returned_node_is_not_drained_again_for_the_same_slowdown(store: Store) -> None:
    drained(store, cluster())
    assert drained(store, cluster()) == (None, "")
    ended = end_drain(store, "", "b", who="ann", why="new fan")
    assert (ended.ended_by, ended.ended_why) == ("ann", "new fan")
    assert drained_nodes(store, cluster()) == {}
    assert drained(store, cluster()) == (None, "")
    assert len(all_drains(store)) == 1, "the record is kept"


@pytest.mark.parametrize(
    ("where", "node", "words"), [("", "a", "is not drained"), ("other", "b", "expected one of local/b")]
)
def test_node_in_service_cannot_be_returned(store: Store, where: str, node: str, words: str) -> None:
    drained(store, cluster())
    with pytest.raises(ConfigError, match=words):
        end_drain(store, where, node, who="ann", why="x")
