"""Where the tab "Certification" of Airflow's pages of a DAG, a DAG run and a task leads to."""

from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import RedirectResponse

from tipcflow.domain import dag_id_of
from tipcflow.domain.run.names import DagId
from tipcflow_pages.data.dag_run import run_ids_of
from tipcflow_pages.data.data import StoreDep
from tipcflow_pages.web.render import HEADERS, root_of

router = APIRouter(prefix="/airflow")


@router.get("/dag")
def dag(request: Request, store: StoreDep, dag_id: str) -> RedirectResponse:
    """Send to the runs of a DAG's chain; to all runs, if the DAG is not one of a chain."""
    chains = [chain for chain in store.runs.chains() if dag_id_of(chain) == dag_id]
    if not chains and DagId.parse(dag_id).is_of_chain:
        raise HTTPException(404, f"no run of DAG {dag_id} yet")
    return _to(request, f"/runs?{urlencode({'chain': chains[0]})}" if chains else "/runs")


@router.get("/dag-run")
def dag_run(
    request: Request, store: StoreDep, dag_id: str, run_id: str, task: str = Query(default="")
) -> RedirectResponse:
    """Send to the page of a DAG run's run; with a task, to the run's steps."""
    possible = run_ids_of(dag_id, run_id)
    if not possible:
        raise HTTPException(404, f"DAG {dag_id} has no DAG run {run_id}")
    known = store.runs.known(possible)
    run = next((each for each in possible if each in known), None)
    if run is None:
        raise HTTPException(
            404, f"DAG run {run_id} of {dag_id} certifies no chain, or its task `resolve` has not stored a run yet"
        )
    return _to(request, f"/runs/{run}{'#steps' if task else ''}")


def _to(request: Request, path: str) -> RedirectResponse:
    return RedirectResponse(f"{root_of(request)}{path}", status_code=303, headers=HEADERS)
