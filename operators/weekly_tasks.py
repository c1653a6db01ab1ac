"""The tasks of the DAG `weekly`: select -> certify, one per chain -> summary."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowFailException

from operators import dag_runs
from operators.dag_run_trigger import LATE, DagRunTrigger
from operators.failing import failing_plainly
from operators.request import RUN_PARAMS, read_conf
from operators.verdict import set_note
from operators.weekly_choice import all_chains, chosen_chains, longest_first
from operators.weekly_runs import MOST_RUNS, Move, Seen, child_run_id, next_move
from operators.weekly_table import Row, accuracies, counted, markdown, values_of
from tipcflow.config.cluster import load_cluster
from tipcflow.config.settings import settings
from tipcflow.domain import InfraError, Run, Status, dag_id_of, exit_code, run_id_of

if TYPE_CHECKING:
    from tipcflow.store import Store

CHAINS = "chains"
# What a chain of a weekly run may be asked for; verbose logs would be measured too.
ASKED = tuple(name for name in RUN_PARAMS if name != "diagnose")
# The next weekly run must not queue up behind this one.
DEADLINE_S = 6 * 24 * 3600.0
# How many earlier runs are looked through for one that was judged for accuracy.
_LOOK_BACK = 10


class SelectOperator(BaseOperator):
    """Chooses the chains and their order.

    Returns:
        Their names, which certify is mapped over.
    """

    def execute(self, context: Context) -> list[str]:
        """Called by Airflow. A param that cannot be is a `config_error`, with nothing started."""
        with failing_plainly():
            return self._select(_params(context))

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


class CertifyOperator(BaseOperator):
    """One chain: starts its DAG run, waits for it deferred, and says what it said.

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
        from tipcflow.store import Store

        dag_run, dag_id = context["dag_run"], dag_id_of(self.chain)
        with failing_plainly(), Store.open() as store:

            def look(run_id: str) -> Seen:
                ours = run_id_of(dag_id, run_id, dag_run.run_after)
                known = store.known_runs([ours]).get(ours)
                state = dag_runs.state_of(dag_id, run_id)
                return Seen(state, known is not None, known.status if known else None)

            move, run_id = next_move(dag_run.run_id, look)
            if move is Move.KEEP:
                self.log.info("%s of %s has a verdict, which stays", run_id, dag_id)
                return self._say(store, context, run_id, "")
            if move is Move.START:
                self._start(context, dag_id, run_id)
        self.log.info("waiting for %s of %s", run_id, dag_id)
        trigger = DagRunTrigger(dag_id=dag_id, run_id=run_id, until=time.time() + DEADLINE_S)
        return self.defer(trigger=trigger, method_name="resume")

    @staticmethod
    def _start(context: Context, dag_id: str, run_id: str) -> None:
        weekly, params = context["dag_run"], _params(context)
        dag_runs.start(
            dag_id,
            run_id,
            run_after=weekly.run_after,
            conf={name: params[name] for name in ASKED if name in params},
            note=f"started by {weekly.dag_id} {weekly.run_id}",
        )

    def resume(self, context: Context, event: dict[str, Any]) -> str:
        """Called by Airflow when the chain's DAG run has ended."""
        from tipcflow.store import Store

        with failing_plainly(), Store.open() as store:
            return self._say(store, context, event["run_id"], str(event["state"] or "deleted"))

    def _say(self, store: "Store", context: Context, run_id: str, state: str) -> str:
        """The status of our run that the DAG run is; the task fails when the CLI would not exit 0 for it."""
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
        if exit_code(run.status):
            raise AirflowFailException(said)
        return run.status.value


class SummaryOperator(BaseOperator):
    """Says of every chain what became of it; red when any of them is."""

    def execute(self, context: Context) -> str:
        """Called by Airflow, whatever happened before; how many chains have which status."""
        from tipcflow.store import Store

        dag_run = context["dag_run"]
        chains = context["ti"].xcom_pull(task_ids="select") or []
        if not chains:
            raise AirflowFailException(
                f"{Status.CONFIG_ERROR.value}: no chains were selected: see the task `select`"
            )
        with failing_plainly(), Store.open() as store:
            rows = [_row(store, chain, dag_run.run_id, dag_run.run_after) for chain in chains]
        text = markdown(f"weekly {dag_run.run_id}", rows)
        path = summary_path(settings().home, dag_run.run_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        for line in text.splitlines():
            self.log.info("%s", line)
        self.log.info("written to %s", path)
        said = f"{len(rows)} chains: {counted(rows)}"
        set_note(context, said, self.log)
        if any(row.red for row in rows):
            raise AirflowFailException(said)
        return said


def summary_path(home: Path, dag_run_id: str) -> Path:
    """Where the summary of a weekly DAG run is written."""
    return home / "weekly" / f"{child_run_id(dag_run_id).removeprefix('weekly__')}.md"


def _params(context: Context) -> dict[str, Any]:
    """The DAG's params with what this run gave on top, also what the DAG does not know."""
    return {**context["params"], **(context["dag_run"].conf or {})}


def _row(store: "Store", chain: str, parent: str, run_after: Any) -> Row:
    dag_id = dag_id_of(chain)
    ids = [run_id_of(dag_id, child_run_id(parent, number), run_after) for number in range(1, MOST_RUNS + 1)]
    known = store.known_runs(ids)
    last = next((known[run] for run in reversed(ids) if run in known), None)
    if last is None:
        return Row(chain)
    return Row(chain, last, accuracies(store.check_results(last.id), _accuracies_before(store, last)))


def _accuracies_before(store: "Store", run: Run) -> dict[tuple[str, str], float]:
    """Those of the last earlier run of the chain in this mode that was judged for accuracy."""
    for earlier in store.earlier_runs(run, _LOOK_BACK):
        if values := values_of(store.check_results(earlier.id)):
            return values
    return {}
