"""Two versions over all chains, pull requests, and the same as JSON and CSV."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import Response

from tipcflow.domain import ConfigError
from tipcflow.execute.overview.versions import load_versions
from tipcflow.report.overview.versions import KINDS, Versions
from tipcflow_pages.data.data import StoreDep
from tipcflow_pages.overviews.state import Format, PageLink, page_state, respond
from tipcflow_pages.web.render import html

router = APIRouter()
PER_PAGE, BUILDS = 50, 30


@router.get("/versions")
def versions(
    request: Request,
    store: StoreDep,
    new: str = "",
    base: str = "",
    suite: str = "",
    chain: str = "",
    kind: str = "",
    page: Annotated[int, Query(ge=1, le=100_000)] = 1,
) -> Response:
    """Return each chain on a version and its base, the newly broken ones first; by default on the newest build."""
    if kind and kind not in KINDS:
        raise HTTPException(422, f"kind: found {kind[:50]!r}, expected one of {', '.join(KINDS)}")
    builds = store.matrix.builds(BUILDS)
    chosen = new or (builds[0] if builds else "")
    overview = _load(store, chosen, base, suite, chain) if chosen else None
    pairs = [pair for pair in overview.pairs if kind in ("", pair.kind)] if overview else []
    pages = max(1, -(-len(pairs) // PER_PAGE))
    page = min(page, pages)
    state = page_state({"new": new, "base": base, "suite": suite, "chain": chain, "kind": kind})
    return html(
        request,
        "versions.html",
        title="Versions - Certification",
        overview=overview,
        pairs=pairs[(page - 1) * PER_PAGE : page * PER_PAGE],
        total=len(pairs),
        page=page,
        pages=pages,
        new=chosen,
        base=base,
        suite=suite,
        chain=chain,
        kind=kind,
        kinds=KINDS,
        builds=builds,
        suites=store.runs.suites(),
        query=urlencode({name: value for name, value in (state | {"new": chosen}).items() if name != "kind"}),
        link=PageLink("versions", state),
    )


@router.get("/api/versions", response_model=Versions)
def versions_facts(
    store: StoreDep,
    new: str,
    base: str = "",
    suite: str = "",
    chain: str = "",
    format: Format = "json",  # noqa: A002  # the name in the URL
) -> Response:
    """Return the facts of the page, with all chains; as CSV a row per chain, mode and environment class."""
    return respond(_load(store, new, base, suite, chain), format)


def _load(store: StoreDep, new: str, base: str, suite: str, chain: str) -> Versions:
    try:
        return load_versions(store, new, base, suite=suite, chain=chain)
    except ConfigError as error:
        raise HTTPException(404, str(error)) from error
