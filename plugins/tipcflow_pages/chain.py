"""Page, JSON and CSV of a chain's history."""

import json
from typing import Annotated, Literal

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import Response

from tipcflow.domain import ConfigError
from tipcflow.execute.chain.load import LAST, chain_history
from tipcflow.report.canonical import plain
from tipcflow.report.chain.history import ChainHistory
from tipcflow.report.chain.tables import values_csv
from tipcflow_pages.data.data import SettingsDep, StoreDep
from tipcflow_pages.views.chain_view import ChainView
from tipcflow_pages.web.render import HEADERS, html, root_of

router = APIRouter()
# A name contains slashes: the rest of the path is the name.
_PATH = "/chains/{chain:path}"
Last = Annotated[int, Query(ge=2, le=200)]


@router.get(_PATH)
def chain(
    request: Request,
    chain: str,
    store: StoreDep,
    chosen: SettingsDep,
    mode: str = "",
    environment: str | None = None,
    semantics: str = "",
    last: Last = LAST,
    every: bool = False,
) -> Response:
    """Return the metrics of a chain over its runs, as small charts."""
    history = _history(store, chosen, chain, mode, environment, semantics, last)
    view = ChainView(history, every=every, last=last, root=root_of(request))
    return html(request, "chain.html", title=chain, view=view)


@router.get(f"/api{_PATH}")
def chain_data(
    chain: str,
    store: StoreDep,
    chosen: SettingsDep,
    mode: str = "",
    environment: str | None = None,
    semantics: str = "",
    last: Last = LAST,
    every: bool = False,  # accepted, so that a page's query is valid here
    format: Literal["json", "csv"] = "json",  # noqa: A002 - the name in the URL
) -> Response:
    """Return the history of all evaluated metrics as JSON, or their values as CSV."""
    history = _history(store, chosen, chain, mode, environment, semantics, last)
    if format == "csv":
        headers = {**HEADERS, "Content-Disposition": 'attachment; filename="chain.csv"'}
        return Response(values_csv(history), media_type="text/csv; charset=utf-8", headers=headers)
    text = json.dumps(plain(history.as_json()), allow_nan=False)
    return Response(text, media_type="application/json", headers=HEADERS)


def _history(
    store: StoreDep, chosen: SettingsDep, chain: str, mode: str, environment: str | None, semantics: str, last: int
) -> ChainHistory:
    try:
        return chain_history(
            store,
            chain,
            config_dir=chosen.config_dir,
            mode=mode,
            environment=environment,
            compat=semantics,
            last=last,
        )
    except ConfigError as error:
        raise HTTPException(404, str(error)) from error
