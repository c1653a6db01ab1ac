"""All files of one run are removed, except where nothing is reached: those places are named."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.stories import a_run

from tipcflow.domain import Cluster, ConfigError, InfraError, Node, Run, Status
from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.run.kept_files import KeptDocument
from tipcflow.domain.run_documents import AirflowDocument, ClusterDocument
from tipcflow.execute.objects.object_store import ObjectStore
from tipcflow.execute.sweeps.prune_run import Place, places_of_run, refuse_active
from tipcflow.store import Store
from tipcflow.transport import Transport

NOW = 1_800_000_000.0
NODES = [
    {"name": name, "address": f"192.0.2.{number}", "python": "/usr/bin/python3", "workspace": "/var/lib/tipcflow"}
    for number, name in enumerate(("node-a", "node-b", "other"), 1)
]
OWN, SHARED, OTHER = "a" * 64, "b" * 64, "c" * 64


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path}/tipcflow.db") as store:
        yield store


@pytest.fixture
def run(store: Store, tmp_path: Path) -> Run:
    """An ended run of Airflow on two of three nodes, with a folder, and one of two copies of objects."""
    made = a_run("leaked", created_at=NOW - 60)
    store.runs.create(made)
    store.runs.finish(made.id, Status.PASS, "", NOW)
    store.documents.put(made.id, ClusterDocument(Cluster.model_validate({"name": "lab", "nodes": NODES})))
    store.documents.put(made.id, AirflowDocument(dag_id="clas.toy", run_id="manual__1"))
    kept = {AttemptKey("v/train", 1): {"node-a/main.log": OWN, "node-b/main.log": SHARED}}
    store.documents.merge(made.id, KeptDocument, kept)
    for path in ("runs/leaked/v/main.log", f"objects/{OWN}/main.log.gz", f"objects/{OTHER}/x", "runs/later/x"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("12345")
    return store.runs.get(made.id)


def refuse(node: Node) -> Transport:
    raise InfraError(f"node {node.name} does not respond", node=node.name)


def by_start(places: list[Place], start: str) -> Place:
    (found,) = [place for place in places if place.name.startswith(start)]
    return found


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for name in ("runs", "objects") for path in (folder / name).rglob("*.*")}


def test_files_are_removed_here_and_in_the_object_store(store: Store, run: Run, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    objects = ObjectStore(f"file://{tmp_path}/shared")
    for name in ("runs/leaked/v~1/node-a/main.log", "runs/leaked/certificate.json", "events/leaked/m.jsonl"):
        objects.put(name, tmp_path / "runs/later/x")
    objects.put("runs/leaked-too/x", tmp_path / "runs/later/x")
    counted = places_of_run(store, run, tmp_path, objects, refuse, remove=False)
    assert len(objects.below("")) == 4
    assert (tmp_path / "runs/leaked").is_dir()
    places = places_of_run(store, run, tmp_path, objects, refuse, remove=True)
    found = {place.name: place.files for place in places if not place.remains}
    assert found == {
        f"{tmp_path}/runs/leaked": "1 file (5 B)",
        f"{tmp_path}/objects": "1 file (5 B)",
        f"runs/leaked and events/leaked in {objects.url}": "3 objects (15 B)",
    }
    assert {place.name: place.files for place in counted if place.name in found} == found
    assert [each.name for each in objects.below("")] == ["runs/leaked-too/x"]
    assert not (tmp_path / "runs/leaked").exists()
    assert not list((tmp_path / "objects" / OWN).iterdir())
    assert (tmp_path / "objects" / OTHER / "x").is_file()
    assert (tmp_path / "runs/later/x").is_file()
    assert store.runs.get("leaked").status is Status.PASS


def test_places_that_keep_files_are_named(store: Store, run: Run, tmp_path: Path) -> None:
    places = places_of_run(store, run, tmp_path, None, refuse, remove=True)
    failed = [(place.name, place.remains) for place in places if place.failed]
    assert failed == [
        (
            f"runs/leaked and jobs/leaked in /var/lib/tipcflow of node {name} (192.0.2.{number})",
            f"node {name} does not respond",
        )
        for number, name in ((1, "node-a"), (2, "node-b"))
    ]
    assert by_start(places, "other machines").remains.endswith("repeat the command there")
    assert by_start(places, "AIRFLOW_HOME").name == "AIRFLOW_HOME/logs/dag_id=clas.toy/run_id=manual__1"
    assert by_start(places, "metrics database").remains
    assert by_start(places, "backups").remains


def test_an_object_store_that_does_not_respond_is_named(store: Store, run: Run, tmp_path: Path) -> None:
    objects = ObjectStore(f"file://{tmp_path}/missing")
    places = places_of_run(store, run, tmp_path, objects, refuse, remove=True)
    place = by_start(places, "runs/leaked and events/leaked")
    assert place.failed
    assert "does not exist on this machine" in place.remains


def test_nodes_of_an_allocation_are_named(store: Store, run: Run, tmp_path: Path) -> None:
    slurm = {"time_limit_minutes": 60, "workspace": "/scratch/{node}"}
    cluster = {"name": "slurm", "kind": "slurm", "nodes": NODES, "slurm": slurm}
    store.documents.put(run.id, ClusterDocument(Cluster.model_validate(cluster)))
    places = places_of_run(store, run, tmp_path, None, refuse, remove=True)
    place = by_start(places, "runs/leaked and jobs/leaked")
    assert place.name.endswith(" in /scratch/{node} of node-a, node-b")
    assert "within an allocation of Slurm only" in place.remains
    assert not [place for place in places if place.failed]


@pytest.mark.parametrize("is_ended", [True, False])
def test_a_run_that_may_still_write_is_refused(store: Store, run: Run, is_ended: bool) -> None:
    if is_ended:
        store.leases.acquire(run.id, [("192.0.2.1", 0)], owner="o", ttl_s=60)
    else:
        store.runs.reopen(run.id)
    message = "leaked holds slots" if is_ended else "leaked has no status yet"
    with pytest.raises(ConfigError, match=f"run {message}: it may still write files"):
        refuse_active(store, store.runs.get(run.id))


def test_an_expired_lease_does_not_keep_files(store: Store, run: Run) -> None:
    store.leases.acquire(run.id, [("192.0.2.1", 0)], owner="o", ttl_s=-5)
    refuse_active(store, run)
