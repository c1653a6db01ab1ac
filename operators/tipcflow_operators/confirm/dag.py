"""DAG `confirm`: re-measures the suspected regressions of a run."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, Context, Param

from tipcflow.config.settings import settings
from tipcflow.domain import ConfigError, InfraError
from tipcflow.execute.verdict import confirm
from tipcflow_operators.chain import docs
from tipcflow_operators.chain.dag import RESOLVE, defaults, set_params, tasks
from tipcflow_operators.tasks.phases import ResolveOperator
from tipcflow_operators.tasks.request import check_names
from tipcflow_operators.tasks.request_confirm import CONFIRMS, DAG_ID

if TYPE_CHECKING:
    from tipcflow.execute.request import RunRequest
    from tipcflow.execute.run.context import TaskContext

# Confirm runs wait for slots only, for minutes at most, so that a limit would protect nothing.
_AT_ONCE = 1000
# Its tasks are next when all workers are busy: a run waits for them on its own budget.
_FIRST = 1000


class ConfirmResolveOperator(ResolveOperator):
    """Plans a confirm run: the suspected steps of the run being confirmed and their prerequisites."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(suite="", params_file="", allowed=(CONFIRMS,), **kwargs)

    def read_request(self, ctx: "TaskContext", context: Context, given: Mapping[str, Any]) -> "RunRequest":
        """Return the request of the run being confirmed, reduced to the suspected steps.

        Raises:
            ConfigError: a param is invalid, or the run does not exist.
            InfraError: no run waits for this confirmation.
        """
        confirms = given.get(CONFIRMS)
        if set(given) != {CONFIRMS} or not isinstance(confirms, str) or not confirms:
            raise ConfigError(
                "this DAG is started by task `judge`",
                key=CONFIRMS,
                found=repr(dict(given))[:80],
                expected="only a run ID",
            )
        confirmation = confirm.confirm_request_of(ctx.store, confirms)
        if confirmation is None or confirmation.run != ctx.run_id:
            raise InfraError(f"run {confirms} did not request this confirm run")
        confirmed = self._confirmed(ctx, given)
        check_names(suite=confirmed.suite, cluster=confirmed.cluster, policy=confirmed.policy)
        dag_run = context["dag_run"]
        return dataclasses.replace(
            confirm.request_for(confirmed, ctx.store.runs.get(confirms), confirmation, ctx.store.now()),
            owner=f"airflow {dag_run.dag_id} {dag_run.run_id}",
            config_dir=settings().config_dir,
            only_inside=True,
        )

    def fallback(self, ctx: "TaskContext", context: Context, given: Mapping[str, Any]) -> "RunRequest":
        """Return the request of the run being confirmed, if it exists."""
        try:
            return dataclasses.replace(self._confirmed(ctx, given), trigger=confirm.TRIGGER)
        except ConfigError:
            return super().fallback(ctx, context, {**given, "suite": "?"})

    @staticmethod
    def _confirmed(ctx: "TaskContext", given: Mapping[str, Any]) -> "RunRequest":
        from tipcflow.execute.resolve.resolve import kept_request

        return kept_request(ctx.store, str(given.get(CONFIRMS)))


def confirm_dag() -> DAG:
    """Return the DAG: the graph of a chain, of which a confirm run uses a part."""
    dag = DAG(
        dag_id=DAG_ID,
        description="Re-measure a suspected regression; started by task `judge`",
        doc_md=docs.CONFIRM_DOC,
        schedule=None,
        catchup=False,
        max_active_runs=_AT_ONCE,
        # Runs wait for this DAG, so it must not be paused.
        is_paused_upon_creation=False,
        tags=["tipcflow", "confirm"],
        default_args={**defaults(), "priority_weight": _FIRST},
    )
    with dag:
        tasks(ConfirmResolveOperator(**RESOLVE), ())
    confirms = Param(
        "", type="string", title="Confirms", description="Id of the run to confirm; set by its task `judge`."
    )
    set_params(dag, {CONFIRMS: confirms})
    return dag
