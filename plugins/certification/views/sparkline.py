"""The history strip of a chain. Made in Python: a list holds a thousand marks, and templates take their time."""

from collections.abc import Iterable
from urllib.parse import quote

from markupsafe import Markup, escape

from certification.views.words import when, word
from tipcflow.store.queries.pages import Past


def strip(past: Iterable[Past], root: str) -> Markup:
    """One mark per run, oldest first: its colour, and its word and time for whoever cannot see that."""
    runs = f"{escape(root)}/runs"
    marks = [
        f'<a class="dot st-{word(one.status)}" href="{runs}/{quote(one.id, safe="", errors="replace")}"'
        f' title="{word(one.status)}, {when(one.created_at)} UTC"><span class="sr">{word(one.status)}</span></a>'
        for one in past
    ]
    return Markup(f'<span class="strip">{"".join(marks)}</span>')  # noqa: S704 - all parts are ours or quoted
