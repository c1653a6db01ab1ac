"""Page, JSON and CSV of a comparison of runs."""

import json
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import RedirectResponse, Response

from tipcflow.domain import ConfigError
from tipcflow.execute.comparison.load import compare_runs
from tipcflow.report.canonical import plain
from tipcflow.report.comparison.model import LEAST, MOST, Comparison
from tipcflow.report.comparison.tables import metrics_csv
from tipcflow_pages.data.data import SettingsDep, StoreDep
from tipcflow_pages.views.compare_view import CompareView
from tipcflow_pages.web.render import HEADERS, html, root_of

router = APIRouter()
Names = Annotated[list[str], Query()]


@router.get("/compare")
def compare(
    request: Request,
    store: StoreDep,
    chosen: SettingsDep,
    run: Names = [],  # noqa: B006 - FastAPI copies defaults
    every: bool = False,
    sort: Literal["", "started"] = "",
) -> Response:
    """Return the comparison of two or three runs; with fewer, the form to choose them.

    Args:
        sort: `started` puts the oldest run first: selected runs of a list come in the order of the list.
    """
    names = _chosen(run)
    if len(names) >= LEAST and sort:
        known = store.runs.known(names)
        names.sort(key=lambda name: known[name].created_at if name in known else 0.0)
        query = urlencode([("run", name) for name in names])
        return RedirectResponse(f"{root_of(request)}/compare?{query}", status_code=303, headers=HEADERS)
    if len(names) < LEAST:
        return html(request, "compare.html", title="Compare runs", view=None, names=names, most=MOST)
    compared = _compared(store, chosen, names)
    losses = [store.pages.lead_losses(own.run.id) for own in compared.runs]
    view = CompareView(compared, losses, every=every)
    return html(request, "compare.html", title="Compare runs", view=view, names=view.ids, most=MOST)


@router.get("/api/compare")
def compare_data(
    store: StoreDep,
    chosen: SettingsDep,
    run: Names,
    format: Literal["json", "csv"] = "json",  # noqa: A002 - the name in the URL
) -> Response:
    """Return the comparison as JSON, or its metrics as CSV."""
    compared = _compared(store, chosen, _chosen(run))
    if format == "csv":
        headers = {**HEADERS, "Content-Disposition": 'attachment; filename="compare.csv"'}
        return Response(metrics_csv(compared), media_type="text/csv; charset=utf-8", headers=headers)
    text = json.dumps(plain(compared.as_json()), allow_nan=False)
    return Response(text, media_type="application/json", headers=HEADERS)


def _chosen(names: list[str]) -> list[str]:
    """Return the names without the empty fields of the form."""
    return [name.strip() for name in names if name.strip()]


def _compared(store: StoreDep, chosen: SettingsDep, names: list[str]) -> Comparison:
    try:
        return compare_runs(store, names, config_dir=chosen.config_dir)
    except ConfigError as error:
        raise HTTPException(422, str(error)) from error
