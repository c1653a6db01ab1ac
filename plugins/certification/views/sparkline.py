"""History strip of a chain; built in Python, because templates are slow for a thousand marks."""

from collections.abc import Iterable
from urllib.parse import quote

from markupsafe import Markup, escape

from certification.views.words import when, word
from tipcflow.store.queries.pages import Past


def strip(past: Iterable[Past], root: str) -> Markup:
    """Return one mark per run, oldest first, with status word and time as text for screen readers."""
    runs = f"{escape(root)}/runs"
    marks = [
        f'<a class="dot st-{word(one.status)}" href="{runs}/{quote(one.id, safe="", errors="replace")}"'
        f' title="{word(one.status)}, {when(one.created_at)} UTC"><span class="sr">{word(one.status)}</span></a>'
        for one in past
    ]
    return Markup(f'<span class="strip">{"".join(marks)}</span>')  # noqa: S704 - all parts are ours or quoted
