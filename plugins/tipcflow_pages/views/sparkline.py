"""History strip of a chain; built in Python, because templates are slow for a thousand marks."""

from collections.abc import Iterable
from urllib.parse import quote

from markupsafe import Markup, escape

from tipcflow.domain.numbers.units import utc
from tipcflow.store.queries.pages import EarlierRun
from tipcflow_pages.views.words import word


def strip(past: Iterable[EarlierRun], root: str) -> Markup:
    """Return one mark per run, oldest first, with status word and time as text for screen readers.

    The marks are no tab stops: a page with 30 rows would have hundreds. Next to them, a link leads to the history
    of the chain.
    """
    runs = f"{escape(root)}/runs"
    marks = [
        f'<a class="dot st-{word(run.status)}" href="{runs}/{quote(run.id, safe="", errors="replace")}"'
        f' tabindex="-1" title="{word(run.status)}, {utc(run.created_at)} UTC">'
        f'<span class="sr">{word(run.status)}</span></a>'
        for run in past
    ]
    return Markup(f'<span class="strip">{"".join(marks)}</span>')  # noqa: S704 - all parts are ours or quoted
