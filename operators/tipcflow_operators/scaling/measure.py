"""Task of the DAG `scaling` that is mapped over the topologies: starts a topology's training and waits for it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from tipcflow.domain import InfraError, Run, Status, exit_code, run_id_of
from tipcflow.domain.numbers.units import limit
from tipcflow.domain.triggers import SCALING
from tipcflow_operators.airflow import dag_runs
from tipcflow_operators.airflow.child_runs import ChildRun, Move, next_move
from tipcflow_operators.airflow.errors import tipcflow_errors_fail_task
from tipcflow_operators.chain.dag import CERTIFY
from tipcflow_operators.scaling.check import series_of
from tipcflow_operators.triggers.dag_run import DagRunPayload, DagRunTrigger
from tipcflow_operators.weekly.turn import TurnPayload, TurnTrigger

if TYPE_CHECKING:
    from datetime import datetime

    from tipcflow.store import Store

MEASURE = "measure"
# Maximum wait for one topology, with its turn and its wait for slots.
DEADLINE_S = 2 * 24 * 3600.0


class MeasureOperator(BaseOperator):
    """Starts the training of a topology when those before it have ended, and defers until it ends.

    When the DAG run is cleared, a topology with a verdict keeps it, an active run is awaited again, and a topology
    without a verdict is trained again.

    Args:
        case: an entry of the task `check`.
    """

    template_fields = ("case",)

    def __init__(self, *, case: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.case = case

    def execute(self, context: Context) -> str | None:
        """Start the training when its turn has come; return the status word of its run."""
        if self.case["why"]:
            raise AirflowSkipException(self.case["why"])
        return self._go_on(context, may_wait=True)

    def take_turn(self, context: Context, event: dict[str, Any]) -> str | None:
        """Continue after the topologies before this one have ended."""
        with tipcflow_errors_fail_task():
            if TurnPayload.of(event).late:
                raise InfraError(f"the preceding topologies are still training after {limit(DEADLINE_S)}")
        return self._go_on(context, may_wait=False)

    def resume(self, context: Context, event: dict[str, Any]) -> str:
        """Continue after the training's DAG run has ended."""
        from tipcflow.store import Store

        ended = DagRunPayload.of(event)
        with tipcflow_errors_fail_task(), Store.open_in_task() as store:
            if ended.is_late:
                raise InfraError(f"DAG run {ended.run_id} of {CERTIFY} did not end within {limit(DEADLINE_S)}")
            return self._report(store, context)

    def _go_on(self, context: Context, *, may_wait: bool) -> str | None:
        from tipcflow.store import Store

        dag_run = context["dag_run"]
        with tipcflow_errors_fail_task(), Store.open_in_task() as store:
            until = store.now() + DEADLINE_S
            move, run_id = next_move(
                parent_of(dag_run.run_id, self.case),
                lambda child: child_run_of(store, child, dag_run.run_after),
                word=SCALING,
            )
            if move is Move.KEEP:
                self.log.info("%s of %s already has a verdict", run_id, CERTIFY)
                return self._report(store, context)
            if move is Move.START and may_wait and (turn := self._turn(context, until)):
                return self.defer(trigger=turn, method_name="take_turn")
            if move is Move.START:
                _, conf = series_of(context)
                note = f"topology {self.case['topology']} of {dag_run.dag_id} {dag_run.run_id}"
                conf["case"] = self.case["case"]
                dag_runs.start(CERTIFY, run_id, run_after=dag_run.run_after, conf=conf, note=note)
        self.log.info("waiting for %s of %s", run_id, CERTIFY)
        return self.defer(trigger=DagRunTrigger(dag_id=CERTIFY, run_id=run_id, until=until), method_name="resume")

    def _turn(self, context: Context, until: float) -> TurnTrigger | None:
        """Return the trigger to wait for before the training starts; None if it may start now."""
        index, dag_run = context["ti"].map_index or 0, context["dag_run"]
        where = {"dag_id": dag_run.dag_id, "run_id": dag_run.run_id, "mapped": MEASURE}
        turn = TurnTrigger(index=index, at_once=1, until=until, **where)
        if not index or not turn.ahead():
            return None
        self.log.info("topologies are measured one at a time: this one starts when those before it have ended")
        return turn

    def _report(self, store: "Store", context: Context) -> str:
        """Return the status of the run; fail the task if the exit code of the status is not 0."""
        dag_run = context["dag_run"]
        run = run_of(store, dag_run.run_id, dag_run.run_after, self.case)
        if run is None or run.status is None:
            raise InfraError(
                f"the DAG run of {CERTIFY} for {self.case['topology']} ended without a tipcflow status",
                hint="see its tasks; clear this task to train again",
            )
        message = f"{run.status.value}: {run.reason}" if run.reason else run.status.value
        self.log.info("run %s: %s", run.id, message)
        if exit_code(run.status):
            raise AirflowFailException(message)
        return run.status.value


def parent_of(dag_run_id: str, case: Mapping[str, Any]) -> str:
    """Return the text from which the ids of a topology's DAG runs are made."""
    return f"{dag_run_id}.{case['topology']}"


def child_run_of(store: "Store", child: str, run_after: "datetime") -> ChildRun:
    """Return the state of a DAG run of `certify` that measures a topology."""
    ours = run_id_of(CERTIFY, child, run_after)
    known = store.runs.known([ours]).get(ours)
    return ChildRun(dag_runs.state_of(CERTIFY, child), known is not None, known.status if known else None)


def run_of(store: "Store", dag_run_id: str, run_after: "datetime", case: Mapping[str, Any]) -> Run | None:
    """Return the last run of a topology; None if none was started."""
    children: list[str] = []

    def seen(child: str) -> ChildRun:
        children.append(run_id_of(CERTIFY, child, run_after))
        return child_run_of(store, child, run_after)

    next_move(parent_of(dag_run_id, case), seen, word=SCALING)
    known = store.runs.known(children)
    return next((known[child] for child in reversed(children) if child in known), None)


def status_of(run: Run) -> Status:
    """Return the status of a run that has ended; one without a status was broken."""
    return run.status or Status.INFRA_FAILURE
