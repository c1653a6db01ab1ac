"""Settings from environment variables, all documented in docs/reference/configuration.md."""

import os
import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from tipcflow.domain import ConfigError

# Saturday evening in UTC: finished by Monday morning in every time zone.
WEEKLY_CRON = "0 20 * * 6"
# Maximum number of concurrent chains of a weekly run; the queue for slots orders them.
WEEKLY_AT_ONCE = 16
# After half an hour of waiting a weekly run has the priority of a user's run, after an hour of a pull request.
QUEUE_RISE_S = 1800.0
# A longer log is truncated and its step is an infra_failure, because a full disk would stop all runs.
LOG_LIMIT_MB = 8000
# Copies of files of the object store on one machine.
STORE_CACHE_MB = 10_000
# Not fsspec's `memory`: each process would have objects of its own.
_STORES = ("file", "s3")

_PREFIX = "TIPCFLOW_"


def _folder(value: object) -> Path:
    """An absolute path; relative ones start at the working directory."""
    folder = Path.cwd() / Path(str(value)).expanduser()
    if folder.exists() and not folder.is_dir():
        raise ValueError("not a folder")
    return folder


def _file(value: object) -> Path | None:
    """An absolute path; relative ones start at the working directory."""
    return None if value is None else Path.cwd() / Path(str(value)).expanduser()


def _database_url(url: str) -> str:
    if url.partition(":")[0].partition("+")[0] not in ("sqlite", "postgresql", "postgres"):
        raise ValueError("not a database URL")
    return url


def _store_url(url: str) -> str:
    """The URL of an object store, without a trailing slash."""
    parts = urlsplit(url)
    if parts.scheme not in _STORES or not url.startswith(f"{parts.scheme}://"):
        raise ValueError("not the URL of an object store")
    if set("@:") & set(parts.netloc) or parts.query or parts.fragment:
        raise ValueError(
            "contains a login or parameters, which messages would show; set AWS_ACCESS_KEY_ID and the like"
        )
    if parts.scheme == "file" and (parts.netloc or not parts.path.strip("/")):
        raise ValueError("not an absolute folder")
    if parts.scheme == "s3" and not parts.netloc:
        raise ValueError("names no bucket")
    return url.rstrip("/")


def _cron(text: str) -> str:
    """The expression with single spaces."""
    from croniter import croniter  # Airflow's own parser; takes time to import

    # croniter also takes a sixth field, seconds, which a schedule of chains does not need.
    if len(text.split()) != 5 or not croniter.is_valid(text):
        raise ValueError("not a cron expression")
    return " ".join(text.split())


def _default_home() -> Path:
    if _is_checkout(Path.cwd()):
        return Path.cwd() / ".tipcflow"
    return Path(os.environ.get("HOME") or Path.home()) / ".tipcflow"


def _is_checkout(folder: Path) -> bool:
    """Whether a folder is a clone of tipcflow itself."""
    try:
        with (folder / "pyproject.toml").open("rb") as file:
            project = tomllib.load(file).get("project", {})
    except (OSError, ValueError):
        return False
    return isinstance(project, dict) and project.get("name") == "tipcflow"


def shipped_configs() -> Path | None:
    """Return the folder `configs/` of the checkout that runs; None for an installed wheel."""
    shipped = Path(__file__).resolve().parents[3] / "configs"
    return shipped if shipped.is_dir() else None


def _default_config_dir() -> Path:
    here = Path.cwd() / "configs"
    shipped = shipped_configs()
    return shipped if shipped and not here.is_dir() else here


def _default_database_url(values: Mapping[str, Any]) -> str:
    # Without a valid home the error is about the home.
    return f"sqlite:///{values.get('home', Path()) / 'tipcflow.db'}"


class Settings(BaseSettings):
    """Paths and limits of this installation. A field's variable is its name in capitals with the prefix TIPCFLOW_.

    The description of a field names the expected values, for the error message.

    Attributes:
        home: folder of runs, environments and the default database.
        database_url: SQLite or PostgreSQL. May contain a password: print `safe_url` of it.
        config_dir: folder of suites/, clusters/, references/, policies/.
        weekly_cron: schedule of the DAG `weekly`, a cron expression in UTC.
        weekly_at_once: maximum number of concurrent chains of a weekly run.
        queue_rise_s: seconds of waiting for slots after which a run rises one priority.
        log_limit_mb: maximum size of a file fetched from a node, 10^6 bytes.
        wheel_hosts: hosts from which framework wheels may be fetched, separated by commas (`*` and `?` match);
            '' for every host.
        signing_key: PEM file with the Ed25519 private key that signs certificates; None: they are not signed.
        store: URL of the object store of files that several machines need; None: they share `home`.
        connections_file: JSON file with Airflow connections of nodes, for the CLI on a machine of Airflow; None:
            only the variables `AIRFLOW_CONN_<ID>` are read.
        json_logs: whether the CLI prints progress and errors as JSON, one object a line.
        roles: YAML file with users and their roles; for `tipcflow access apply`.
        store_cache_mb: maximum size of copies of its files on this machine, 10^6 bytes.
    """

    model_config = SettingsConfigDict(env_prefix=_PREFIX, env_ignore_empty=True, frozen=True, extra="forbid")

    home: Annotated[Path, BeforeValidator(_folder)] = Field(default_factory=_default_home, description="a folder")
    database_url: Annotated[str, AfterValidator(_database_url)] = Field(
        default_factory=_default_database_url,
        description="sqlite:////absolute/path.db or postgresql://user@host/name",
    )
    config_dir: Annotated[Path, BeforeValidator(_folder)] = Field(
        default_factory=_default_config_dir, description="a folder"
    )
    weekly_cron: Annotated[str, AfterValidator(_cron)] = Field(
        default=WEEKLY_CRON,
        description="minute, hour, day of the month, month, day of the week, for example '0 20 * * 6'",
    )
    weekly_at_once: int = Field(default=WEEKLY_AT_ONCE, ge=1, description="a whole number of at least 1")
    queue_rise_s: float = Field(
        default=QUEUE_RISE_S, ge=1, allow_inf_nan=False, description="a number of at least 1"
    )
    log_limit_mb: int = Field(default=LOG_LIMIT_MB, ge=1, description="a whole number of at least 1")

    wheel_hosts: str = Field(default="", description="host names separated by commas")
    json_logs: bool = Field(default=False, description="true or false")
    roles: Annotated[Path | None, BeforeValidator(_file)] = Field(default=None, description="a YAML file")
    signing_key: Annotated[Path | None, BeforeValidator(_file)] = Field(default=None, description="a PEM file")
    store: Annotated[str, AfterValidator(_store_url)] | None = Field(
        default=None, description="file:///absolute/folder or s3://bucket/folder"
    )
    connections_file: Annotated[Path | None, BeforeValidator(_file)] = Field(
        default=None, description="a file of `airflow connections export`"
    )
    store_cache_mb: int = Field(default=STORE_CACHE_MB, ge=1, description="a whole number of at least 1")

    def __repr__(self) -> str:
        return f"Settings(home={str(self.home)!r}, database_url={safe_url(self.database_url)!r}, " + (
            f"config_dir={str(self.config_dir)!r}, weekly_cron={self.weekly_cron!r})"
        )

    __str__ = __repr__

    @property
    def runs_dir(self) -> Path:
        """Folder with one folder per run, for files collected from nodes."""
        return self.home / "runs"


def settings() -> Settings:
    """The settings in force; an empty variable counts as unset.

    Raises:
        ConfigError: a variable has an invalid value.
    """
    return _read(_sources())


def _sources() -> tuple[object, ...]:
    """Return what the settings depend on: environment variables, the working directory and its two entries."""
    here = Path.cwd()
    try:
        changed = (here / "pyproject.toml").stat().st_mtime_ns
    except OSError:
        changed = 0
    own = (item for item in os.environ.items() if item[0].upper().startswith(_PREFIX) or item[0] == "HOME")
    return (*sorted(own), here, changed, _default_config_dir())


@lru_cache(maxsize=8)
def _read(sources: tuple[object, ...]) -> Settings:
    """Return the settings; a plan reads them several times, and reading them takes 10 ms.

    Args:
        sources: changes when a setting may have changed.
    """
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
    name = str(first["loc"][0])
    cause = first.get("ctx", {}).get("error")
    shown = {"database_url": safe_url, "store": _without_login}.get(name, str)
    raise ConfigError(
        str(cause) if cause else "invalid value",
        key=_PREFIX + name.upper(),
        found=shown(str(first["input"])),
        expected=Settings.model_fields[name].description or "",
    )


def _without_login(url: str) -> str:
    """The URL of an object store without login and parameters: either may be a secret."""
    scheme, is_url, rest = url.partition("://")
    if not is_url:
        return url
    place, slash, path = re.split(r"[?#]", rest)[0].partition("/")
    _, at, host = place.rpartition("@")
    name, colon, _ = host.partition(":")
    return f"{scheme}://{'***@' if at else ''}{name}{':***' if colon else ''}{slash}{path}"


def safe_url(url: str) -> str:
    """The URL without its password, for messages; never raises."""
    try:
        parts = urlsplit(url)
        netloc = parts.netloc
        if "@" in netloc:
            login, _, where = netloc.rpartition("@")
            user, colon, _ = login.partition(":")
            netloc = f"{user}{':***' if colon else ''}@{where}"
        query = urlencode(
            [(key, "***" if "pass" in key.lower() else value) for key, value in parse_qsl(parts.query)],
            safe="*/:",
        )
        shown = urlunsplit(parts._replace(netloc=netloc, query=query))
    except ValueError:
        return f"{url.partition(':')[0][:20]}:…"
    # urlunsplit drops the empty authority of sqlite:///x and keeps that of sqlite:////x.
    if not netloc and url.startswith(f"{parts.scheme}://"):
        shown = f"{parts.scheme}://{parts.path}{f'?{query}' if query else ''}"
    return shown
