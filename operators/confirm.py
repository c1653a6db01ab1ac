"""A run that is confirmed: its judge starts another DAG run of the same DAG, and waits for it."""

import dataclasses
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context

from operators import dag_runs
from operators.weekly_runs import child_run_id
from tipcflow.domain import InfraError, TipcflowError, run_id_of
from tipcflow.execute import confirm
from tipcflow.execute.request import RunRequest

if TYPE_CHECKING:
    from tipcflow.execute.confirm import Asked
    from tipcflow.execute.task_context import TaskContext
    from tipcflow.store import Store

# The conf key that names the run which a DAG run confirms; no form shows it.
CONFIRMS = "confirms"
# More often than that nobody clears a run whose confirm run had begun.
_MOST = 20


def waited_for(run: "TaskContext", context: Context) -> tuple[str, "Asked"] | None:
    """(id of the confirm DAG run, what was asked) while it is to be waited for; it is started when it was not.

    A confirm run that Airflow refuses to start is said and not waited for: the numbers stay in doubt.
    """
    dag_run = context["dag_run"]
    asked = confirm.asked_of(run.store, run.run)
    if asked is not None:
        if not confirm.open_question(run.store, run.run):
            return None
        kept = (run.store.document(run.run, confirm.DOCUMENT) or {}).get("dag_run_id", "")
        return (str(kept), asked) if kept and dag_runs.state_of(dag_run.dag_id, str(kept)) else None
    child, at = _free_id(dag_run.dag_id, dag_run.run_id), datetime.now(UTC)
    asked = confirm.ask(
        run.store,
        run.store.get_run(run.run),
        run.policy,
        run_id_of(dag_run.dag_id, child, at),
        budget_ends=run.budget_ends,
    )
    if asked is None:
        return None
    document = run.store.document(run.run, confirm.DOCUMENT) or {}
    run.store.put_document(run.run, confirm.DOCUMENT, {**document, "dag_run_id": child})
    try:
        conf = {**_own_params(context), CONFIRMS: run.run}
        dag_runs.start(dag_run.dag_id, child, run_after=at, conf=conf, note=f"confirms {dag_run.run_id}")
    except TipcflowError as error:
        run.note(f"the confirm run could not be started: {error}")
        return None
    run.note(f"confirming {', '.join(asked.keys)}: run {asked.run}, for at most {asked.until - time.time():.0f} s")
    return child, asked


def _own_params(context: Context) -> dict[str, Any]:
    """What this DAG run was asked for, and not more."""
    return dict(context["dag_run"].conf or {})


def _free_id(dag_id: str, parent: str) -> str:
    """An id for the confirm run: another one when the run was cleared and is confirmed again."""
    for number in range(1, _MOST + 1):
        child = child_run_id(parent, number, word=confirm.TRIGGER)
        if dag_runs.state_of(dag_id, child) is None:
            return child
    raise InfraError(f"the run was confirmed {_MOST} times already")


def confirming(store: "Store", request: RunRequest, confirms: str) -> RunRequest:
    """The request of a confirm DAG run, from that of the run that it confirms.

    Raises:
        ConfigError: there is no such run.
        InfraError: nobody asked for its confirmation.
    """
    from tipcflow.execute.resolve import kept_request

    asked = confirm.asked_of(store, confirms)
    if asked is None:
        raise InfraError(f"nobody asks for a confirmation of run {confirms}")
    made = confirm.request_for(kept_request(store, confirms), store.get_run(confirms), asked)
    return dataclasses.replace(made, owner=request.owner, config_dir=request.config_dir, only_inside=True)
