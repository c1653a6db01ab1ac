"""Connections through the REST API: created, replaced and removed, each idempotent."""

import json

import httpx
import pytest

from tipcflow.domain import ConfigError

ALL, ONE = "/api/v2/connections", "/api/v2/connections/node_a"
FIELDS = {"conn_type": "ssh", "host": "10.0.0.1", "port": 22, "login": "ci", "extra": {"key_file": "/k"}}
BODY = {
    "connection_id": "node_a",
    "conn_type": "ssh",
    "host": "10.0.0.1",
    "port": 22,
    "login": "ci",
    "extra": '{"key_file": "/k"}',
}


def test_a_new_connection_is_created(scripted) -> None:
    airflow, script = scripted({ALL: [httpx.Response(201, json=BODY)]})
    airflow.put_connection("node_a", FIELDS)
    assert json.loads(script.requests[-1].content) == BODY


def test_an_existing_connection_is_replaced(scripted) -> None:
    airflow, script = scripted({ALL: [httpx.Response(409)], ONE: [httpx.Response(200, json=BODY)]})
    airflow.put_connection("node_a", FIELDS)
    assert (script.requests[-1].method, json.loads(script.requests[-1].content)) == ("PATCH", BODY)


def test_a_refusal_is_an_error(scripted) -> None:
    airflow, _ = scripted({ALL: [httpx.Response(403, json={"detail": "Forbidden"})]})
    with pytest.raises(ConfigError, match="denies this login access to /api/v2/connections"):
        airflow.put_connection("node_a", FIELDS)


def test_a_connection_that_does_not_exist_is_removed(scripted) -> None:
    airflow, _ = scripted({ONE: [httpx.Response(204), httpx.Response(404)]})
    airflow.remove_connection("node_a")
    airflow.remove_connection("node_a")
