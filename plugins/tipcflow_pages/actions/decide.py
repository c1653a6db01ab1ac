"""Forms for decisions about alerts, baselines and quarantines.

The api-server may only read the metrics database: a form starts the DAG that stores the decision.
"""

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import RedirectResponse, Response

from tipcflow.config.access.roles import DECISION_DAGS
from tipcflow.domain import ConfigError
from tipcflow.execute.decide.decisions import Decision, read_decision
from tipcflow_operators.airflow.internals import GetUserDep, action_logging
from tipcflow_pages.actions.decision_form import FORMS, Form
from tipcflow_pages.data.dag_run import dag_run_conf, dag_run_state
from tipcflow_pages.data.data import SettingsDep, StoreDep
from tipcflow_pages.web.access import may
from tipcflow_pages.web.render import HEADERS, html, root_of
from tipcflow_pages.web.texts import check_text
from tipcflow_pages.web.trigger import same_origin, trigger

router = APIRouter()
EVENT = "tipcflow_decide"
_LONGEST = 4000


def decisions_of(user: Any) -> dict[str, Form]:
    """Return the forms of the decisions that a user may make, by DAG."""
    return {dag_id: FORMS[dag_id] for dag_id, action in DECISION_DAGS.items() if may(user, action)}


def _form(dag_id: str) -> Form:
    """A dependency: the form of the path; 404 if there is none."""
    if dag_id not in FORMS:
        raise HTTPException(404, f"no such decision: {dag_id}")
    return FORMS[dag_id]


FormDep = Annotated[Form, Depends(_form)]


def _may_decide(dag_id: str, shown: FormDep, user: GetUserDep) -> None:
    """A dependency: 403 for a user who may not decide."""
    if not may(user, DECISION_DAGS[dag_id]):
        raise HTTPException(403, f"this decision requires the role {shown.role}")


async def _sent(request: Request, shown: FormDep) -> dict[str, str]:
    """A dependency: the values of the form's fields that were sent."""
    sent = await request.form()
    known = {field.name: sent.get(field.name) for field in shown.fields}
    texts = {name: value[:_LONGEST] for name, value in known.items() if isinstance(value, str)}
    for name, value in texts.items():
        check_text(name, value)
    return texts


@router.get("/decide/{dag_id}")
def form(request: Request, dag_id: str, shown: FormDep, user: GetUserDep) -> Response:
    """Return the form; the query has values of its fields."""
    values = {field.name: request.query_params.get(field.name, "") for field in shown.fields}
    return _page(request, user, dag_id, values)


@router.post(
    "/decide/{dag_id}", dependencies=[Depends(_may_decide), Depends(same_origin), Depends(action_logging(EVENT))]
)
def decide(
    request: Request,
    dag_id: str,
    user: GetUserDep,
    store: StoreDep,
    chosen: SettingsDep,
    sent: Annotated[dict[str, str], Depends(_sent)],
) -> Response:
    """Start the DAG, and send to a page about it; an invalid value is one message above the form."""
    try:
        decision = read_decision(dag_id, _values(sent))
        decision.check(store, chosen.config_dir)
    except ConfigError as error:
        return _page(request, user, dag_id, sent, problem=FORMS[dag_id].problem(error))
    started = trigger(request, user, dag_id, _conf(decision), note=f"Certification, by {user.get_name()}")
    where = f"{root_of(request)}/decide/{dag_id}/{quote(started, safe='')}"
    return RedirectResponse(where, status_code=303, headers=HEADERS)


@router.get("/decide/{dag_id}/{dag_run_id}")
def decided(request: Request, dag_id: str, dag_run_id: str, shown: FormDep) -> Response:
    """Return whether a decision is stored."""
    state = dag_run_state(dag_id, dag_run_id)
    if not state:
        raise HTTPException(404, f"Airflow has no run {dag_run_id} of the DAG {dag_id}")
    return html(
        request,
        "decided.html",
        title="Decision - Certification",
        form=shown,
        dag_id=dag_id,
        dag_run_id=dag_run_id,
        state=state,
        conf=dag_run_conf(dag_id, dag_run_id),
    )


def _values(sent: Mapping[str, str]) -> dict[str, object]:
    """Return the values of a form as a decision expects them."""
    values: dict[str, object] = dict(sent)
    if "metrics" in values:
        values["metrics"] = sent["metrics"].replace(",", " ").split()
    if values.get("state") == "":
        values["state"] = None
    return values


def _conf(decision: Decision) -> dict[str, Any]:
    return decision.model_dump(mode="json", exclude_defaults=True)


def _page(
    request: Request, user: GetUserDep, dag_id: str, values: Mapping[str, str], *, problem: str = ""
) -> Response:
    shown = FORMS[dag_id]
    return html(
        request,
        "decide.html",
        status=422 if problem else 200,
        title=f"{shown.button} - Certification",
        form=shown,
        dag_id=dag_id,
        values=values,
        problem=problem,
        allowed=may(user, DECISION_DAGS[dag_id]),
    )
