"""The DAG `confirm`: measures once more what a run's judge doubts."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, Context, Param

from operators.chain import docs
from operators.chain.dag import RESOLVE, defaults, give, tasks
from operators.tasks.ask_confirm import CONFIRMS, DAG_ID
from operators.tasks.phases import ResolveOperator
from operators.tasks.request import check_names
from tipcflow.config.settings import settings
from tipcflow.domain import ConfigError, InfraError
from tipcflow.execute.verdict import confirm

if TYPE_CHECKING:
    from tipcflow.execute.request import RunRequest
    from tipcflow.execute.run.context import TaskContext

# Each waits for slots alone, and for minutes at most: there is nothing that a limit would protect.
_AT_ONCE = 1000
# When all workers are busy, its tasks are next: a run waits for it, and that run's budget goes by.
_FIRST = 1000


class ConfirmResolveOperator(ResolveOperator):
    """Makes the plan of a confirm run: of the run that it confirms, the steps in doubt and what they need."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(suite="", params_file="", allowed=(CONFIRMS,), **kwargs)

    def asked(self, run: "TaskContext", context: Context, given: Mapping[str, Any]) -> "RunRequest":
        """The wish of the run that is confirmed, cut down to what is in doubt.

        Raises:
            ConfigError: a param that is wrong, or no such run.
            InfraError: nobody waits for this confirmation.
        """
        confirms = given.get(CONFIRMS)
        if set(given) != {CONFIRMS} or not isinstance(confirms, str) or not confirms:
            raise ConfigError(
                "a judge starts this DAG", key=CONFIRMS, found=repr(dict(given))[:80], expected="only a run's id"
            )
        asked = confirm.asked_of(run.store, confirms)
        if asked is None or asked.run != run.run:
            raise InfraError(f"run {confirms} does not ask for this confirm run")
        confirmed = self._confirmed(run, given)
        check_names(suite=confirmed.suite, cluster=confirmed.cluster, policy=confirmed.policy)
        dag_run = context["dag_run"]
        return dataclasses.replace(
            confirm.request_for(confirmed, run.store.get_run(confirms), asked, run.store.now()),
            owner=f"airflow {dag_run.dag_id} {dag_run.run_id}",
            config_dir=settings().config_dir,
            only_inside=True,
        )

    def fallback(self, run: "TaskContext", context: Context, given: Mapping[str, Any]) -> "RunRequest":
        """That of the run that is confirmed, where there is one."""
        try:
            return dataclasses.replace(self._confirmed(run, given), trigger=confirm.TRIGGER)
        except ConfigError:
            return super().fallback(run, context, {**given, "suite": "?"})

    @staticmethod
    def _confirmed(run: "TaskContext", given: Mapping[str, Any]) -> "RunRequest":
        from tipcflow.execute.resolve.resolve import kept_request

        return kept_request(run.store, str(given.get(CONFIRMS)))


def confirm_dag() -> DAG:
    """The graph of a chain, for whatever a confirm run does of it."""
    dag = DAG(
        dag_id=DAG_ID,
        description="Measure once more what looks like a regression; started by the task `judge`",
        doc_md=docs.CONFIRM_DOC,
        schedule=None,
        catchup=False,
        max_active_runs=_AT_ONCE,
        # Runs wait for it.
        is_paused_upon_creation=False,
        tags=["tipcflow"],
        default_args={**defaults(), "priority_weight": _FIRST},
    )
    with dag:
        tasks(ConfirmResolveOperator(**RESOLVE), ())
    confirms = Param(
        "", type="string", title="Confirms", description="The run that is confirmed; its judge asks for it."
    )
    give(dag, {CONFIRMS: confirms})
    return dag
