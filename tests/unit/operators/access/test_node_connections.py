"""The secrets backend of workers: connections of a file, in each form that `airflow connections export` writes."""

import json
from pathlib import Path

import pytest
from airflow.sdk import Connection

from tipcflow_operators.access.node_connections import NodeConnections


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "connections.json"
    lab = {"conn_type": "ssh", "host": "192.0.2.7", "port": 22, "login": "ci", "extra": {"private_key": "a key"}}
    path.write_text(json.dumps({"lab": lab, "uri": "ssh://ci@192.0.2.8:2222"}))
    monkeypatch.setenv("TIPCFLOW_CONNECTIONS_FILE", str(path))
    return path


def backend() -> NodeConnections:
    """As Airflow makes it for tasks and triggers."""
    made = NodeConnections()
    made._set_connection_class(Connection)
    return made


def test_connections_of_the_file_are_found(file: Path) -> None:
    lab = backend().get_connection("lab")
    assert (lab.host, lab.login, lab.extra_dejson) == ("192.0.2.7", "ci", {"private_key": "a key"})
    uri = backend().get_connection("uri")
    assert (uri.conn_type, uri.host, uri.port) == ("ssh", "192.0.2.8", 2222)


def test_other_connections_and_variables_are_left_to_airflow(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert backend().get_connection("other") is None
    assert backend().get_variable("lab") is None
    monkeypatch.delenv("TIPCFLOW_CONNECTIONS_FILE")
    assert backend().get_connection("lab") is None
