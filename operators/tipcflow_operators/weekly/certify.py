"""Task of the DAG `weekly` that is mapped over the chains: starts a chain's DAG run and waits for it."""

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowFailException

from tipcflow.config.settings import settings
from tipcflow.domain import InfraError, dag_id_of, run_id_of
from tipcflow.domain.numbers.units import limit
from tipcflow_operators.airflow import dag_runs
from tipcflow_operators.airflow.child_runs import ChildRun, Move, next_move
from tipcflow_operators.airflow.errors import tipcflow_errors_fail_task
from tipcflow_operators.triggers.dag_run import LATE, DagRunPayload, DagRunTrigger
from tipcflow_operators.weekly.select import CHAIN_RUN_PARAMS, weekly_request
from tipcflow_operators.weekly.turn import TurnPayload, TurnTrigger

if TYPE_CHECKING:
    from tipcflow.store import Store

# Shorter than a week, so that the next weekly run does not queue behind this one.
DEADLINE_S = 6 * 24 * 3600.0


class CertifyOperator(BaseOperator):
    """Starts a chain's DAG run in turn, defers until it ends and reports its status.

    When the weekly run is cleared, a chain with a verdict keeps it, an active one is awaited again, and one
    without a verdict is started again.

    Args:
        chain: `<suite>/<model>/<file>`.
    """

    template_fields = ("chain",)

    def __init__(self, *, chain: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.chain = chain

    def execute(self, context: Context) -> str | None:
        """Start the chain's DAG run when its turn has come; return the chain's status word."""
        return self._go_on(context, may_wait=True)

    def take_turn(self, context: Context, event: dict[str, Any]) -> str | None:
        """Continue after enough of the chains before this one have ended."""
        with tipcflow_errors_fail_task():
            if TurnPayload.of(event).late:
                raise InfraError(f"the preceding chains are still running after {limit(DEADLINE_S)}")
        return self._go_on(context, may_wait=False)

    def resume(self, context: Context, event: dict[str, Any]) -> str:
        """Continue after the chain's DAG run has ended."""
        from tipcflow.store import Store

        ended = DagRunPayload.of(event)
        with tipcflow_errors_fail_task(), Store.open_in_task() as store:
            return self._report(store, context, ended.run_id, ended.state or "deleted")

    def _go_on(self, context: Context, *, may_wait: bool) -> str | None:
        from tipcflow.store import Store

        dag_run, dag_id = context["dag_run"], dag_id_of(self.chain)
        with tipcflow_errors_fail_task(), Store.open_in_task() as store:
            until = store.now() + DEADLINE_S

            def find_run(run_id: str) -> ChildRun:
                ours = run_id_of(dag_id, run_id, dag_run.run_after)
                known = store.runs.known([ours]).get(ours)
                state = dag_runs.state_of(dag_id, run_id)
                return ChildRun(state, known is not None, known.status if known else None)

            move, run_id = next_move(dag_run.run_id, find_run)
            if move is Move.KEEP:
                self.log.info("%s of %s already has a verdict", run_id, dag_id)
                return self._report(store, context, run_id, "")
            if move is Move.START and may_wait and (turn := self._turn(context, until)):
                return self.defer(trigger=turn, method_name="take_turn")
            if move is Move.START:
                self._start(context, dag_id, run_id)
        self.log.info("waiting for %s of %s", run_id, dag_id)
        return self.defer(trigger=DagRunTrigger(dag_id=dag_id, run_id=run_id, until=until), method_name="resume")

    def _turn(self, context: Context, until: float) -> TurnTrigger | None:
        """Return the trigger to wait for before the chain starts; None if it may start now."""
        index, dag_run = context["ti"].map_index or 0, context["dag_run"]
        at_once = settings().weekly_at_once
        if index < at_once:
            return None
        turn = TurnTrigger(dag_id=dag_run.dag_id, run_id=dag_run.run_id, index=index, at_once=at_once, until=until)
        ahead = turn.ahead()
        if not ahead:
            return None
        self.log.info(
            "at most %d chains run concurrently: this chain starts when %d more have ended", at_once, ahead
        )
        return turn

    @staticmethod
    def _start(context: Context, dag_id: str, run_id: str) -> None:
        weekly, params = context["dag_run"], weekly_request(context)
        dag_runs.start(
            dag_id,
            run_id,
            run_after=weekly.run_after,
            conf={name: params[name] for name in CHAIN_RUN_PARAMS if name in params},
            note=f"started by {weekly.dag_id} {weekly.run_id}",
        )

    def _report(self, store: "Store", context: Context, run_id: str, state: str) -> str:
        """Return the status of the DAG run's tipcflow run; fail the task if the CLI's exit code is not 0."""
        from tipcflow.execute.verdict.conclusion import exit_code_of

        ours = run_id_of(dag_id_of(self.chain), run_id, context["dag_run"].run_after)
        run = store.runs.known([ours]).get(ours)
        if run is None or run.status is None:
            run_name = f"DAG run {run_id} of {dag_id_of(self.chain)}"
            ended = f"ended (Airflow: {state or 'no state'}) without a tipcflow status"
            late = f"did not end within {limit(DEADLINE_S)}"
            raise InfraError(
                f"{run_name} {late if state == LATE else ended}",
                hint="see its tasks; DAG `maintenance` judges it within an hour; clear this task to run it again",
            )
        message = f"{run.status.value}: {run.reason}" if run.reason else run.status.value
        self.log.info("run %s: %s", run.id, message)
        if exit_code_of(store, run):
            raise AirflowFailException(message)
        return run.status.value
