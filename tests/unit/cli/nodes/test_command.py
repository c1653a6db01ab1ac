"""`tipcflow nodes` and `nodes reap` as an operator reads them at night."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.expected.golden import assert_golden
from tests.support.stories import T0, a_run

from tipcflow.cli.nodes.choice import chosen
from tipcflow.cli.nodes.reap import chosen_nodes, reap_lines
from tipcflow.cli.nodes.table import View, as_dict, lines_of
from tipcflow.domain import Cluster, ConfigError, Node, NodeFacts
from tipcflow.domain.run.drains import Drain
from tipcflow.execute.node.health import NodeHealth
from tipcflow.execute.sweeps.reap import Reaped
from tipcflow.store import Store

GOLDEN = Path(__file__).parents[3] / "golden" / "cli"
WEEKLY, CHANGE, BY_HAND, LEFT = (
    "20261121t200000-resnet50-0a1b2c3d",
    "20261122t021500-mobilenet_v3_small-77aa88bb",
    "20261122t021733-ppocr_mobile-4f2e",
    "20261120t101010-mobilenet_v3_small-c0de",
)
FOREIGN = "20261122t020000-yolov3-beef"


def a_node(number: int, **fields: Any) -> Node:
    known = {"name": f"node-{number}", "address": f"192.0.2.{number}", "slots": 4, "device": "gpu"}
    return Node(python="/usr/bin/python3", workspace="/var/lib/tipcflow", **(known | fields))


def facts_of(node: Node, **fields: Any) -> NodeFacts:
    gpus = tuple({"name": "A100"} for _ in range(node.slots))
    known: dict[str, Any] = {"disk_free_bytes": 812_000_000_000, "gpus": gpus, "clock_skew_s": 0.04}
    return NodeFacts(node=node.name, **(known | fields))


@pytest.fixture
def view(tmp_path: Path) -> Iterator[View]:
    """A night: node 3 is away, node 4 has a full disk, node 2 has leftovers of a dead controller."""
    nodes = [a_node(number) for number in (1, 2, 3, 4)] + [a_node(9, device="cpu", slots=2, name="small")]
    one, two, three, four, small = nodes
    away = "root@192.0.2.3:22 does not respond"
    checked = [
        NodeHealth(node=one, facts=facts_of(one), jobs={WEEKLY: (f"{WEEKLY}/train/1",)}, processes={WEEKLY: 9}),
        NodeHealth(node=two, facts=facts_of(two), jobs={LEFT: (f"{LEFT}/train/1",)}, processes={LEFT: 3}),
        NodeHealth(node=three, unreachable=away, hint="see its console"),
        NodeHealth(node=four, facts=facts_of(four, disk_free_bytes=3_210_000_000, clock_skew_s=-601.2, gpus=())),
        NodeHealth(node=small, facts=facts_of(small), claims={FOREIGN: "ann@host pid 7"}),
    ]
    with Store.open(f"sqlite:///{tmp_path / 'tipcflow.db'}") as store:
        for name, trigger in ((WEEKLY, "weekly"), (CHANGE, "ci"), (BY_HAND, "cli"), (LEFT, "manual")):
            store.runs.create(a_run(name, trigger=trigger))
        owners = {WEEKLY: "airflow clas.resnet50.train_infer_python weekly__x", LEFT: "airflow a manual__y"}

        def slots(node: Node, count: int) -> list[tuple[str, int]]:
            return [(node.address, slot) for slot in range(count)]

        store.leases.acquire(WEEKLY, slots(one, 4), owner=owners[WEEKLY], ttl_s=90000, now=T0 - 22000)
        store.leases.acquire(LEFT, slots(two, 2), owner=owners[LEFT], ttl_s=60, now=T0 - 90000)
        for run, owner, wanted, at in (
            (CHANGE, "airflow ocr.m.t ci__55", slots(one, 2) + slots(two, 2), T0 - 120),
            (BY_HAND, "ann@host pid 4242", slots(one, 1), T0 - 2000),
        ):
            store.queue.join(run, wanted, owner=owner, ttl_s=9999, now=at, rise_s=3600)
        runs = store.runs.known([WEEKLY, CHANGE, BY_HAND, LEFT])
        clusters = (Cluster(name="gpu", nodes=(one, two, three, four)), Cluster(name="cpu", nodes=(small,)))
        leases, queue = store.leases.all(), store.queue.places(T0, 3600)
        drain = Drain(cluster="cpu", node="small", at=T0 - 7200, who="ann", why="loud fan")
        rows = {"leases": leases, "queue": queue, "runs": runs, "drains": {drain.key: drain}}
        yield View(clusters=clusters, checked=checked, now=T0, **rows)


def golden(name: str, text: str) -> None:
    path = GOLDEN / name
    assert_golden(path, text)


@pytest.mark.parametrize("width", [80, 120, None])
def test_nodes_tables_equal_golden_files(view: View, width: int | None) -> None:
    lines = list(lines_of(view, width=width))
    golden(
        f"nodes-{width}.txt",
        "".join(f"{'!' if line.color else ' '}{line.text}".rstrip() + "\n" for line in lines),
    )
    assert all(len(line.text) <= (width or 1000) for line in lines)
    text = "\n".join(line.text for line in lines)
    assert all(text.count(run) for run in (WEEKLY, CHANGE, BY_HAND, LEFT, FOREIGN)), "ids are never broken"


def test_nothing_is_going_on(view: View) -> None:
    quiet = View(clusters=view.clusters[1:], checked=[NodeHealth(node=view.clusters[1].nodes[0])], now=T0)
    assert [line.text for line in lines_of(quiet, width=80)] == [
        "cpu: 1 node, 2 of 2 slots free",
        "NODE   DEVICE  FREE  DISK  CLOCK  HEALTH",
        "small  cpu     2/2   ?     ?      ok",
        "",
        "slots in use: none",
        "",
        "queue for slots: none",
    ]


def test_programs_get_the_same(view: View) -> None:
    report = as_dict(view)
    nodes = {node["name"]: node for node in report["nodes"]}
    assert [name for name, node in nodes.items() if node["troubles"]] == ["node-2", "node-3", "node-4"]
    assert (nodes["node-3"]["reachable"], nodes["node-3"]["free_slots"]) == (False, 0)
    assert nodes["small"]["clusters"] == ["cpu"]
    assert nodes["small"]["notes"] == [
        "cpu/small: drained 2026-11-18 09:06 UTC by ann: loud fan; "
        "undo: tipcflow nodes undrain small --cluster cpu --because '…'",
        f"run {FOREIGN} of another controller (ann@host pid 7) is running there",
    ]
    assert [name for name, node in nodes.items() if node["drained"]] == ["small"]
    assert [(lease["run"], lease["trigger"], lease["live"]) for lease in report["leases"]] == [
        *[(WEEKLY, "weekly", True)] * 4,
        *[(LEFT, "manual", False)] * 2,
    ]
    assert [(place["run"], place["position"], place["of"]) for place in report["queue"]] == [
        (CHANGE, 1, 2),
        (BY_HAND, 2, 2),
    ]


def test_reap_prints_the_ended_leftovers() -> None:
    reaped = [
        Reaped(node="node-1", lines=(f"run {WEEKLY}: is running, leased until then by airflow; skipped",)),
        Reaped(
            node="node-2",
            lines=(f"run {LEFT}: ended train/1 (3 processes killed)", f"run {LEFT}: its lease was dropped"),
            ended=(LEFT,),
        ),
        Reaped(node="node-3", unreachable="root@192.0.2.3:22 does not respond"),
        Reaped(node="node-4"),
    ]
    golden("nodes-reap.txt", "".join(f"{line}\n" for line in reap_lines(reaped, [BY_HAND])))


UNUSED = (
    "name: compose\nnodes:\n  - {name: a, address: '${NODE_NETWORK:-192.0.2}.11', python: /p, workspace: /w}\n"
)


@pytest.mark.usefixtures("database")
def test_cluster_of_another_installation_is_left_out_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "configs" / "clusters"
    folder.mkdir(parents=True)
    (folder / "compose.yaml").write_text(UNUSED)
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(folder.parent))
    monkeypatch.delenv("NODE_NETWORK", raising=False)
    assert chosen(None) == []
    assert capsys.readouterr().err == (
        "cluster compose is not in use: NODE_NETWORK is not set, and no run used the cluster "
        "(--cluster compose selects it)\n"
    )
    assert [cluster.name for cluster in chosen("compose")] == ["compose"]
    monkeypatch.setenv("NODE_NETWORK", "192.0.2")
    assert [cluster.name for cluster in chosen(None)] == ["compose"]
    monkeypatch.delenv("NODE_NETWORK")
    with Store.open() as store:
        store.runs.create(a_run(cluster="compose"))
    assert [cluster.name for cluster in chosen(None)] == ["compose"]


def test_nodes_are_chosen_by_cluster_or_name(view: View, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [node.name for node in chosen_nodes(view.clusters, ["small", "node-2"])] == ["node-2", "small"]
    with pytest.raises(ConfigError, match=r"no such node; found 'node-7'; expected one of node-1, node-2"):
        chosen_nodes(view.clusters, ["node-7"])
    folder = tmp_path / "configs" / "clusters"
    folder.mkdir(parents=True)
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(folder.parent))
    (folder / "example.yaml").write_text(view.clusters[0].model_copy(update={"name": "example"}).model_dump_json())
    with pytest.raises(ConfigError, match="no cluster is configured"):
        chosen(None)
    assert [cluster.name for cluster in chosen("example")] == ["example"]
    (folder / "cpu.yaml").write_text(view.clusters[1].model_dump_json())
    assert [cluster.name for cluster in chosen(None)] == ["cpu"]
