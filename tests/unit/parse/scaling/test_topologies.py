"""Names, order and size of topologies, and batches that the devices divide."""

import pytest

from tipcflow.domain import Cluster, ConfigError
from tipcflow.parse.scaling.topologies import DEFAULT, batch_per_device, in_order, misfit, read_topology


def cluster(*slots: int) -> Cluster:
    common = {"python": "/env/bin/python", "workspace": "/srv/t"}
    nodes = [
        {"name": f"node-{number}", "address": f"192.0.2.{number}", "slots": count, **common}
        for number, count in enumerate(slots, start=1)
    ]
    return Cluster.model_validate({"name": "lab", "nodes": nodes})


@pytest.mark.parametrize("name", ["", "8n", "n8g", "0n1g", "1n0g", "2n8g ", "N2C16", "2x8", "99999n1g"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"--topology: unknown topology.*for example 2n8g"):
        read_topology(name)


def test_fewest_nodes_are_first_and_each_is_listed_once() -> None:
    names = ("4n8g", "1n8g", "2n1g", "1n1g", "2n1g", "1n4g")
    ordered = in_order(read_topology(name) for name in names)
    assert [topology.name for topology in ordered] == ["1n1g", "1n4g", "1n8g", "2n1g", "4n8g"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("2n2g", ""),
        ("1n4g", ""),
        ("3n1g", "3 nodes needed, cluster lab has 2"),
        ("2n4g", "4 devices per node needed, node node-2 has 2"),
        ("1n8g", "8 devices per node needed, node node-1 has 4"),
    ],
)
def test_topology_larger_than_the_cluster_is_a_misfit(name: str, why: str) -> None:
    assert misfit(read_topology(name), cluster(4, 2)) == why


def test_default_topologies_fit_the_largest_cluster_of_the_published_table() -> None:
    assert [name for name in DEFAULT if misfit(read_topology(name), cluster(8, 8, 8, 8))] == []


def test_batch_size_is_per_device() -> None:
    topology = read_topology("2n2g")
    assert batch_per_device(topology, per_device=128, in_total=0) == 128
    assert batch_per_device(topology, per_device=0, in_total=128) == 32
    with pytest.raises(ConfigError) as caught:
        batch_per_device(topology, per_device=0, in_total=6)
    assert str(caught.value) == (
        "--global-batch-size: 4 devices of 2n2g do not divide the batch; found '6'; expected a multiple of 4"
    )
