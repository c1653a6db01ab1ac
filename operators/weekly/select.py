"""The first task of the DAG `weekly`: which chains, and in which order."""

from typing import Any

from airflow.sdk import BaseOperator, Context

from operators.airflow.database import refuse_sqlite_between_machines
from operators.airflow.errors import failing_plainly
from operators.tasks.request import RUN_PARAMS, read_conf
from operators.weekly.choice import all_chains, chosen_chains, longest_first, without_mode
from tipcflow.config.cluster import load_cluster
from tipcflow.config.settings import settings
from tipcflow.domain import ConfigError

SELECT = "select"
CHAINS = "chains"
# Under this key the names of the chains that are left out are told to the summary.
LEFT_OUT = "left_out"
# What a chain of a weekly run may be asked for: it is no change, and verbose logs would be measured too.
ASKED = tuple(name for name in RUN_PARAMS if name not in ("base", "diagnose"))


class SelectOperator(BaseOperator):
    """Chooses the chains and their order.

    Chains whose kind of file has no such mode are left out; the summary says so.

    Returns:
        The chains' names, which certify is mapped over.
    """

    def execute(self, context: Context) -> list[str]:
        """Called by Airflow. A param that cannot be is a `config_error`, with nothing started."""
        with failing_plainly():
            refuse_sqlite_between_machines()
            chosen, left_out = self._select(asked_of(context))
        context["ti"].xcom_push(key=LEFT_OUT, value=left_out)
        return chosen

    def _select(self, params: dict[str, Any]) -> tuple[list[str], list[str]]:
        """(the chains in order, those that are left out)."""
        from tipcflow.execute.verdict.judge import load_policy
        from tipcflow.store import Store

        folder = settings().config_dir
        globs = params.pop(CHAINS, None)
        conf = read_conf(params, allowed=ASKED)
        load_cluster(conf.cluster, folder)
        load_policy(conf.policy, folder)
        fitting = chosen_chains(globs, all_chains(folder))
        left_out = without_mode(fitting, conf.mode, folder)
        names = [name for name in fitting if name not in left_out]
        if not names:
            raise ConfigError(
                "no chain that fits has this mode",
                key="mode",
                found=conf.mode,
                expected=f"a mode of {left_out[0]}",
                hint="see its params in Airflow's form, or `tipcflow plan`",
            )
        with Store.open_in_task() as store:
            durations = store.durations(conf.mode)
        ordered = longest_first(names, durations)
        for name in ordered:
            known = durations.get(name)
            self.log.info("%s: %s", name, "never run before" if known is None else f"about {known / 60:.0f} min")
        for name in left_out:
            self.log.info("%s: left out, files of its kind have no mode %s", name, conf.mode)
        return ordered, left_out


def asked_of(context: Context) -> dict[str, Any]:
    """The DAG's params with what this run gave on top, also what the DAG does not know."""
    return {**context["params"], **(context["dag_run"].conf or {})}
