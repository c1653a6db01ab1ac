import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipcflow.cli.output.output import columns, print_json

CELL = st.text(alphabet="abc-_/", min_size=1, max_size=30)


@given(rows=st.lists(st.tuples(CELL, CELL, st.text("ab ", max_size=200)), max_size=5), width=st.integers(40, 200))
def test_all_but_the_prose_stays_whole_and_prose_stays_within_the_width(
    rows: list[tuple[str, str, str]], width: int
) -> None:
    text = "\n".join(columns(("A", "B", "C"), rows, width=width))
    for first, second, _ in rows:
        assert first in text
        assert second in text
    words = [word for _, _, prose in rows for word in prose.split() if len(word) <= 20]
    assert all(word in text for word in words)
    fixed = max([len(first) for first, _, _ in rows], default=1) + max([len(b) for _, b, _ in rows], default=1) + 2
    assert all(len(line) <= max(width, fixed) for line in text.splitlines())


def test_prose_wraps_or_is_cut() -> None:
    prose = "one two three four five six seven eight nine ten"
    assert columns(("ID", "WHY"), [("x-1", prose)], width=34) == [
        "ID   WHY",
        "x-1  one two three four five six",
        "     seven eight nine ten",
    ]
    assert columns(("ID", "WHY"), [("x-1", prose)], width=34, cut=True)[1:] == [
        "x-1  one two three four five six …"
    ]
    assert columns(("ID", "WHY"), [("x-1", prose)], width=None)[1:] == [f"x-1  {prose}"]
    assert columns(("ID", "N", "WHY"), [("x" * 30, "1", "because")], width=40) == [
        "ID".ljust(30) + "  N",
        "x" * 30 + "  1",
        "    because",
    ]


def test_json_is_strict(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": [math.nan, math.inf, -math.inf, 0.5], "b": ("ü", None)})
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"a": ["NaN", "Infinity", "-Infinity", 0.5], "b": ["ü", None]}
    assert "ü" in printed
