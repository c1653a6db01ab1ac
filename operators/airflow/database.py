"""Whether the tasks of this Airflow can share the metrics database."""

from airflow.configuration import conf

from tipcflow.config.settings import settings
from tipcflow.domain import ConfigError

# Their tasks run on the scheduler's machine (operators.airflow.executor.LocalExecutor has this name too).
_LOCAL = frozenset({"LocalExecutor"})


def refuse_sqlite_between_machines() -> None:
    """Refuse a metrics database in a file where tasks may run on several machines: each would write its own file.

    Raises:
        ConfigError: SQLite, and an executor that is not local.
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
    """The class names in Airflow's `[core] executor`: `[team=][alias:]module.Class` or a short name, several with
    commas, teams with semicolons."""
    entries = (one for team in configured.split(";") for one in team.rpartition("=")[2].split(","))
    return [entry.strip().rpartition(":")[2].rpartition(".")[2] for entry in entries if entry.strip()]
