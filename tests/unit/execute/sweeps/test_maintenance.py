"""Sweeps on a real database, without nodes: which runs count as gone, what is removed, and the messages."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.documents import request_document
from tests.support.stories import a_run, open_store

from tipcflow.domain import Cluster, InfraError, Node, Run, Status
from tipcflow.domain.run_documents import AirflowDocument, ClusterDocument, SourceDocument
from tipcflow.execute.allocation.document import HolderDocument
from tipcflow.execute.events import events_path
from tipcflow.execute.run import status_spool
from tipcflow.execute.sweeps.leases import expired_leases
from tipcflow.execute.sweeps.leftovers import leftovers
from tipcflow.execute.sweeps.maintenance import (
    DAY_S,
    OTHER_FOLDER_S,
    PASSED_FOLDER_S,
    SNAPSHOT_S,
    Owner,
    Upkeep,
)
from tipcflow.execute.sweeps.node_folders import BUILD_DAYS, is_removable, node_folders
from tipcflow.execute.sweeps.old_events import EVENTS_S
from tipcflow.execute.sweeps.retention import retention
from tipcflow.execute.sweeps.runs import abandoned_reason, collect_left, runs_without_status
from tipcflow.store import Store
from tipcflow.transport import Transport

NOW = time.time()
NODE = {"name": "b", "address": "192.0.2.2", "python": "/usr/bin/python3", "workspace": "/var/lib/tipcflow"}


class Deployment:
    """A home, a database, a scheduler's responses, and unreachable nodes."""

    def __init__(self, home: Path, store: Store) -> None:
        self.home, self.store = home, store
        self.owners: dict[str, Owner] = {}
        self.lines: list[str] = []
        self.requests: list[str] = []

    @property
    def upkeep(self) -> Upkeep:
        configs = self.home / "configs"
        owner = self.owners.get
        return Upkeep(
            self.store,
            self.home,
            configs,
            self.connect,
            self.lines.append,
            owner=lambda dag_id, run_id: owner(f"{dag_id} {run_id}", Owner.UNKNOWN),
            now=NOW,
        )

    def connect(self, node: Node) -> Transport:
        self.requests.append(node.name)
        raise InfraError(f"node {node.name} does not respond", node=node.name)

    def run(self, name: str, *, hours: float = 0.0, dag_run: str = "", owner: Owner | None = None) -> Run:
        run = a_run(name, created_at=NOW - hours * 3600)
        self.store.runs.create(run)
        if dag_run:
            self.store.documents.put(name, AirflowDocument(dag_id="toy", run_id=dag_run))
        if owner is not None:
            self.owners[f"toy {dag_run}"] = owner
        return run

    def lease(self, run: Run, *, ttl_s: float, node: str = "192.0.2.2", slot: int = 0) -> None:
        self.store.leases.acquire(run.id, [(node, slot)], owner="test", ttl_s=ttl_s, now=NOW)

    def cluster(self, name: str, *nodes: dict[str, object]) -> None:
        folder = self.home / "configs" / "clusters"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.yaml").write_text(
            Cluster.model_validate({"name": name, "nodes": nodes}).model_dump_json()
        )


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Deployment]:
    with open_store(tmp_path / "tipcflow.db") as store:
        yield Deployment(tmp_path, store)


def test_a_run_continues_as_long_as_a_controller_may_be_active(here: Deployment) -> None:
    living = [
        here.run("living", hours=99, dag_run="one", owner=Owner.LIVING),
        here.run("young", hours=23),
        here.run("anothers", hours=23, dag_run="two", owner=Owner.UNKNOWN),
        here.run("leased", hours=99),
        here.run("patient", hours=47),
    ]
    here.lease(living[3], ttl_s=1.0)
    here.store.documents.put("patient", request_document(wait_s=48 * 3600.0))
    assert [abandoned_reason(here.upkeep, run) for run in living] == [""] * 5
    assert runs_without_status(here.upkeep) == "5 runs without a status: 0 got one, 5 are still running"
    assert [run.status for run in here.store.runs.unfinished()] == [None] * 5
    assert len(here.store.leases.all()) == 1


def test_an_abandoned_run_gets_a_status_and_a_reason(here: Deployment) -> None:
    here.run("ended", hours=0.1, dag_run="one", owner=Owner.ENDED)
    here.run("local", hours=25)
    here.run("deleted", hours=26, dag_run="gone", owner=Owner.UNKNOWN)
    here.run("living", hours=99, dag_run="two", owner=Owner.LIVING)
    # The tasks that would have released it died: its lease does not protect it.
    here.lease(here.store.runs.get("ended"), ttl_s=900.0)
    assert runs_without_status(here.upkeep) == "4 runs without a status: 3 got one, 1 are still running"
    for name in ("ended", "local", "deleted"):
        run = here.store.runs.get(name)
        assert run.status is Status.INFRA_FAILURE
        assert any(line.startswith(f"{name}: infra_failure: ") for line in here.lines)
    why = "run ended before planning; DAG run ended without a run status"
    assert here.store.runs.get("ended").reason == why
    assert "no lease, started 25 h ago" in here.store.runs.get("local").reason
    assert here.store.leases.all() == []
    assert runs_without_status(here.upkeep) == "1 runs without a status: 0 got one, 1 are still running"


def test_a_run_killed_before_planning_is_collected_by_the_next_reap(here: Deployment) -> None:
    here.run("killed", hours=0.1)
    held = status_spool.reserve(here.home, "killed")
    assert held is not None
    held.close()
    assert status_spool.apply(here.home, here.store) == ["killed"]
    assert status_spool.left_runs(here.home) == ["killed"]
    collect_left(here.upkeep, run="another")
    assert status_spool.left_runs(here.home) == ["killed"]
    collect_left(here.upkeep, addresses={"192.0.2.1"})
    assert status_spool.left_runs(here.home) == []
    ended = here.store.runs.get("killed")
    assert (ended.status, ended.reason) == (
        Status.INFRA_FAILURE,
        f"run ended before planning; {status_spool.NO_CONTROLLER}",
    )


def test_leases_of_nodes_that_cannot_be_listed_stay(here: Deployment) -> None:
    here.cluster("local", NODE)
    runs = [here.run(name) for name in ("expired", "lost", "live")]
    here.lease(runs[0], ttl_s=-5)
    here.lease(runs[1], ttl_s=-5, node="198.51.100.9")
    here.lease(runs[2], ttl_s=5, slot=1)
    assert expired_leases(here.upkeep) == "2 leases expired: 0 were dropped"
    assert sorted(here.lines) == [
        "run expired: 1 leases kept: node cannot be listed: node b does not respond",
        "run lost: 1 leases kept: no cluster file lists 198.51.100.9",
    ]
    assert len(here.store.leases.all()) == 3
    assert here.requests == ["b"]


def test_waiting_run_is_kept_and_requests_of_dead_waiters_dropped(here: Deployment) -> None:
    here.cluster("local", NODE)
    waiting, dead = here.run("waiting", hours=99), here.run("dead", hours=99)
    for run, ttl_s in ((waiting, 60.0), (dead, -60.0)):
        here.store.queue.join(run.id, [("192.0.2.2", 0)], owner="test", ttl_s=ttl_s, now=NOW)
    assert [bool(abandoned_reason(here.upkeep, run)) for run in (waiting, dead)] == [False, True]
    assert leftovers(here.upkeep) == ("0 nodes checked: leftovers of 0 runs ended; 1 expired requests dropped")
    assert here.requests == ["b"]
    assert [place.request.run for place in here.store.queue.places(NOW)] == ["waiting"]


def test_long_run_on_slurm_is_not_abandoned_while_its_controller_runs(here: Deployment) -> None:
    run = here.run("slurm", hours=99)
    for until, is_abandoned in ((60.0, False), (-60.0, True)):
        here.store.documents.put("slurm", HolderDocument(until=here.upkeep.now + until))
        assert bool(abandoned_reason(here.upkeep, run)) == is_abandoned


def test_a_run_knows_its_own_nodes(here: Deployment) -> None:
    here.cluster("local", {**NODE, "name": "newer"})
    here.store.documents.put(
        here.run("expired").id, ClusterDocument.model_validate({"name": "own", "nodes": [NODE | {"name": "own"}]})
    )
    here.lease(here.store.runs.get("expired"), ttl_s=-5)
    expired_leases(here.upkeep)
    assert here.requests == ["own"]


@pytest.mark.parametrize(
    ("status", "age", "keep", "goes"),
    [
        (Status.PASS, PASSED_FOLDER_S + 1, False, True),
        (Status.PASS, PASSED_FOLDER_S - 1, False, False),
        (Status.PASS, OTHER_FOLDER_S - 1, True, False),
        (Status.PASS, OTHER_FOLDER_S + 1, True, True),
        (Status.FAILED, OTHER_FOLDER_S - 1, False, False),
        (Status.FAILED, OTHER_FOLDER_S + 1, False, True),
        (Status.IMPROVEMENT, PASSED_FOLDER_S + 1, False, False),
        (None, 99 * DAY_S, False, False),
    ],
)
def test_status_and_age_decide_which_node_folders_are_removed(
    status: Status | None, age: float, keep: bool, goes: bool
) -> None:
    run = a_run(status=status, ended_at=status and NOW - age)
    assert is_removable(run, NOW, keep=keep) is goes


def test_unreachable_nodes_are_reported(here: Deployment) -> None:
    here.cluster("one", NODE, NODE | {"name": "c", "address": "192.0.2.3"})
    here.cluster("same", NODE)  # not queried twice
    (here.home / "configs" / "clusters" / "wrong.yaml").write_text("name: wrong\nnodes: 5\n")
    assert node_folders(here.upkeep) == "0 nodes checked: folders of 0 runs removed, folders of 0 runs stay"
    assert sorted(here.requests) == ["b", "c"]
    assert here.lines[1:] == ["cluster one is skipped: node b does not respond"]
    assert here.lines[0].startswith("cluster wrong is skipped: ")
    assert "nodes" in here.lines[0]


def aged(path: Path, age_s: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    os.utime(path, (NOW - age_s, NOW - age_s))
    return path


def test_unused_folders_are_removed(here: Deployment) -> None:
    archives = here.home / "suites" / "archives"
    old, new = SNAPSHOT_S + 60, SNAPSHOT_S - 60
    gone = [
        aged(archives / "a1.tar.gz", old),
        aged(archives / "a1.names", old),
        aged(archives / ".a2.tar.gz.77", old),
    ]
    stay = [
        aged(archives / "b1.tar.gz", new),
        aged(archives / "b1.names", old),
        aged(archives / "c1.tar.gz", old),
        aged(archives / ".d1.names.5", new),
    ]
    here.run("unfinished")
    here.store.documents.put("unfinished", SourceDocument(sha256="c1"))
    for name, age in (("ended", EVENTS_S + 60), ("unfinished", EVENTS_S + 60), ("new", EVENTS_S - 60)):
        path = aged(events_path(here.home, name), age)
        (stay if name == "new" else gone).append(path)
        stay.append(aged(path.with_name("certificate.json"), 9 * EVENTS_S))
    assert (
        retention(here.upkeep)
        == "removed: 3 files of suite snapshots, progress of 2 runs; rolled up: 0 samples of 0 runs"
    )
    assert [path.exists() for path in gone] == [False] * 5
    assert all(path.exists() for path in stay)
    assert (
        retention(here.upkeep)
        == "removed: 0 files of suite snapshots, progress of 0 runs; rolled up: 0 samples of 0 runs"
    )


def test_old_wheels_and_unfinished_downloads_are_removed(here: Deployment) -> None:
    wheels, month = here.home / "wheels", BUILD_DAYS * DAY_S
    gone = [
        aged(wheels / "a1" / "paddlepaddle-3.3.1-cp311-none-any.whl", month + 60),
        aged(wheels / ".0123", DAY_S + 60),
    ]
    stay = [
        aged(wheels / "b1" / "paddlepaddle-3.3.1-cp311-none-any.whl", month - 60),
        aged(wheels / "of_the_operator-1-py3-none-any.whl", month + 60),
        aged(wheels / ".4567", DAY_S - 60),
    ]
    assert ", 2 wheels;" in retention(here.upkeep)
    assert [path.exists() for path in gone] == [False, False]
    assert not gone[0].parent.exists()
    assert all(path.exists() for path in stay)


def test_old_objects_of_the_store_are_removed(here: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = here.home / "bucket"
    objects.mkdir()
    monkeypatch.setenv("TIPCFLOW_STORE", f"file://{objects}")
    month = BUILD_DAYS * DAY_S
    gone = [
        aged(objects / "suites" / "a1.tar.gz", SNAPSHOT_S + 60),
        aged(objects / "suites" / "a1.names", SNAPSHOT_S + 60),
        aged(objects / "wheels" / "a2" / "w.whl", month + 60),
        aged(objects / "events" / "r1" / "host.jsonl", EVENTS_S + 60),
        aged(objects / ".aside" / "a3", DAY_S + 60),
    ]
    stay = [
        aged(objects / "suites" / "b1.tar.gz", SNAPSHOT_S - 60),
        aged(objects / "suites" / "c1.tar.gz", SNAPSHOT_S + 60),
        aged(objects / "wheels" / "b2" / "w.whl", month - 60),
        aged(objects / "events" / "r2" / "host.jsonl", EVENTS_S - 60),
        aged(objects / ".aside" / "b3", DAY_S - 60),
        aged(objects / "runs" / "r1" / "train~1" / "a" / "logs" / "main.log", 9 * EVENTS_S),
        aged(objects / "runs" / "r1" / "certificate.json", 9 * EVENTS_S),
    ]
    here.run("unfinished")
    here.store.documents.put("unfinished", SourceDocument(sha256="c1"))
    assert ", 5 objects of the object store;" in retention(here.upkeep)
    assert [path.exists() for path in gone] == [False] * 5
    assert all(path.exists() for path in stay)


def test_store_that_is_away_does_not_stop_retention(here: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIPCFLOW_STORE", f"file://{here.home}/nowhere")
    assert retention(here.upkeep).startswith("removed: 0 files of suite snapshots")
    assert here.lines == [
        f"objects are not removed: the folder of the object store file://{here.home}/nowhere "
        "does not exist on this machine"
    ]


def test_an_empty_deployment_has_nothing_to_do(here: Deployment) -> None:
    for sweep in (runs_without_status, expired_leases, leftovers, node_folders, retention):
        assert sweep(here.upkeep).count("0") >= 2
    assert here.lines == []


def test_old_deliveries_lose_their_event_data(here: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    outbox = here.store.outbox
    for number in range(2):
        name = {"delivery": f"d{number}", "body_sha256": str(number), "connection": "c", "repository": "o/r"}
        outbox.add(**name, event="push", body={})
    outbox.done("d0", "started")
    retention(here.upkeep)
    assert {row.delivery: row.body for row in outbox.rows()} == {"d0": {}, "d1": {}}
    monkeypatch.setattr("tipcflow.store.outbox.BODY_DAYS", -1.0)
    retention(here.upkeep)
    assert {row.delivery: row.body for row in outbox.rows()} == {"d0": None, "d1": {}}
