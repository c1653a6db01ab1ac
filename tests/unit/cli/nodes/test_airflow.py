"""The connection of a new node in an Airflow that is not the local one, by its REST API."""

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tipcflow import airflow_api
from tipcflow.cli.nodes.airflow import add_connection
from tipcflow.domain import InfraError, Node, SshTarget


class Server:
    """An Airflow that records what it gets, and responds to connections with `status`."""

    def __init__(self) -> None:
        self.status, self.got = 201, list[dict[str, Any]]()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                login = self.path.startswith("/auth")
                if not login:
                    outer.got.append(body)
                text = json.dumps({"access_token": "t"} if login else {"detail": "Forbidden"}).encode()
                self.send_response(201 if login else outer.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                pass

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    monkeypatch.setenv("TIPCFLOW_AIRFLOW_URL", made.url)
    monkeypatch.setenv("TIPCFLOW_AIRFLOW_USER", "ci")
    monkeypatch.setenv("TIPCFLOW_AIRFLOW_PASSWORD", "word")
    yield made
    made.http.shutdown()
    made.http.server_close()
    thread.join(10)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    (tmp_path / "known").write_text("[gpu-1]:2222 ssh-ed25519 AAAA\n")
    ssh = SshTarget(
        host="gpu-1", port=2222, user="ci", identity_file="/home/me/key", known_hosts=str(tmp_path / "known")
    )
    return Node(name="a", address="10.0.0.1", ssh=ssh, connection="node_a", python="/p", workspace="/w")


def test_the_connection_names_the_key_where_airflow_runs(
    server: Server, node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add_connection(node, "lab", "/etc/airflow/key")
    (got,) = server.got
    assert (got["connection_id"], got["host"], got["port"], got["login"]) == ("node_a", "gpu-1", 2222, "ci")
    extra = json.loads(got["extra"])
    assert (extra["key_file"], extra["host_key"]) == ("/etc/airflow/key", "ssh-ed25519 AAAA")
    assert capsys.readouterr().out == f"connection node_a in Airflow at {server.url}\n"


def test_no_path_of_this_machine_is_sent(
    server: Server, node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add_connection(node, "lab", "")
    assert "/home/me/key" not in json.dumps(server.got)
    assert "it has no private key yet" in capsys.readouterr().out


def test_a_refusal_is_reported(
    server: Server, node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.status = 403
    assert not add_connection(node, "lab", "/k")
    assert f"no connection node_a in Airflow at {server.url}: " in capsys.readouterr().err


def test_an_airflow_that_does_not_respond_is_a_fault_of_the_infrastructure(
    server: Server, node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIPCFLOW_AIRFLOW_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(airflow_api, "Airflow", partial(airflow_api.Airflow, deadline_s=0.5))
    with pytest.raises(InfraError):
        add_connection(node, "lab", "/k")


def test_a_missing_login_is_named(
    server: Server,
    node: Node,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The node is in the cluster file by then: the command continues with its checks."""
    monkeypatch.delenv("TIPCFLOW_AIRFLOW_PASSWORD")
    assert not add_connection(node, "lab", "/k")
    assert "TIPCFLOW_AIRFLOW_PASSWORD" in capsys.readouterr().err


def test_an_existing_connection_keeps_its_key(
    server: Server, node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only POST is accepted: a PATCH would replace the whole extra field."""
    server.status = 409
    assert add_connection(node, "lab", "")
    assert len(server.got) == 1
    assert f"connection node_a exists in Airflow at {server.url} and was not changed" in capsys.readouterr().out
