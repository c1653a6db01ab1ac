"""The tasks of the DAG `weekly` that are mapped over its chains: each stands for its chain's own DAG run."""

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowFailException

from operators.airflow import dag_runs
from operators.airflow.child_runs import Move, Seen, next_move
from operators.airflow.errors import failing_plainly
from operators.triggers.dag_run import LATE, DagRunTrigger
from operators.weekly.select import ASKED, asked_of
from operators.weekly.turn import TurnTrigger
from tipcflow.config.settings import settings
from tipcflow.domain import InfraError, dag_id_of, run_id_of

if TYPE_CHECKING:
    from tipcflow.store import Store

# The next weekly run must not queue up behind this one.
DEADLINE_S = 6 * 24 * 3600.0


class CertifyOperator(BaseOperator):
    """One chain: starts its DAG run when it is its turn, waits for it deferred, and says what it said.

    When the weekly run is cleared, a chain that has a verdict keeps it, one that goes on is waited for again, and
    one without a verdict is started again.

    Args:
        chain: `<suite>/<model>/<file>`.
    """

    template_fields = ("chain",)

    def __init__(self, *, chain: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.chain = chain

    def execute(self, context: Context) -> str | None:
        """Called by Airflow; the chain's status word."""
        return self._go_on(context, may_wait=True)

    def take_turn(self, context: Context, event: dict[str, Any]) -> str | None:
        """Called by Airflow when enough of the chains before this one have ended."""
        with failing_plainly():
            if event["late"]:
                raise InfraError(f"the chains before this one go on after {DEADLINE_S / 86400:.0f} days")
        return self._go_on(context, may_wait=False)

    def resume(self, context: Context, event: dict[str, Any]) -> str:
        """Called by Airflow when the chain's DAG run has ended."""
        from tipcflow.store import Store

        with failing_plainly(), Store.open_in_task() as store:
            return self._say(store, context, event["run_id"], str(event["state"] or "deleted"))

    def _go_on(self, context: Context, *, may_wait: bool) -> str | None:
        from tipcflow.store import Store

        dag_run, dag_id = context["dag_run"], dag_id_of(self.chain)
        with failing_plainly(), Store.open_in_task() as store:
            until = store.now() + DEADLINE_S

            def look(run_id: str) -> Seen:
                ours = run_id_of(dag_id, run_id, dag_run.run_after)
                known = store.known_runs([ours]).get(ours)
                state = dag_runs.state_of(dag_id, run_id)
                return Seen(state, known is not None, known.status if known else None)

            move, run_id = next_move(dag_run.run_id, look)
            if move is Move.KEEP:
                self.log.info("%s of %s has a verdict, which stays", run_id, dag_id)
                return self._say(store, context, run_id, "")
            if move is Move.START and may_wait and (turn := self._turn(context, until)):
                return self.defer(trigger=turn, method_name="take_turn")
            if move is Move.START:
                self._start(context, dag_id, run_id)
        self.log.info("waiting for %s of %s", run_id, dag_id)
        return self.defer(trigger=DagRunTrigger(dag_id=dag_id, run_id=run_id, until=until), method_name="resume")

    def _turn(self, context: Context, until: float) -> TurnTrigger | None:
        """What to wait for before the chain is started; None when it is its turn."""
        index, dag_run = context["ti"].map_index or 0, context["dag_run"]
        at_once = settings().weekly_at_once
        if index < at_once:
            return None
        turn = TurnTrigger(dag_id=dag_run.dag_id, run_id=dag_run.run_id, index=index, at_once=at_once, until=until)
        ahead = turn.ahead()
        if not ahead:
            return None
        self.log.info(
            "%d chains may be on their way at once: it is started when %d more have ended", at_once, ahead
        )
        return turn

    @staticmethod
    def _start(context: Context, dag_id: str, run_id: str) -> None:
        weekly, params = context["dag_run"], asked_of(context)
        dag_runs.start(
            dag_id,
            run_id,
            run_after=weekly.run_after,
            conf={name: params[name] for name in ASKED if name in params},
            note=f"started by {weekly.dag_id} {weekly.run_id}",
        )

    def _say(self, store: "Store", context: Context, run_id: str, state: str) -> str:
        """The status of our run that the DAG run is; the task fails when the CLI would not exit 0 for it."""
        from tipcflow.execute.verdict.conclusion import exit_code_of

        ours = run_id_of(dag_id_of(self.chain), run_id, context["dag_run"].run_after)
        run = store.known_runs([ours]).get(ours)
        if run is None or run.status is None:
            became = f"has not ended within {DEADLINE_S / 86400:.0f} days" if state == LATE else "has no status"
            raise InfraError(
                f"{run_id} of {dag_id_of(self.chain)} {became} (Airflow says {state or 'that it ended'})",
                hint="see its tasks; `maintenance` judges it within the hour; clear this task to run it again",
            )
        said = f"{run.status.value}: {run.reason}" if run.reason else run.status.value
        self.log.info("run %s: %s", run.id, said)
        if exit_code_of(store, run):
            raise AirflowFailException(said)
        return run.status.value
