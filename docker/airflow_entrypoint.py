#!/usr/bin/env python
"""Start an Airflow component in its container, with secrets in files instead of the environment.

Airflow passes its environment to every task, and a task can read that of the container's first process. Keys and
passwords come from files in /run/secrets, or from variables of the same name in upper case. They are moved to
airflow.cfg and to a password file of PostgreSQL, and tini becomes the first process, before the component starts.
The container may run as any user: one that the image does not know gets a name and a home folder.
Usage: airflow_entrypoint.py COMMAND [ARGUMENT...]
"""

import base64
import configparser
import errno
import io
import json
import os
import pwd
import re
import sys
import tempfile
from collections.abc import MutableMapping
from pathlib import Path

# Variable -> (section, option) in airflow.cfg.
SECRETS = {
    "AIRFLOW_DB_URL": ("database", "sql_alchemy_conn"),
    "AIRFLOW_BROKER_URL": ("celery", "broker_url"),
    "AIRFLOW_RESULTS_URL": ("celery", "result_backend"),
    "AIRFLOW_FERNET_KEY": ("core", "fernet_key"),
    "AIRFLOW_SECRET_KEY": ("api", "secret_key"),
    "AIRFLOW_JWT_SECRET": ("api_auth", "jwt_secret"),
}
# Variables with the address that users open, to which logins return; the first that is not empty.
ADDRESSES = ("AIRFLOW_URL", "AIRFLOW_LOCAL_URL")
CONFIG_FILE = "airflow.cfg"
# Folder of AIRFLOW_HOME for files whose place is not writable.
PRIVATE = "private"
SECRETS_DIR = Path("/run/secrets")
# Role in PostgreSQL -> variable with its password. URLs name the role; clients find the password in PGPASSFILE.
ROLES = {
    "airflow": "AIRFLOW_DB_PASSWORD",
    "results": "RESULTS_DB_PASSWORD",
    "tipcflow": "METRICS_DB_PASSWORD",
    "tipcflow_reader": "METRICS_READER_PASSWORD",
}
POSTGRES_FILE = "pgpass"
# In the format of `airflow connections export`.
CONNECTIONS_FILE = "connections.json"
# The key of a worker on another machine (compose.worker.yaml). PostgreSQL refuses keys that others may read.
CLIENT_KEY, CLIENT_KEY_FILE = "CLIENT_KEY", "client.key"
# Errors of a mounted file, a read-only file system, and a folder of another user.
_UNWRITABLE = (errno.EBUSY, errno.EROFS, errno.EACCES, errno.EPERM)
# Passes signals to the component alone, as docker's own init does; it ends its tasks itself.
INIT = ("tini", "--")
# Name of a user without an entry in /etc/passwd.
USER = "airflow"
# The nodes of the profile `demo`: addresses as in docker-compose.yaml and configs/clusters/compose.yaml.
LOGIN_KEY = "NODE_LOGIN_KEY"
NETWORK = "10.213.77"
NODES = {"node_1": (".11", "NODE_1_HOST_KEY_PUB"), "node_2": (".12", "NODE_2_HOST_KEY_PUB")}


def prepare(environ: MutableMapping[str, str], home: Path, folder: Path = SECRETS_DIR) -> None:
    """Write airflow.cfg and PostgreSQL's passwords to `home` with mode 0600, and clear `environ`.

    A mounted airflow.cfg is left as it is: without secrets to add, it is the configuration; otherwise a copy with
    the secrets in a private folder is. Connections of the demo nodes are written to a file of their own.

    Args:
        folder: the secret files; `{NAME}` in a value of SECRETS stands for the content of the file `name`.

    Raises:
        SystemExit: a secret file is missing or empty.
    """
    files = read_secrets(folder)
    environ.update({name: value for name, value in files.items() if not environ.get(name)})
    config: dict[str, list[str]] = {}
    for name, (section, option) in SECRETS.items():
        if value := environ.pop(name, ""):
            config.setdefault(section, []).append(f"{option} = {_literal(_filled(value, files))}")
    if address := next(filter(None, [environ.pop(name, "") for name in ADDRESSES]), ""):
        config.setdefault("api", []).append(f"base_url = {_literal(address)}")
    text = "".join(f"[{section}]\n" + "\n".join(lines) + "\n" for section, lines in config.items())
    # Without a file, Airflow would write one with keys of its own.
    if text or not (home / CONFIG_FILE).exists():
        _keep(environ, home / CONFIG_FILE, text, "AIRFLOW_CONFIG")
    roles = [f"*:*:*:{role}:{_escaped(environ.pop(name))}\n" for role, name in ROLES.items() if name in environ]
    if roles:
        environ.setdefault("PGPASSFILE", str(home / POSTGRES_FILE))
        _keep(environ, home / POSTGRES_FILE, "".join(roles), "PGPASSFILE")
    if key := environ.pop(CLIENT_KEY, ""):
        _keep(environ, home / CLIENT_KEY_FILE, f"{key}\n", "PGSSLKEY")
    if connections := _nodes(environ):
        # For the CLI in this container (`docker-compose exec`), and for tasks and triggers (NodeConnections).
        _keep(environ, home / CONNECTIONS_FILE, json.dumps(connections) + "\n", "TIPCFLOW_CONNECTIONS_FILE")
    for name in files:
        environ.pop(name, None)


def name_user(environ: MutableMapping[str, str], home: Path) -> None:
    """Give a user without an entry in /etc/passwd a name and a writable home folder, which Airflow requires.

    Python takes the name from LOGNAME or USER. Engines set HOME to `/` for such a user.
    """
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        environ["USER"] = environ["LOGNAME"] = environ.get("LOGNAME") or environ.get("USER") or USER
        places = [place for place in (environ.get("HOME"), str(home)) if place and _is_writable(place)]
        environ["HOME"] = places[0] if places else tempfile.mkdtemp(prefix="home-")


def _is_writable(place: str) -> bool:
    return os.access(place, os.W_OK | os.X_OK, effective_ids=True)


def read_secrets(folder: Path) -> dict[str, str]:
    """Return the contents of the secret files, by their names in upper case.

    Raises:
        SystemExit: a file is empty, or a folder, which docker creates in the place of a missing file, or not
            readable, as after a copy with umask 077.
    """
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*")):
        # Kubernetes keeps folders of its own next to the files: `..data`, `kubernetes.io`.
        if not re.fullmatch("[a-z0-9_]+", path.name):
            continue
        try:
            found[path.name.upper()] = path.read_text().rstrip("\n") if path.is_file() else ""
        except PermissionError:
            sys.exit(
                f"error: secret {path.name} is not readable for user {os.geteuid()}; run chmod a+r .secrets/*"
            )
        if not found[path.name.upper()]:
            sys.exit(f"error: secret {path.name} is missing or empty; run docker/env.sh")
    return found


def _escaped(password: str) -> str:
    """A field of PostgreSQL's password file, whose separator is a colon."""
    return re.sub(r"([\\:])", r"\\\1", password)


def _filled(value: str, files: MutableMapping[str, str]) -> str:
    for name, content in files.items():
        value = value.replace(f"{{{name}}}", content)
    return value


def _literal(value: str) -> str:
    """A value of airflow.cfg, in which Airflow interpolates `%`, as in percent-encoded passwords of URLs."""
    return value.replace("%", "%%")


def _nodes(environ: MutableMapping[str, str]) -> dict[str, dict[str, object]]:
    """Airflow connections of the nodes of the profile `demo`, by their IDs; none without the login key.

    The keys are removed from `environ`.
    """
    key = environ.pop(LOGIN_KEY, "")
    if not key:
        return {}
    private = f"{key.rstrip()}\n" if key.startswith("-----") else base64.b64decode(key, validate=True).decode()
    network = environ.get("NODE_NETWORK") or NETWORK
    return {
        f"tipcflow_{name}": _connection(network + host, private, environ.pop(host_key))
        for name, (host, host_key) in NODES.items()
    }


def _connection(address: str, private_key: str, host_key: str) -> dict[str, object]:
    extra = {"private_key": private_key, "host_key": host_key, "no_host_key_check": "false"}
    return {"conn_type": "ssh", "host": address, "port": 22, "login": "tipcflow", "extra": extra}


def _keep(environ: MutableMapping[str, str], path: Path, text: str, variable: str) -> None:
    """Write a file; if its place is not writable, write it to a private folder and name it in `variable`."""
    try:
        _write(path, text)
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        if path.name == CONFIG_FILE and path.is_file():
            text = _merged(path.read_text(), text)
        elsewhere = _private(path.parent) / path.name
        _write(elsewhere, text)
        environ[variable] = str(elsewhere)


def _private(home: Path) -> Path:
    """A folder for secrets: below `home`, so that each probe of a container replaces the files of the last."""
    folder = home / PRIVATE
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="airflow-"))
    return folder if _is_writable(str(folder)) else Path(tempfile.mkdtemp(prefix="airflow-"))


def _merged(mounted: str, ours: str) -> str:
    config = configparser.RawConfigParser(strict=False)
    config.read_string(mounted)
    config.read_string(ours)
    merged = io.StringIO()
    config.write(merged)
    return merged.getvalue()


def _write(path: Path, text: str) -> None:
    """Replace a file at once: running components read it while a probe writes it."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise


if __name__ == "__main__":
    name_user(os.environ, Path(os.environ["AIRFLOW_HOME"]))
    prepare(os.environ, Path(os.environ["AIRFLOW_HOME"]))
    os.execvp(INIT[0], [*INIT, *sys.argv[1:]])  # noqa: S606
