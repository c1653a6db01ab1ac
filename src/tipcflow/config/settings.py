"""Settings from environment variables, all documented in docs/reference/configuration.md."""

import math
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from tipcflow.config.cron import checked_cron
from tipcflow.domain import ConfigError, Frozen

# Saturday evening in UTC: finished by Monday morning in every time zone.
WEEKLY_CRON = "0 20 * * 6"
# Maximum number of concurrent chains of a weekly run; the queue for slots orders them.
WEEKLY_AT_ONCE = 16
# After half an hour of waiting a weekly run has the priority of a user's run, after an hour of a pull request.
QUEUE_RISE_S = 1800.0
# A longer log is truncated and its step is an infra_failure, because a full disk would stop all runs.
LOG_LIMIT_MB = 8000


class Settings(Frozen):
    """Paths and limits of this installation.

    Attributes:
        home: folder of runs, environments and the default database; TIPCFLOW_HOME.
        database_url: SQLite or PostgreSQL; TIPCFLOW_DATABASE_URL. May contain a password: print `safe_url` of it.
        config_dir: folder of suites/, clusters/, references/, policies/; TIPCFLOW_CONFIG_DIR.
        weekly_cron: schedule of the DAG `weekly`, a cron expression in UTC; TIPCFLOW_WEEKLY_CRON.
        weekly_at_once: maximum number of concurrent chains of a weekly run; TIPCFLOW_WEEKLY_AT_ONCE.
        queue_rise_s: seconds of waiting for slots after which a run rises one priority; TIPCFLOW_QUEUE_RISE_S.
        log_limit_mb: maximum size of a file fetched from a node, 10^6 bytes; TIPCFLOW_LOG_LIMIT_MB.
    """

    home: Path
    database_url: str
    config_dir: Path
    weekly_cron: str = WEEKLY_CRON
    weekly_at_once: int = WEEKLY_AT_ONCE
    queue_rise_s: float = QUEUE_RISE_S
    log_limit_mb: int = LOG_LIMIT_MB

    def __repr__(self) -> str:
        return f"Settings(home={str(self.home)!r}, database_url={safe_url(self.database_url)!r}, " + (
            f"config_dir={str(self.config_dir)!r}, weekly_cron={self.weekly_cron!r})"
        )

    __str__ = __repr__

    @property
    def runs_dir(self) -> Path:
        """Folder with one folder per run, for files collected from nodes."""
        return self.home / "runs"


def settings(environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Settings:
    """The settings in force; an empty variable counts as unset.

    Raises:
        ConfigError: a variable has an invalid value.
    """
    environ = os.environ if environ is None else environ
    cwd = cwd or Path.cwd()
    home = _folder(environ, "TIPCFLOW_HOME", cwd) or _default_home(environ, cwd)
    return Settings(
        home=home,
        database_url=_database_url(environ, home),
        config_dir=_folder(environ, "TIPCFLOW_CONFIG_DIR", cwd) or _default_config_dir(cwd),
        weekly_cron=checked_cron(environ.get("TIPCFLOW_WEEKLY_CRON") or WEEKLY_CRON, key="TIPCFLOW_WEEKLY_CRON"),
        weekly_at_once=int(_number(environ, "TIPCFLOW_WEEKLY_AT_ONCE", WEEKLY_AT_ONCE, whole=True)),
        queue_rise_s=_number(environ, "TIPCFLOW_QUEUE_RISE_S", QUEUE_RISE_S),
        log_limit_mb=int(_number(environ, "TIPCFLOW_LOG_LIMIT_MB", LOG_LIMIT_MB, whole=True)),
    )


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


def _folder(environ: Mapping[str, str], name: str, cwd: Path) -> Path | None:
    value = environ.get(name, "")
    if not value:
        return None
    folder = cwd / Path(value).expanduser()
    if folder.exists() and not folder.is_dir():
        raise ConfigError("not a folder", key=name, found=value, expected="a folder")
    return folder


def _number(environ: Mapping[str, str], name: str, default: float, *, whole: bool = False) -> float:
    """A number of at least 1."""
    value = environ.get(name) or str(default)
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 1 <= number < math.inf or (whole and number != int(number)):
        kind = "a whole number" if whole else "a number"
        raise ConfigError("cannot be", key=name, found=value, expected=f"{kind} of at least 1")
    return number


def _database_url(environ: Mapping[str, str], home: Path) -> str:
    url = environ.get("TIPCFLOW_DATABASE_URL", "")
    if not url:
        return f"sqlite:///{home / 'tipcflow.db'}"
    if url.partition(":")[0].partition("+")[0] not in ("sqlite", "postgresql", "postgres"):
        raise ConfigError(
            "not a database URL",
            key="TIPCFLOW_DATABASE_URL",
            found=safe_url(url),
            expected="sqlite:////absolute/path.db or postgresql://user@host/name",
        )
    return url


def _default_home(environ: Mapping[str, str], cwd: Path) -> Path:
    if _is_checkout(cwd):
        return cwd / ".tipcflow"
    return Path(environ.get("HOME") or Path.home()) / ".tipcflow"


def _is_checkout(folder: Path) -> bool:
    """Whether a folder is a clone of tipcflow itself."""
    try:
        with (folder / "pyproject.toml").open("rb") as file:
            project = tomllib.load(file).get("project", {})
    except (OSError, ValueError):
        return False
    return isinstance(project, dict) and project.get("name") == "tipcflow"


def _default_config_dir(cwd: Path) -> Path:
    here = cwd / "configs"
    shipped = Path(__file__).resolve().parents[3] / "configs"
    return shipped if shipped.is_dir() and not here.is_dir() else here
