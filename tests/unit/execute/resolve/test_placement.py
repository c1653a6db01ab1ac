"""Which nodes a run gets."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.certify import Site
from tests.support.stories import a_run, open_store
from tests.support.tasks import Tasks

from tipcflow.domain import Cluster, InfraError, Node, Status
from tipcflow.domain.run_documents import ClusterDocument
from tipcflow.execute.resolve import placement, resolve
from tipcflow.execute.resolve.placement import doubtful_nodes, kept_part, load_of, place_nodes


def cluster(*kinds: str) -> Cluster:
    nodes = [
        Node(name=f"n{number}", address=f"10.0.0.{number}", python="/p", workspace="/w", device=kind)  # type: ignore[arg-type]
        for number, kind in enumerate(kinds)
    ]
    return Cluster(name="lab", nodes=tuple(nodes))


def names(found: Cluster) -> list[str]:
    return [node.name for node in found.nodes]


def test_the_least_wanted_come_first_and_others_keep_their_order() -> None:
    three = cluster("cpu", "cpu", "cpu")
    assert names(place_nodes(three, 1, {})) == ["n0", "n1", "n2"]
    assert names(place_nodes(three, 1, {"n0": 1})) == ["n1", "n2", "n0"]
    assert names(place_nodes(three, 2, {"n0": 2, "n1": 1, "n2": 1})) == ["n1", "n2", "n0"]


def test_run_of_all_nodes_keeps_their_order() -> None:
    assert names(place_nodes(cluster("cpu", "cpu"), 2, {"n0": 5})) == ["n0", "n1"]


def test_nodes_change_places_only_with_their_like() -> None:
    mixed = cluster("gpu", "cpu", "gpu", "cpu")
    assert names(place_nodes(mixed, 1, {"n0": 1, "n1": 1})) == ["n2", "n3", "n0", "n1"]


def test_only_living_runs_of_the_cluster_count(tmp_path: Path) -> None:
    with open_store(tmp_path / "t.db") as store:
        fields: dict[str, Any]
        for number, fields in enumerate(({}, {}, {"cluster": "other"}, {"nodes": ("n1",)})):
            store.runs.create(a_run(f"run-{number}", **({"cluster": "lab", "nodes": ("n0",)} | fields)))
        store.runs.finish("run-1", Status.PASS, "", 1.0)
        assert dict(load_of(store, cluster("cpu", "cpu"), "run-9")) == {"n0": 1, "n1": 1}
        assert dict(load_of(store, cluster("cpu", "cpu"), "run-0")) == {"n1": 1}


def test_a_run_of_another_cluster_counts_on_the_addresses_that_both_name(tmp_path: Path) -> None:
    twin = cluster("cpu", "cpu").model_copy(update={"name": "twin"})
    renamed = tuple(node.model_copy(update={"name": f"other-{node.name}"}) for node in twin.nodes)
    with open_store(tmp_path / "t.db") as store:
        store.runs.create(a_run("run-0", cluster="twin", nodes=("other-n1",)))
        store.documents.put("run-0", ClusterDocument(twin.model_copy(update={"nodes": renamed})))
        assert dict(load_of(store, cluster("cpu", "cpu"), "run-9")) == {"n1": 1}


def test_sixteen_runs_share_eight_nodes_evenly() -> None:
    load: dict[str, int] = {}
    for _ in range(16):
        first = place_nodes(cluster(*["cpu"] * 8), 1, load).nodes[0].name
        load[first] = load.get(first, 0) + 1
    assert set(load.values()) == {2}


def test_doubtful_nodes_come_last() -> None:
    three = cluster("cpu", "cpu", "cpu")
    assert names(place_nodes(three, 1, {"n1": 2, "n2": 1}, doubtful={"n0"})) == ["n2", "n1", "n0"]
    assert names(place_nodes(three, 3, {}, doubtful={"n0"})) == ["n0", "n1", "n2"]


def test_node_with_an_expired_lease_is_doubtful(tmp_path: Path) -> None:
    three = cluster("cpu", "cpu", "cpu")
    with open_store(tmp_path / "t.db") as store:
        for number, ttl_s in enumerate((-1.0, 3600.0)):
            store.runs.create(a_run(f"run-{number}"))
            store.leases.acquire(f"run-{number}", [(three.nodes[number].address, 0)], owner="x", ttl_s=ttl_s)
        assert doubtful_nodes(store, three) == {"n0"}
        store.leases.drop_expired(store.leases.all())
        assert doubtful_nodes(store, three) == set()


def test_run_stores_its_nodes_and_some_more_of_a_large_cluster() -> None:
    large = cluster(*["gpu"] * 100)
    assert names(kept_part(large, 1)) == [f"n{number}" for number in range(16)]
    assert len(kept_part(large, 20).nodes) == 40
    assert kept_part(cluster("cpu"), 1) == cluster("cpu")


class FourNodes:
    """Nodes that no test contacts."""

    def write_cluster_file(self, path: Path) -> Path:
        common = {"python": "/p", "workspace": "/w", "slots": 2}
        nodes = [{"name": name, "address": f"192.0.2.{number}", **common} for number, name in enumerate("abcd", 1)]
        path.write_text(yaml.safe_dump({"name": path.stem, "nodes": nodes}))
        return path


@pytest.mark.process
def test_run_chooses_its_nodes_while_no_run_of_another_machine_does(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock file does not suffice: each machine has its own TIPCFLOW_HOME."""
    sites = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        sites.append(Site(tmp_path / name, FourNodes(), database_url=postgres_url))
    run = Tasks(sites[0])
    update = run.store.runs.update
    tried: list[str] = []

    def wait_in_vain(when: str) -> None:
        tried.append(when)
        with pytest.raises(InfraError, match="the database's lock 'placing' was held by another process"):
            Tasks(sites[1]).resolve()

    def load(*arguments: Any) -> Any:
        found = load_of(*arguments)
        if arguments[-1] == run.run:
            wait_in_vain("load read")
        return found

    def store_choice(*arguments: Any, **fields: Any) -> None:
        update(*arguments, **fields)
        wait_in_vain("choice stored")

    monkeypatch.setattr(placement, "_PLACING_S", 0.1)
    monkeypatch.setattr(resolve, "load_of", load)
    monkeypatch.setattr(run.store.runs, "update", store_choice)
    with run.store:
        assert run.resolve().nodes == ("a", "b")
    assert tried == ["load read", "choice stored"]
    assert Tasks(sites[1]).resolve().nodes == ("c", "d")
