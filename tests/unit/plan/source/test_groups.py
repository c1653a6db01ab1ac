"""Entries of gpu_list as device groups, their hosts on a cluster, and what the cluster replaces."""

from collections.abc import Callable

import pytest

from tipcflow.domain import Cluster, ConfigError
from tipcflow.params import Dialect, load_dialect
from tipcflow.plan.source.call import variant_id
from tipcflow.plan.source.groups import Group, classify_bash, classify_spec
from tipcflow.plan.source.hosts import Host, check_python, check_room, hosts_of, substitutions


def spec(text: str) -> Group:
    return classify_spec(0, text, file="a.txt", line=4)


@pytest.mark.parametrize(
    ("text", "ids", "ips", "form"),
    [
        ("-1", (), (), "single"),
        ("0", ("0",), (), "single"),
        ("0,1", ("0", "1"), (), "multi"),
        (" 0 , 1 ", ("0", "1"), (), "multi"),
        ("10.0.0.1,10.0.0.2;0,1", ("0", "1"), ("10.0.0.1", "10.0.0.2"), "nodes"),
        ("node-a,node-b;0", ("0",), ("node-a", "node-b"), "nodes"),
    ],
)
def test_entry_names_devices_and_nodes(text: str, ids: tuple[str, ...], ips: tuple[str, ...], form: str) -> None:
    group = spec(text)
    assert (group.ids, group.ips, group.form) == (ids, ips, form)
    assert group.nodes == max(1, len(ips))


@pytest.mark.parametrize("text", ["", "-1,0", "0,0", "a", "10.0.0.1;-1", "10.0.0.1,10.0.0.1;0", ";0", "0;"])
def test_entry_without_devices_is_refused_with_file_line_and_value(text: str) -> None:
    with pytest.raises(ConfigError) as error:
        spec(text)
    assert (error.value.file, error.value.line, error.value.key) == ("a.txt", 4, "gpu_list")
    assert error.value.found == (text or "nothing")


@pytest.fixture(scope="module")
def dialect() -> Dialect:
    return load_dialect("models/template")


@pytest.mark.parametrize(
    ("text", "form", "nodes"),
    [
        ("-1", "single", 1),
        ("0", "single", 1),
        ("0,1", "multi", 1),
        ("192.168.100.11,192.168.100.12;0,1", "nodes", 2),
    ],
)
def test_the_script_detects_the_form_by_the_length_of_the_entry(
    dialect: Dialect, text: str, form: str, nodes: int
) -> None:
    group = classify_bash(2, text, dialect)
    assert (group.index, group.text, group.form, group.nodes) == (2, text, form, nodes)


def test_script_takes_a_short_list_of_addresses_for_one_node(dialect: Dialect) -> None:
    """A defect of the scripts: the length of the text decides, not what it contains."""
    assert classify_bash(0, "10.0.0.1,10.0.0.2;0,1", dialect).nodes != spec("10.0.0.1,10.0.0.2;0,1").nodes


def test_variant_id_is_a_folder_name() -> None:
    assert variant_id("norm_train", spec("0,1"), "amp") == "norm_train_gpus_0,1_autocast_amp_nodes_1"
    assert "/" not in variant_id("a/../b c", spec("0"), "amp")


def test_hosts_are_the_nodes_of_the_cluster_or_the_addresses(cluster: Callable[..., Cluster]) -> None:
    group = spec("10.0.0.1,10.0.0.2;0")
    assert [host.address for host in hosts_of(group, None)] == ["10.0.0.1", "10.0.0.2"]
    assert [host.name for host in hosts_of(group, cluster("a", "b", "c"))] == ["a", "b"]
    assert [host.name for host in hosts_of(None, cluster("a", "b"))] == ["a"]
    assert hosts_of(spec("0"), None) == (Host("node1", "127.0.0.1"),)


@pytest.mark.parametrize(
    ("words", "used"),
    [
        ("python3.7", "/envs/a/bin/python"),
        ("env X=1 /usr/bin/python -u", "/envs/a/bin/python -u"),
        ("bash run.sh", "bash run.sh"),
    ],
)
def test_interpreter_is_that_of_the_node(cluster: Callable[..., Cluster], words: str, used: str) -> None:
    (host,) = hosts_of(None, cluster("a"))
    assert host.python(words) == used
    assert Host("node1", "127.0.0.1").python(words) == words


def test_words_without_an_interpreter_are_refused() -> None:
    check_python("env X=1 python3", file="a.txt", line=3)
    with pytest.raises(ConfigError, match=r"^a\.txt:3: python: no Python interpreter"):
        check_python("bash run.sh", file="a.txt", line=3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("10.0.0.1,10.0.0.2,10.0.0.3;0", "spans 3 nodes, cluster 'two-cpu' has 2"),
        ("0,1,2", "takes 3 slots, node 'a' has 2 (cpu)"),
    ],
)
def test_group_that_the_cluster_cannot_hold_is_refused(
    cluster: Callable[..., Cluster], text: str, message: str
) -> None:
    with pytest.raises(ConfigError) as error:
        check_room(spec(text), cluster("a", "b"), file="a.txt", line=4)
    assert message in error.value.message
    check_room(spec("0,1"), cluster("a", "b"), file="a.txt", line=4)


def test_nodes_with_different_devices_are_refused(cluster: Callable[..., Cluster]) -> None:
    mixed = cluster("a", "b")
    gpu = mixed.nodes[1].model_copy(update={"device": "gpu"})
    mixed = mixed.model_copy(update={"nodes": (mixed.nodes[0], gpu)})
    with pytest.raises(ConfigError, match=r"different devices: a \(cpu\), b \(gpu\)"):
        check_room(spec("10.0.0.1,10.0.0.2;0"), mixed, file="a.txt", line=4)


def test_values_that_the_cluster_replaces_are_listed_with_the_reason(cluster: Callable[..., Cluster]) -> None:
    made = substitutions([spec("10.0.0.1,10.0.0.2;0,1")], cluster("a", "b"), "python3.7")
    found = {(one.what, one.found): one.used for one in made}
    assert found["ips", "10.0.0.1,10.0.0.2"] == "10.77.0.1,10.77.0.2"
    assert found["gpus", "0,1"] == "2 CPU processes per node over gloo"
    assert {one.used for one in made if one.what == "python"} == {"/envs/a/bin/python", "/envs/b/bin/python"}
    assert all(one.because for one in made)
    assert substitutions([spec("0")], None, "python") == ()
