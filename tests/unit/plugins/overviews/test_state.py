"""The state of a page in its URL."""

from tipcflow_pages.overviews.state import PageLink, page_state


def test_defaults_are_not_in_the_state() -> None:
    words = {"suite": "s", "chain": ""}
    assert page_state(words, days=(30, 30), columns=(5, 12)) == {"suite": "s", "columns": "5"}
    assert page_state({}, days=(0.5, 14)) == {"days": "0.5"}


def test_links_change_the_state() -> None:
    link = PageLink("matrix", {"suite": "a b", "by": "mode"})
    assert link() == "matrix?suite=a+b&by=mode"
    assert link(by="", page=2) == "matrix?suite=a+b&page=2"
    assert PageLink("matrix", {})() == "matrix"
