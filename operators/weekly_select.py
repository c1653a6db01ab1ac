"""The first task of the DAG `weekly`: which chains, and in which order."""

from typing import Any

from airflow.sdk import BaseOperator, Context

from operators.failing import failing_plainly
from operators.request import RUN_PARAMS, read_conf
from operators.weekly_choice import all_chains, chosen_chains, longest_first
from tipcflow.config.cluster import load_cluster
from tipcflow.config.settings import settings

SELECT = "select"
CHAINS = "chains"
# What a chain of a weekly run may be asked for; verbose logs would be measured too.
ASKED = tuple(name for name in RUN_PARAMS if name != "diagnose")


class SelectOperator(BaseOperator):
    """Chooses the chains and their order.

    Returns:
        Their names, which certify is mapped over.
    """

    def execute(self, context: Context) -> list[str]:
        """Called by Airflow. A param that cannot be is a `config_error`, with nothing started."""
        with failing_plainly():
            return self._select(asked_of(context))

    def _select(self, params: dict[str, Any]) -> list[str]:
        from tipcflow.execute.judgement import load_policy
        from tipcflow.store import Store

        folder = settings().config_dir
        globs = params.pop(CHAINS, None)
        conf = read_conf(params, allowed=ASKED)
        load_cluster(conf.cluster, folder)
        load_policy(conf.policy, folder)
        names = chosen_chains(globs, all_chains(folder))
        with Store.open() as store:
            durations = store.durations(conf.mode)
        ordered = longest_first(names, durations)
        for name in ordered:
            known = durations.get(name)
            self.log.info("%s: %s", name, "never run before" if known is None else f"about {known / 60:.0f} min")
        return ordered


def asked_of(context: Context) -> dict[str, Any]:
    """The DAG's params with what this run gave on top, also what the DAG does not know."""
    return {**context["params"], **(context["dag_run"].conf or {})}
