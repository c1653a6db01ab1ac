"""Checks that all tasks of this Airflow can share the metrics database."""

from airflow.configuration import conf

from tipcflow.config.settings import settings
from tipcflow.domain import ConfigError

# Executors that run tasks on the scheduler's machine; the subclass in `executor` has this name too.
_LOCAL = frozenset({"LocalExecutor"})


def refuse_sqlite_between_machines() -> None:
    """Reject SQLite if tasks may run on several machines: each machine would write its own file.

    Raises:
        ConfigError: the database is SQLite and an executor is not local.
    """
    if not settings().database_url.startswith("sqlite"):
        return
    remote = [name for name in executors(conf.get("core", "executor")) if name not in _LOCAL]
    if remote:
        raise ConfigError(
            f"{', '.join(remote)} runs tasks on several machines, which cannot share a SQLite file",
            key="TIPCFLOW_DATABASE_URL",
            found="SQLite",
            expected="postgresql://user@host/name, or Airflow's LocalExecutor",
        )


def executors(configured: str) -> list[str]:
    """Return the class names in Airflow's `[core] executor`.

    An entry is `[team=][alias:]module.Class` or a short name; commas separate entries, semicolons separate teams.
    """
    entries = (item for team in configured.split(";") for item in team.rpartition("=")[2].split(","))
    return [entry.strip().rpartition(":")[2].rpartition(".")[2] for entry in entries if entry.strip()]
