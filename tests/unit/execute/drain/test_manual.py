"""Drains of users: on any cluster, once, with the doubtful runs of the slowdown."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.stories import a_run, open_store
from tests.support.two_nodes import record_slow_node

from tipcflow.domain import Cluster, ConfigError, Node
from tipcflow.domain.run.drains import DoubtfulDocument, Drain
from tipcflow.execute.drain.drains import all_drains, drained_nodes, end_drain
from tipcflow.execute.drain.manual import start_drain
from tipcflow.execute.overview.node_history import load_node_history
from tipcflow.execute.resolve.placement import doubtful_nodes
from tipcflow.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "t.db", record_slow_node) as opened:
        yield opened


def cluster(name: str = "local") -> Cluster:
    nodes = tuple(
        Node(name=node, address=f"10.0.0.{number}", python="/p", workspace="/w")
        for number, node in enumerate("abc")
    )
    return Cluster(name=name, drain="ask", nodes=nodes)


def drain(store: Store, clusters: list[Cluster], node: str, *, who: str, why: str) -> Drain:
    return start_drain(
        store, clusters, node, who=who, why=why, history_of=lambda name: load_node_history(store, cluster=name)
    )


def test_a_proposed_node_is_drained_with_its_doubtful_runs_and_returned(store: Store) -> None:
    made = drain(store, [cluster()], "b", who="ann", why="loud fan")
    assert (made.key, made.who, made.why, len(made.doubtful)) == ("local/b", "ann", "loud fan", 10)
    assert [each.run for each in all_drains(store)] == ["b-20"]
    assert list(drained_nodes(store, cluster())) == ["b"]
    assert "b" in doubtful_nodes(store, cluster())
    assert set(store.documents.of_type(DoubtfulDocument)) == set(made.doubtful)
    end_drain(store, "", "b", who="ann", why="new fan")
    assert drained_nodes(store, cluster()) == {}
    drain(store, [cluster()], "b", who="ann", why="still loud")
    assert [each.drain.why for each in all_drains(store)] == ["loud fan", "still loud"], "the record is kept"


def test_a_node_that_is_not_slower_is_drained_with_its_newest_run(store: Store) -> None:
    made = drain(store, [cluster()], "a", who="ann", why="reserved")
    assert made.doubtful == ()
    assert [each.run for each in all_drains(store)] == ["a-29"]
    drain(store, [cluster()], "c", who="ann", why="no run was on it")
    assert sorted(drained_nodes(store, cluster())) == ["a", "c"]


@pytest.mark.parametrize(
    ("clusters", "node", "message"),
    [
        (
            ["local"],
            "x",
            "NODE: is not a node of a cluster file; found 'x'; expected one of local/a, local/b, local/c",
        ),
        (
            ["lab", "local"],
            "b",
            "NODE: is a node of several clusters; found 'b'; expected one of lab/a, lab/b, lab/c, local/a, "
            "local/b, local/c\n  hint: name the cluster: --cluster",
        ),
    ],
)
def test_unknown_nodes_are_refused(store: Store, clusters: list[str], node: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        drain(store, [cluster(name) for name in clusters], node, who="ann", why="x")
    assert str(error.value) == message
    assert all_drains(store) == []


def test_a_drained_node_is_refused(store: Store) -> None:
    drain(store, [cluster()], "b", who="ann", why="loud fan")
    with pytest.raises(ConfigError) as error:
        drain(store, [cluster()], "b", who="bob", why="x")
    message, _, hint = str(error.value).partition("\n  hint: ")
    assert message == "NODE: is drained already; found 'b'; expected a node in service"
    assert hint.endswith(" by ann: loud fan")


def test_all_drains_of_a_node_are_stored_with_the_only_run(tmp_path: Path) -> None:
    with open_store(tmp_path / "empty.db") as store:
        with pytest.raises(ConfigError, match="the database has no run; found 'a'"):
            drain(store, [cluster()], "a", who="ann", why="x")
        store.runs.create(a_run("first"))
        for why in ("first", "second", "third"):
            assert drain(store, [cluster()], "a", who="ann", why=why).node == "a"
            end_drain(store, "local", "a", who="ann", why="repaired")
        assert [each.drain.why for each in all_drains(store)] == ["first", "second", "third"]
        assert drained_nodes(store, cluster()) == {}
