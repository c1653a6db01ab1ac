"""Nodes that have only the ID of an Airflow connection, reached without Airflow."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from tests.support.sshd import Server

from tipcflow.domain import InfraError, Node, SshTarget
from tipcflow.transport.connect import connect
from tipcflow.transport.connections import connection_target

pytestmark = pytest.mark.process
VARIABLE = "AIRFLOW_CONN_LAB_NODE"


def node_of(server: Server, **changes: Any) -> Node:
    return server.node().model_copy(update={"ssh": SshTarget(), "connection": "lab_node", **changes})


def connection_of(server: Server, **extra: Any) -> dict[str, Any]:
    """The connection as Airflow stores it, with the private key in it."""
    import getpass

    keys = {
        "private_key": (server.folder / "id").read_text(),
        "host_key": (server.folder / "host_key.pub").read_text(),
        "no_host_key_check": "false",
    }
    return {
        "conn_type": "ssh",
        "host": "127.0.0.1",
        "port": server.port,
        "login": getpass.getuser(),
        "extra": {**keys, **extra},
    }


def login(node: Node) -> bytes:
    transport = connect(node)
    try:
        return transport.run("echo $((6*7))").stdout
    finally:
        transport.close()


def as_json(connection: dict[str, Any]) -> str:
    return json.dumps({**connection, "extra": json.dumps(connection["extra"])})


def as_uri(connection: dict[str, Any]) -> str:
    where = f"{quote(connection['login'])}@{connection['host']}:{connection['port']}"
    return f"ssh://{where}/?{urlencode(connection['extra'])}"


@pytest.mark.parametrize("form", [as_json, as_uri, json.dumps])
def test_connection_in_a_variable_logs_in(
    server: Server, monkeypatch: pytest.MonkeyPatch, form: Callable[[dict[str, Any]], str]
) -> None:
    monkeypatch.setenv(VARIABLE, form(connection_of(server)))
    assert login(node_of(server)) == b"42\n"


@pytest.mark.parametrize("form", [lambda connection: connection, as_uri])
def test_exported_connection_logs_in(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: Callable[[dict[str, Any]], Any]
) -> None:
    path = tmp_path / "connections.json"
    path.write_text(json.dumps({"other": {"conn_type": "http"}, "lab_node": form(connection_of(server))}))
    monkeypatch.setenv("TIPCFLOW_CONNECTIONS_FILE", str(path))
    assert login(node_of(server)) == b"42\n"


def test_key_file_of_a_connection_logs_in(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = connection_of(server, private_key="", key_file=str(server.folder / "id"))
    monkeypatch.setenv(VARIABLE, json.dumps(connection))
    assert login(node_of(server)) == b"42\n"


def test_ssh_of_the_cluster_file_has_priority(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "not a connection")
    assert login(server.node().model_copy(update={"connection": "lab_node"})) == b"42\n"
    assert connection_target(node_of(server, connection="")) is None
    monkeypatch.delenv(VARIABLE)
    assert connection_target(node_of(server)) is None


def test_connection_without_login_and_host_key_uses_the_own_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import getpass

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(VARIABLE, '{"host": "node"}')
    node = Node(
        name="a", address="127.0.0.1", connection="lab_node", python="/usr/bin/python3", workspace="/tmp/w"
    )
    target = connection_target(node)
    assert target is not None
    assert str(target) == f"{getpass.getuser()}@node:22"
    assert target.known_hosts[0] == str(tmp_path / ".ssh" / "known_hosts")


def test_other_host_key_is_refused_and_names_the_connection(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = (server.folder / "stranger.pub").read_text()
    monkeypatch.setenv(VARIABLE, json.dumps(connection_of(server, host_key=other)))
    with pytest.raises(InfraError, match="put its new key into connection lab_node") as caught:
        connect(node_of(server))
    assert caught.value.node == "a"


def test_login_with_another_key_is_refused_and_shows_no_secret(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = (server.folder / "stranger").read_text()
    monkeypatch.setenv(VARIABLE, json.dumps(connection_of(server, private_key=stranger, look_for_keys=False)))
    with pytest.raises(InfraError, match="see login and key of the Airflow connection lab_node") as caught:
        connect(node_of(server))
    assert stranger.splitlines()[1] not in f"{caught.value!r} {connection_target(node_of(server))!r}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "the variable AIRFLOW_CONN_LAB_NODE is not valid JSON"),
        ("ssh://host:port", "the variable AIRFLOW_CONN_LAB_NODE is not a URI"),
        ('{"conn_type": "http"}', "Airflow connection lab_node has the type http, expected ssh"),
        ('{"port": "ssh"}', "Airflow connection lab_node has an invalid port"),
        ('{"extra": "{"}', "extra of Airflow connection lab_node is not valid JSON"),
        ('{"extra": {"no_host_key_check": "true"}}', "disables host key verification"),
        ('{"extra": {"allow_host_key_change": true}}', "disables host key verification"),
        (
            '{"extra": {"host_key": "ssh-ed25519 %%%"}}',
            "host_key of Airflow connection lab_node is not a public key",
        ),
        ('{"extra": {"private_key": "secret"}}', "private_key of Airflow connection lab_node cannot be read"),
    ],
)
def test_invalid_connection_is_one_message(monkeypatch: pytest.MonkeyPatch, text: str, words: str) -> None:
    node = Node(
        name="a", address="127.0.0.1", connection="lab_node", python="/usr/bin/python3", workspace="/tmp/w"
    )
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(InfraError) as caught:
        connect(node)
    assert words in caught.value.message
    assert "secret" not in f"{caught.value} {caught.value.hint}".replace("private_key", "")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot read"),
        ("connections:", "is not a JSON file"),
        ("[]", "has no JSON object for connection lab_node"),
        ('{"lab_node": 7}', "has no JSON object for connection lab_node"),
    ],
)
def test_invalid_file_of_connections_is_one_message(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None, words: str
) -> None:
    node = Node(
        name="a", address="127.0.0.1", connection="lab_node", python="/usr/bin/python3", workspace="/tmp/w"
    )
    path = tmp_path / "connections.json"
    if content is not None:
        path.write_text(content)
    monkeypatch.setenv("TIPCFLOW_CONNECTIONS_FILE", str(path))
    with pytest.raises(InfraError) as caught:
        connect(node)
    assert words in caught.value.message
    assert str(path) in caught.value.message
