"""First task of the DAG `weekly`: selects and orders the chains."""

from typing import Any

from airflow.configuration import conf
from airflow.sdk import BaseOperator, Context

from tipcflow.config.cluster import load_cluster
from tipcflow.config.settings import settings
from tipcflow.domain import ConfigError, Status
from tipcflow.domain.numbers.units import limit
from tipcflow_operators.airflow.database import refuse_sqlite_between_machines
from tipcflow_operators.airflow.errors import tipcflow_errors_fail_task
from tipcflow_operators.tasks.request import RUN_PARAMS, read_conf
from tipcflow_operators.weekly.choice import (
    all_chains,
    chosen_chains,
    longest_first,
    refuse_named,
    without_framework,
    without_mode,
)

SELECT = "select"
CHAINS = "chains"
# XCom key of the chains that do not run, with the reason; read by the summary.
NOT_RUN = "not_run"
# Params passed on to the chains: a weekly run tests no change, and verbose logs would disturb measurements.
CHAIN_RUN_PARAMS = tuple(name for name in RUN_PARAMS if name not in ("base", "diagnose", "drop"))


class SelectOperator(BaseOperator):
    """Selects the chains and their order.

    Leaves out chains whose kind of file does not support the mode, and those whose framework the cluster does not
    have; the summary lists them with the reason.

    Returns:
        Names of the chains, over which certify is mapped.
    """

    def execute(self, context: Context) -> list[str]:
        """Return the selected chains. An invalid param is a `config_error`, before anything starts."""
        with tipcflow_errors_fail_task():
            refuse_sqlite_between_machines()
            chosen, not_run = self._select(weekly_request(context))
        context["ti"].xcom_push(key=NOT_RUN, value=not_run)
        return chosen

    def _select(self, params: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
        """Return (the chains in order, the others with the reason)."""
        from tipcflow.execute.verdict.judge import load_policy
        from tipcflow.store import Store

        folder = settings().config_dir
        globs = params.pop(CHAINS, None)
        chain_conf = read_conf(params, allowed=CHAIN_RUN_PARAMS)
        cluster = load_cluster(chain_conf.cluster, folder)
        load_policy(chain_conf.policy, folder)
        known = all_chains(folder)
        fitting = chosen_chains(globs, known)
        missing = without_framework(fitting, cluster, folder, requested=chain_conf.framework or "")
        refuse_named(globs, known, missing)
        not_run = {**without_mode(fitting, chain_conf.mode, folder), **missing}
        names = [name for name in fitting if name not in not_run]
        if not names:
            other = next(name for name in fitting if name not in missing)
            raise ConfigError(
                "no selected chain supports this mode",
                key="mode",
                found=chain_conf.mode,
                expected=f"a mode of {other}",
                hint="see its params in Airflow's form, or `tipcflow plan`",
            )
        _refuse_more_than_airflow_maps(len(names))
        with Store.open_in_task() as store:
            durations = store.history.durations(chain_conf.mode)
        ordered = longest_first(names, durations)
        for name in ordered:
            seconds = durations.get(name)
            self.log.info("%s: %s", name, "no earlier run" if seconds is None else f"about {limit(seconds)}")
        for name, why in not_run.items():
            self.log.info("%s: %s: %s", name, Status.NOT_RUN.value, why)
        return ordered, not_run


def _refuse_more_than_airflow_maps(chains: int) -> None:
    most = conf.getint("core", "max_map_length")
    if chains > most:
        raise ConfigError(
            f"{chains} chains are selected, Airflow maps a task over {most} values at most",
            key="AIRFLOW__CORE__MAX_MAP_LENGTH",
            found=str(most),
            expected=f"at least {chains}",
        )


def weekly_request(context: Context) -> dict[str, Any]:
    """Return the DAG's params, overridden by those of this run, including unknown names."""
    return {**context["params"], **(context["dag_run"].conf or {})}
