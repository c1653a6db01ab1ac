"""`tipcflow nodes --history`: text, JSON and CSV from stored runs; no node is contacted."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import database_of
from tests.support.two_nodes import record_slow_node

from tipcflow.domain.run.drains import Drain, DrainsDocument
from tipcflow.store import Store


@pytest.fixture
def slow_node(database: Path) -> None:
    database.write_bytes(database_of(record_slow_node))


@pytest.mark.usefixtures("slow_node")
def test_history_names_the_slow_node_and_its_doubtful_runs(tipcflow: Callable[..., Any]) -> None:
    output = tipcflow("nodes", "--history")
    assert output.code == 0
    lines = output.out.splitlines()
    assert lines[:2] == ["2 nodes with runs in the last 90 days: 1 is slower than before", "b: slower, 30 runs"]
    assert [line.partition(" since")[0] for line in lines[2:4]] == [
        "  probe cpu +40.0 % slower",
        "  chains +40.0 % slower",
    ]
    assert lines[3].endswith("(run b-20), on other nodes 0 %")
    assert lines[4:] == [
        "  proposed: drain b until the cause is fixed: tipcflow nodes drain b --because '…'",
        "  doubtful: 10 runs since then: b-20, b-21, b-22, b-23, b-24 and 5 more",
        "a: as before, 30 runs",
    ]
    facts = json.loads(tipcflow("nodes", "--history", "--json").out)
    assert [(trend["node"], trend["is_slow"], len(trend["doubtful"])) for trend in facts["nodes"]] == [
        ("b", True, 10),
        ("a", False, 0),
    ]
    table = tipcflow("nodes", "--history", "--csv").out.splitlines()
    assert table[0] == "cluster,node,source,size,elsewhere,since,since_at,runs,is_slow"
    assert [row.split(",")[:3] for row in table[1:]] == [["local", "b", "cpu"], ["local", "b", "chains"]]


@pytest.mark.usefixtures("slow_node")
def test_drained_node_is_listed_and_returned_to_service(tipcflow: Callable[..., Any]) -> None:
    with Store.open() as store:
        drain = Drain(cluster="lab", node="b", at=1_795_000_000.0, who="tipcflow", why="probe cpu slower")
        store.documents.merge("b-20", DrainsDocument, {drain.key: drain})
    last = tipcflow("nodes", "--history").out.splitlines()[-1]
    assert last == (
        "lab/b: drained 2026-11-18 11:06 UTC by tipcflow: probe cpu slower; "
        "undo: tipcflow nodes undrain b --cluster lab --because '…'"
    )
    assert tipcflow("nodes", "undrain", "b").code == 2
    done = tipcflow("nodes", "undrain", "b", "--because", "new fan", "--who", "ann")
    assert done.out == "node b of cluster lab gets runs again\n"
    assert "in service since" in tipcflow("nodes", "--history").out.splitlines()[-1]
    (kept,) = json.loads(tipcflow("nodes", "--history", "--json").out)["drains"]
    assert (kept["ended_by"], kept["ended_why"]) == ("ann", "new fan")
    assert "is not drained" in tipcflow("nodes", "undrain", "b", "--because", "again").err


@pytest.mark.usefixtures("slow_node")
def test_node_is_drained_in_the_name_of_the_user(
    tipcflow: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "configs" / "clusters").mkdir(parents=True)
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(tmp_path / "configs"))
    node = "{name: b, address: 10.0.0.2, ssh: {host: 10.0.0.2}, python: /p, workspace: /w}"
    (tmp_path / "configs" / "clusters" / "local.yaml").write_text(f"name: local\nnodes:\n  - {node}\n")
    assert "--because: is empty; expected a reason" in tipcflow("nodes", "drain", "b").err
    done = tipcflow("nodes", "drain", "b", "--because", "loud fan", "--who", "ann")
    assert done.out == (
        "node b of cluster local gets no runs, unless a run needs more nodes than are left; "
        "undo: tipcflow nodes undrain b --cluster local --because '…'\n"
    ), done.err
    last = tipcflow("nodes", "--history").out.splitlines()[-1]
    assert last.startswith("local/b: drained ")
    assert " by ann: loud fan; undo: " in last
    assert "is drained already" in tipcflow("nodes", "drain", "b", "--because", "again").err
    assert "is not a node of a cluster file" in tipcflow("nodes", "drain", "x", "--because", "x").err


@pytest.mark.usefixtures("slow_node")
def test_history_of_a_short_period_knows_no_earlier_level(tipcflow: Callable[..., Any]) -> None:
    out = tipcflow("nodes", "--history", "--days", "15").out
    assert out.splitlines()[0] == "2 nodes with runs in the last 15 days: none are slower than before"


@pytest.mark.usefixtures("database")
def test_history_is_empty_without_runs_and_fails_for_an_unknown_cluster(tipcflow: Callable[..., Any]) -> None:
    assert (
        tipcflow("nodes", "--history").out
        == "0 nodes with runs in the last 90 days: none are slower than before\n"
    )
    assert tipcflow("nodes", "--history", "--cluster", "nowhere").code == 2
