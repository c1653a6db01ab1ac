"""AIRFLOW_HOME of a local Airflow: secrets and login, created once and readable by the owner only."""

import base64
import json
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

USER = "admin"
_LOCKED_S = 60.0


@dataclass(frozen=True)
class AirflowHome:
    """The folder with all files of a local Airflow.

    Attributes:
        folder: AIRFLOW_HOME.
        password: password of `USER`, read from the passwords file.
    """

    folder: Path
    password: str = field(repr=False)

    @property
    def passwords_file(self) -> Path:
        """Return the path of a JSON object, user to password; mode 0600. Airflow reads it at every login."""
        return self.folder / "passwords.json"

    @property
    def logs(self) -> Path:
        """Return the folder of the components' own logs (task logs are in `logs/`)."""
        return self.folder / "components"

    @property
    def database(self) -> Path:
        """Return the SQLite file that Airflow uses unless its settings name another database."""
        return self.folder / "airflow.db"

    @property
    def database_url(self) -> str:
        """Return the URL of that file for components that end if they wait too long for its lock.

        SQLite's 5 s are too short for the scheduler and the triggerer when 16 runs start at once on two cores.
        """
        return f"{self.impatient_url}?timeout={_LOCKED_S:.0f}"

    @property
    def impatient_url(self) -> str:
        """Return its URL with SQLite's own 5 s, for the api-server.

        The api-server can wait in its event loop for the lock of a request that needs the loop to end: all others
        wait with it until that wait is over. Its clients repeat the failed request.
        """
        return f"sqlite:///{self.database}"


def airflow_home(folder: Path) -> AirflowHome:
    """Create or open the folder. The login is written before Airflow starts, so that no log contains it."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    home = AirflowHome(folder, _password(folder / "passwords.json"))
    home.logs.mkdir(exist_ok=True)
    config = folder / "airflow.cfg"
    if not config.exists():
        _write_private(config, _secrets())
    return home


def _password(path: Path) -> str:
    try:
        known = json.loads(path.read_text())
    except (OSError, ValueError):
        known = {}
    if not isinstance(known, dict) or not isinstance(known.get(USER), str):
        known = {USER: secrets.token_urlsafe(12)}
        _write_private(path, json.dumps(known) + "\n")
    path.chmod(0o600)
    return str(known[USER])


def _secrets() -> str:
    """Return Airflow's keys for the one file that only Airflow reads: every task would inherit an environment."""
    fernet = base64.urlsafe_b64encode(os.urandom(32)).decode()
    return (
        "# Created once, for this folder only. Settings come from the environment.\n"
        f"[core]\nfernet_key = {fernet}\n"
        f"[api]\nsecret_key = {secrets.token_urlsafe(32)}\n"
        f"[api_auth]\njwt_secret = {secrets.token_urlsafe(48)}\n"
    )


def _write_private(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(file, "w") as stream:
        stream.write(text)
    draft.replace(path)
