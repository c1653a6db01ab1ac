"""Cluster files: containers and ways to start a training, and what is wrong with them."""

from pathlib import Path

import pytest

from tipcflow.config.cluster import load_cluster
from tipcflow.domain import Cluster, ConfigError, Launch

NODE = """name: box
launch: master
nodes:
  - name: a
    address: 192.0.2.1
    python: /usr/bin/python3
    workspace: /srv/t
    container:
      image: registry.example/paddle/paddle:2.6@sha256:ab
      python: /usr/local/bin/python3
      args: [--gpus, all]
"""


def load(tmp_path: Path, text: str) -> Cluster:
    (tmp_path / "box.yaml").write_text(text)
    return load_cluster(str(tmp_path / "box.yaml"), tmp_path)


def test_cluster_file_declares_launch_and_containers(tmp_path: Path) -> None:
    cluster = load(tmp_path, NODE)
    (node,) = cluster.nodes
    assert cluster.launch is Launch.MASTER
    assert node.container is not None
    assert (node.container.engine, node.container.pull, node.container.args) == (
        "docker",
        False,
        ("--gpus", "all"),
    )
    assert (node.python, node.step_python) == ("/usr/bin/python3", "/usr/local/bin/python3")
    plain = load(tmp_path, NODE[: NODE.index("    container")].replace("launch: master\n", "")).nodes[0]
    assert (plain.container, plain.step_python) == (None, "/usr/bin/python3")


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("--gpus, all", "-d", 11, "args must not contain -d"),
        ("--gpus, all", "--name=x", 11, "args must not contain --name=x"),
        ("/srv/t", "/srv/a:b", 4, "cannot be mounted"),
        ("image: registry", "image: -registry", 9, "container.image"),
        ("python: /usr/local", "python: usr/local", 10, "container.python"),
        ("args: [--gpus, all]", "arg: []", 11, "container.arg"),
        ("launch: master", "launch: mpi", 2, "'torchrun', 'init_method', 'script' or 'ps'"),
    ],
)
def test_errors_name_their_line(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, NODE.replace(old, new))
    assert words in str(caught.value)
    assert f"box.yaml:{line}:" in str(caught.value)


def test_addresses_contain_environment_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = NODE.replace("address: 192.0.2.1", 'address: "${NODE_NETWORK:-192.0.2}.7"')
    monkeypatch.delenv("NODE_NETWORK", raising=False)
    assert load(tmp_path, text).nodes[0].address == "192.0.2.7"
    monkeypatch.setenv("NODE_NETWORK", "198.51.100")
    assert load(tmp_path, text).nodes[0].address == "198.51.100.7"


def test_unset_variable_in_an_address_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NODE_NETWORK", raising=False)
    with pytest.raises(ConfigError, match="variable is not set") as caught:
        load(tmp_path, NODE.replace("192.0.2.1", '"${NODE_NETWORK}.7"'))
    words = str(caught.value)
    assert "box.yaml:5: nodes.0.address: variable is not set; found '${NODE_NETWORK}'" in words
    assert words.endswith("the environment variable NODE_NETWORK, or a default: ${NODE_NETWORK:-DEFAULT}")


@pytest.mark.parametrize(
    ("name", "address", "words"),
    [
        (
            "a",
            "192.0.2.2",
            "box.yaml:7: nodes.1.name: nodes.0 has the same name; found 'a'; expected each name once",
        ),
        ("b", "192.0.2.1", "box.yaml:8: nodes.1.address: node a has the same address; found '192.0.2.1'"),
    ],
)
def test_duplicate_node_is_named_by_index_and_line(tmp_path: Path, name: str, address: str, words: str) -> None:
    node = "  - name: {}\n    address: {}\n    python: /p\n    workspace: /w\n"
    text = f"name: box\nnodes:\n{node.format('a', '192.0.2.1')}{node.format(name, address)}"
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert words in str(caught.value)


SLURM = """name: example
kind: slurm
login: {local: true}
nodes: 2
time_limit_minutes: 9
node: {python: /p, workspace: '/w/{node}'}
"""


@pytest.mark.parametrize("text", [NODE.replace("name: box", "name: example"), SLURM])
def test_name_is_that_of_the_file(tmp_path: Path, text: str) -> None:
    file = tmp_path / "clusters" / "lab.yaml"
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_cluster("lab", tmp_path)
    assert str(caught.value) == f"{file}:1: name: is not the name of the file; found 'example'; expected lab"
    elsewhere = tmp_path / "other.yaml"
    elsewhere.write_text(text)
    assert load_cluster(str(elsewhere), tmp_path).name == "example"
