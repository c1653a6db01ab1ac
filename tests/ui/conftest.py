"""The pages inside Airflow's own app, with its real login; a metrics database per test."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

PLUGINS = Path(__file__).parents[2] / "plugins"
_HOME = tempfile.mkdtemp(prefix="tipcflow-ui-")
# Read when Airflow is first imported, which may be in another folder's tests: then those values hold.
os.environ.setdefault("AIRFLOW_HOME", _HOME)
os.environ.setdefault("AIRFLOW__CORE__UNIT_TEST_MODE", "False")
os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")

from fastapi import FastAPI  # noqa: E402
from fastapi.testclient import TestClient  # noqa: E402
from starlette.routing import Mount  # noqa: E402

from tipcflow.store import Store  # noqa: E402


def pytest_sessionfinish() -> None:
    shutil.rmtree(_HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def airflow_app() -> Iterator[FastAPI]:
    """Airflow's api-server app, which has loaded our plugin from the plugins folder by itself."""
    from airflow import plugins_manager, settings
    from airflow.api_fastapi.app import create_app, purge_cached_app
    from airflow.models import import_all_models
    from airflow.models.base import Base

    settings.initialize()
    import_all_models()
    Base.metadata.create_all(settings.engine)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "PLUGINS_FOLDER", str(PLUGINS))
        patch.setattr(sys, "path", [*sys.path, str(PLUGINS)])
        for name in ("_get_plugins", "_get_ui_plugins", "get_fastapi_plugins"):
            getattr(plugins_manager, name).cache_clear()
        yield create_app(apps="core")
        purge_cached_app()


@pytest.fixture(scope="session")
def page_app(airflow_app: FastAPI) -> FastAPI:
    """Our app inside it."""
    (mount,) = [route for route in airflow_app.routes if getattr(route, "path", "") == "/certification"]
    assert isinstance(mount, Mount)
    assert isinstance(mount.app, FastAPI)
    return mount.app


@pytest.fixture(scope="session")
def token(airflow_app: FastAPI) -> str:
    """A login that may read."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    return str(get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="reader", role="VIEWER")))


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "template.db"
    Store.open(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """TIPCFLOW_HOME of the pages."""
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path))
    monkeypatch.delenv("TIPCFLOW_DATABASE_URL", raising=False)
    return tmp_path


@pytest.fixture
def store(home: Path, template: Path) -> Iterator[Store]:
    """The metrics database that the pages read, for writing."""
    shutil.copy(template, home / "tipcflow.db")
    with Store.open(f"sqlite:///{home / 'tipcflow.db'}", migrate=False) as store:
        yield store


@pytest.fixture
def anybody(airflow_app: FastAPI) -> TestClient:
    """A client without a login."""
    return TestClient(airflow_app, raise_server_exceptions=False, follow_redirects=False)


@pytest.fixture
def machine(airflow_app: FastAPI, token: str, home: Path) -> TestClient:
    """A client with a bearer token."""
    headers = {"Authorization": f"Bearer {token}"}
    return TestClient(airflow_app, headers=headers, raise_server_exceptions=False, follow_redirects=False)


@pytest.fixture
def browser(airflow_app: FastAPI, token: str, home: Path) -> TestClient:
    """A client with the UI's cookie that requests HTML."""
    return TestClient(
        airflow_app,
        headers={"Accept": "text/html"},
        cookies={"_token": token},
        raise_server_exceptions=False,
        follow_redirects=False,
    )
