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
    assert "${NODE_NETWORK:-10.0.0}" in str(caught.value)
