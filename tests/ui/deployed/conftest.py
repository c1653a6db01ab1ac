"""An api-server as in docker-compose.yaml: behind a proxy with TLS, with a token for metrics."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.compose.local import free_port
from tests.support.stories import a_run, record_run
from tests.ui import server

from tipcflow.domain import Status
from tipcflow.store import Store


@dataclass(frozen=True)
class Site:
    """The server, the address of its proxy, which is not started yet, the token of the metrics, and the home."""

    api: server.ApiServer
    proxy_port: int
    token: str
    home: Path

    @property
    def port(self) -> int:
        return int(self.api.url.rpartition(":")[2])


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home, token, port = tmp_path_factory.mktemp("home"), secrets.token_hex(24), free_port()
    with Store.open(f"sqlite:///{home / 'tipcflow.db'}") as store:
        record_run(store, a_run("run-pass", created_at=store.now()))
        record_run(store, a_run("run-red", created_at=store.now()), status=Status.REGRESSION)
    more = {
        "AIRFLOW__API__BASE_URL": f"https://localhost:{port}",
        "AIRFLOW_CONN_TIPCFLOW_METRICS": f"generic://:{token}@",
        "FORWARDED_ALLOW_IPS": "127.0.0.1",
    }
    folder: Path = tmp_path_factory.mktemp("airflow") / "home"
    with server.running(folder, home, more, options=["--proxy-headers"]) as api:
        yield Site(api, port, token, home)
