"""The state of a page in its URL, and its facts as JSON and CSV."""

import json
from typing import Literal
from urllib.parse import urlencode

from fastapi.responses import Response

from tipcflow.report.canonical import plain
from tipcflow.report.overview.text import Overview, csv_of
from tipcflow_pages.web.render import HEADERS

Format = Literal["json", "csv"]


def page_state(filters: dict[str, str], **numbers: tuple[float, float]) -> dict[str, str]:
    """Return the state of a page as its URL has it, without defaults.

    Args:
        numbers: name -> (value, default).
    """
    chosen = {name: f"{value:g}" for name, (value, default) in numbers.items() if value != default}
    return {name: value for name, value in filters.items() if value} | chosen


class PageLink:
    """Makes URLs of a page with changed state."""

    def __init__(self, path: str, state: dict[str, str]) -> None:
        self._path, self._state = path, state

    def __call__(self, **changes: object) -> str:
        """Return the URL with changes, relative to the mount point of the app; '' removes a name."""
        chosen = {name: value for name, value in (self._state | changes).items() if value}
        return f"{self._path}?{urlencode(chosen)}" if chosen else self._path


def respond(overview: Overview, form: Format) -> Response:
    """Return the facts of a page as JSON or CSV."""
    if form == "csv":
        return Response(
            csv_of(overview).encode("utf-8", "backslashreplace"), media_type="text/csv", headers=HEADERS
        )
    return Response(json.dumps(plain(overview), allow_nan=False), media_type="application/json", headers=HEADERS)
