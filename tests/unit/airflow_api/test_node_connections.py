"""Nodes as Airflow connections: their fields; missing fields are reported."""

import json
from pathlib import Path

import pytest

from tipcflow.airflow_api.node_connections import connections_env
from tipcflow.domain import Cluster, ConfigError, Node, SshTarget

KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIEaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"


def cluster(known_hosts: Path, *, port: int = 22, host: str = "10.0.0.2", user: str = "me") -> Cluster:
    ssh = SshTarget(host=host, port=port, user=user, identity_file="/keys/id", known_hosts=str(known_hosts))
    node = Node(name="a", address=host, connection="Lab_a", ssh=ssh, python="/p", workspace="/w")
    return Cluster(name="lab", nodes=(node,))


@pytest.mark.parametrize(
    ("port", "line"),
    [
        (22, f"10.0.0.2 ssh-ed25519 {KEY}"),
        (2222, f"[10.0.0.2]:2222 ssh-ed25519 {KEY} a comment"),
        (22, f"# other\n\n10.0.0.1 ssh-ed25519 AAAA\na,10.0.0.2 ssh-ed25519 {KEY}"),
    ],
)
def test_a_connection_names_the_key_file_and_holds_the_host_key(tmp_path: Path, port: int, line: str) -> None:
    known = tmp_path / "known_hosts"
    known.write_text(line + "\n")
    (item,) = connections_env(cluster(known, port=port)).items()
    assert item[0] == "AIRFLOW_CONN_LAB_A"
    report = json.loads(item[1])
    assert (report["conn_type"], report["host"], report["port"], report["login"]) == (
        "ssh",
        "10.0.0.2",
        port,
        "me",
    )
    assert report["extra"]["key_file"] == "/keys/id"
    assert report["extra"]["host_key"] == f"ssh-ed25519 {KEY}"
    assert report["extra"]["no_host_key_check"] == "false"


def test_connection_without_a_user_has_no_login(tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    known.write_text(f"10.0.0.2 ssh-ed25519 {KEY}\n")
    (text,) = connections_env(cluster(known, user="")).values()
    assert "login" not in json.loads(text)


@pytest.mark.parametrize("line", ["", f"10.0.0.22 ssh-ed25519 {KEY}", f"[10.0.0.2]:2222 ssh-ed25519 {KEY}"])
def test_an_unknown_host_key_is_an_error_never_an_unchecked_connection(tmp_path: Path, line: str) -> None:
    known = tmp_path / "known_hosts"
    known.write_text(line + "\n")
    with pytest.raises(
        ConfigError, match=r"nodes.a.ssh.known_hosts: no host key of the node; found '.*known_hosts'"
    ):
        connections_env(cluster(known))


def test_a_node_that_only_airflow_knows_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nodes.a.ssh.host: the host is not set"):
        connections_env(cluster(tmp_path / "none", host=""))


def test_a_node_without_a_connection_id_is_an_error(tmp_path: Path) -> None:
    lab = cluster(tmp_path / "none")
    nameless = lab.model_copy(update={"nodes": (lab.nodes[0].model_copy(update={"connection": ""}),)})
    with pytest.raises(ConfigError, match=r"nodes.a.connection: no id for the connection"):
        connections_env(nameless)
