"""Filters of the templates."""

import pytest

from tipcflow_pages.views.words import number


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.12345678, "0.123457"),
        (["a", 1.5], "a, 1.5"),
        ({"slower": 0, "of": 0, "factors": []}, "slower 0, of 0"),
        ({"a": {"slower": 1, "of": 3}, "b": {"slower": 0, "of": 3}}, "a (slower 1, of 3), b (slower 0, of 3)"),
        ({"rank": 2, "note": "", "where": None}, "rank 2"),
        ("text", "text"),
    ],
)
def test_evidence_reads_as_words(value: object, shown: str) -> None:
    assert number(value) == shown
