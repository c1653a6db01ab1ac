"""Triggers log in to a real sshd by Airflow connections."""

import asyncio
import getpass
import json
from collections.abc import Callable

import pytest
from tests.support.sshd import Server, make_server  # noqa: F401

from tipcflow.airflow_api.node_connections import connection_of
from tipcflow_operators.airflow.async_connect import connect_async

pytestmark = pytest.mark.process


@pytest.mark.parametrize(
    "login", [{}, {"login": ""}, {"login": getpass.getuser()}], ids=["none", "empty", "given"]
)
def test_connection_without_login_is_that_of_the_own_user(
    login: dict[str, str],
    make_server: Callable[..., Server],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = make_server().node().model_copy(update={"connection": "a"})
    connection = connection_of(node)
    connection.pop("login", None)
    monkeypatch.setenv("AIRFLOW_CONN_A", json.dumps({**connection, **login}))

    async def user() -> bytes:
        async with connect_async(node) as transport:
            return (await transport.run("id -un", check=True)).stdout

    assert asyncio.run(user()).decode().strip() == getpass.getuser()
