"""The speed of nodes over time, as stored by maintenance or found in the runs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import a_run, losses, open_store, record_run
from tests.support.two_nodes import record_slow_node

from tipcflow.domain import Cluster, Node, Phase
from tipcflow.execute.drain.drains import end_drain
from tipcflow.execute.drain.manual import start_drain
from tipcflow.execute.overview.node_history import (
    FRESH_S,
    load_node_history,
    recent_node_history,
    refresh_node_histories,
)
from tipcflow.store import Store
from tipcflow.store.queries.operation import OperationQueries


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Store]:
    """A database whose node b is slower than before."""
    with open_store(tmp_path / "tipcflow.db", record_slow_node) as store:
        yield store


def test_maintenance_stores_all_nodes_and_each_cluster(stored: Store) -> None:
    overall, own = refresh_node_histories(stored)
    assert [trend.node for trend in overall.slow] == ["b"]
    assert own.nodes == overall.nodes
    now = stored.now()
    assert recent_node_history(stored, now=now) == overall
    assert recent_node_history(stored, cluster="local", now=now) == own


def test_maintenance_stores_drained_nodes_for_the_metrics(stored: Store) -> None:
    cluster = Cluster(name="local", nodes=(Node(name="b", address="10.0.0.2", python="/p", workspace="/w"),))
    start_drain(stored, [cluster], "b", who="mia", why="fan", history_of=lambda _: load_node_history(stored))
    queries = OperationQueries(stored.database)
    assert queries.numbers(60.0).drained == []
    refresh_node_histories(stored)
    assert queries.numbers(60.0).drained == [("local", "b")]
    end_drain(stored, "local", "b", who="mia", why="new fan")
    refresh_node_histories(stored)
    assert queries.numbers(60.0).drained == []


def test_a_stored_report_is_used_for_two_hours(stored: Store) -> None:
    found = load_node_history(stored)
    empty = found.model_copy(update={"nodes": ()})
    stored.node_histories.put("", found.days, found.at, empty.model_dump(mode="json"))
    assert recent_node_history(stored, now=found.at + FRESH_S).nodes == ()
    later = recent_node_history(stored, now=found.at + FRESH_S + 1)
    assert later.nodes == found.nodes
    assert later.at == found.at + FRESH_S + 1


@pytest.mark.parametrize(
    ("cluster", "days"), [("local", 90.0), ("", 30.0)], ids=["another cluster", "another period"]
)
def test_a_report_that_is_not_stored_is_found_in_the_runs(stored: Store, cluster: str, days: float) -> None:
    now = stored.now()
    empty = load_node_history(stored, now=now).model_copy(update={"nodes": ()})
    stored.node_histories.put("", 90.0, now, empty.model_dump(mode="json"))
    found = recent_node_history(stored, cluster=cluster, days=days, now=now)
    assert found == load_node_history(stored, cluster=cluster, days=days, now=now)
    assert found.nodes


def test_a_report_of_another_version_is_found_again(stored: Store) -> None:
    now = stored.now()
    stored.node_histories.put("", 90.0, now, {"schema_version": 2, "unknown": True})
    assert [trend.node for trend in recent_node_history(stored, now=now).slow] == ["b"]


def test_equal_names_in_two_clusters_are_two_nodes(stored: Store) -> None:
    """Runs on the other cluster's fast node `b`, created between and after those on the slow one."""
    for number in range(30):
        probe: dict[str, Any] = {"node": "b", "rank": -1, "phase": Phase.RESOURCE, "unit": "s"}
        created = stored.now() - (40 - number) * 86_400 + 3600
        run = record_run(stored, a_run(f"farm-{number}", cluster="farm", nodes=("b",), created_at=created))
        stored.measurements.add(losses(run.id, [0.05], metric="probe.cpu", **probe))
    overall = refresh_node_histories(stored)[0]
    assert [(trend.cluster, trend.node, trend.runs) for trend in overall.slow] == [("local", "b", 30)]
    assert [overall.name(trend) for trend in overall.nodes] == ["local/b", "a", "farm/b"]
    slowdowns = OperationQueries(stored.database).numbers(60.0).slowdowns
    assert slowdowns[("local", "b")] == pytest.approx(0.4, abs=0.02)
    assert slowdowns[("farm", "b")] == 0.0
