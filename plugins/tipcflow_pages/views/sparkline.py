"""History strip of a chain; built in Python, because templates are slow for a thousand marks."""

from collections.abc import Iterable
from urllib.parse import quote

from markupsafe import Markup, escape

from tipcflow.report.text.units import utc
from tipcflow.store.queries.pages import EarlierRun
from tipcflow_pages.views.words import word


def strip(past: Iterable[EarlierRun], root: str) -> Markup:
    """Return one mark per run, oldest first, with status word and time as text for screen readers."""
    runs = f"{escape(root)}/runs"
    marks = [
        f'<a class="dot st-{word(run.status)}" href="{runs}/{quote(run.id, safe="", errors="replace")}"'
        f' title="{word(run.status)}, {utc(run.created_at)} UTC"><span class="sr">{word(run.status)}</span></a>'
        for run in past
    ]
    return Markup(f'<span class="strip">{"".join(marks)}</span>')  # noqa: S704 - all parts are ours or quoted
