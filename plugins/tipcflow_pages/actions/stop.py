"""Stop a run: mark its DAG run as failed, as Airflow's page does. Users stop their own runs, operators any."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import RedirectResponse, Response

from tipcflow.config.access.roles import Action
from tipcflow_operators.airflow.internals import (
    DAGRunPatchBody,
    DBDagBag,
    GetUserDep,
    action_logging,
    create_session,
    patch_dag_run,
)
from tipcflow_pages.data.dag_run import find_dag_run, state_and_owner
from tipcflow_pages.web.access import may
from tipcflow_pages.web.render import HEADERS, root_of
from tipcflow_pages.web.trigger import same_origin

router = APIRouter()
EVENT = "tipcflow_stop"
_ENDED = ("failed", "success")


def can_stop(user: Any, owner: str) -> bool:
    """Whether a user may stop a run that `owner` has started ('' for no user)."""
    return may(user, Action.STOP) or (owner != "" and owner == user.get_name() and may(user, Action.STOP_OWN))


def _dag_run(request: Request, user: GetUserDep) -> tuple[str, str]:
    """A dependency: the DAG run of the path, if the user may stop it; 404, 403 or 409 otherwise."""
    path = request.path_params
    names = find_dag_run(path["run_id"]) if "run_id" in path else (path["dag_id"], path["dag_run_id"])
    state, owner = state_and_owner(*names) if names else ("", "")
    if not names or not state:
        raise HTTPException(404, "Airflow has no such run")
    if not can_stop(user, owner):
        raise HTTPException(403, f"stopping a run of {owner or 'Airflow'} requires the role operator")
    if state in _ENDED:
        raise HTTPException(409, "the run has ended")
    return names


DagRunDep = Annotated[tuple[str, str], Depends(_dag_run)]
# In this order: the audit log has no refused requests.
_CHECKS = [Depends(_dag_run), Depends(same_origin), Depends(action_logging(EVENT))]


@router.post("/api/dags/{dag_id}/dagRuns/{dag_run_id}/stop", dependencies=_CHECKS)
def stop_dag_run(names: DagRunDep, user: GetUserDep) -> dict[str, str]:
    """Stop a DAG run by its IDs in Airflow."""
    _stop(*names, user)
    return {"dag_id": names[0], "dag_run_id": names[1], "state": "failed"}


@router.post("/runs/{run_id}/stop", dependencies=_CHECKS)
def stop_run(request: Request, run_id: str, names: DagRunDep, user: GetUserDep) -> Response:
    """Stop a run, and send to its page."""
    _stop(*names, user)
    return RedirectResponse(f"{root_of(request)}/runs/{run_id}", status_code=303, headers=HEADERS)


def _stop(dag_id: str, dag_run_id: str, user: Any) -> None:
    with create_session() as session:
        patch_dag_run(
            dag_id=dag_id,
            dag_run_id=dag_run_id,
            patch_body=DAGRunPatchBody.model_validate({"state": "failed"}),
            session=session,
            dag_bag=DBDagBag(),
            user=user,
            update_mask=["state"],
        )
