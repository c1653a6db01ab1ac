"""Airflow's real api-server with our plugins folder, on a port of its own."""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

# A script: `airflow db migrate`.
MIGRATE = "import sys; from airflow.__main__ import main; sys.argv = ['airflow', 'db', 'migrate']; main()"
PLUGINS = Path(__file__).parents[2] / "plugins"
START_S = 240.0
USER, PASSWORD = "reader", "s3cret-word"
# May start DAG runs.
OPERATOR = "operator"


@dataclass(frozen=True)
class ApiServer:
    """A running server; `log` is what it wrote, `environment` that of its process."""

    url: str
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    def token(self, user: str = USER, password: str = PASSWORD) -> str:
        """A bearer token by the login form's own route."""
        result = httpx.post(f"{self.url}/auth/token", json={"username": user, "password": password}, timeout=60)
        return str(result.raise_for_status().json()["access_token"])


def _environment(folder: Path, home: Path, port: int) -> dict[str, str]:
    login = folder / "passwords.json"
    login.touch(0o600)
    login.write_text(json.dumps({USER: PASSWORD, OPERATOR: PASSWORD}))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "TIPCFLOW"))}
    own = {
        "AIRFLOW_HOME": folder,
        "AIRFLOW__CORE__DAGS_FOLDER": folder / "dags",
        "AIRFLOW__CORE__PLUGINS_FOLDER": PLUGINS,
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:viewer,{OPERATOR}:user",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": login,
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": port,
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
        "TIPCFLOW_HOME": home,
    }
    return kept | {name: str(value) for name, value in own.items()}


@contextmanager
def running(
    folder: Path,
    home: Path,
    more: Mapping[str, str] | None = None,
    set_up: str = MIGRATE,
    options: Sequence[str] = (),
) -> Iterator[ApiServer]:
    """Start a server whose pages read from `home`; it is stopped afterwards.

    Args:
        more: environment of the server, also of the script `set_up`, which runs before it.
        options: of `airflow api-server`.
    """
    (folder / "dags").mkdir(parents=True, exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = _environment(folder, home, port) | dict(more or {})
    airflow = Path(sys.executable).with_name("airflow")
    done = subprocess.run(
        [sys.executable, "-c", set_up], env=environment, capture_output=True, text=True, timeout=2 * START_S
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    server = ApiServer(f"http://127.0.0.1:{port}", folder / "log", environment)
    with server.log.open("wb") as log:
        child = subprocess.Popen(
            [airflow, "api-server", "--workers", "1", *options],
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        _wait(child, server)
        yield server
    finally:
        child.terminate()
        try:
            child.wait(20)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait(20)


def _wait(child: "subprocess.Popen[bytes]", server: ApiServer) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            if httpx.get(f"{server.url}/api/v2/version", timeout=5).is_success:
                return
        except httpx.HTTPError:
            pass
        if child.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the api-server did not start:\n{server.log.read_text()[-3000:]}")
        time.sleep(0.2)
