"""Cells of a comparison."""

import csv
import io

import pytest

from tipcflow.report.comparison.tables import as_csv, percent


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (None, ""),
        (0.0, "0 %"),
        (0.3, "+30.0 %"),
        (-0.0123, "-1.2 %"),
        (0.0000123, "+0.001 %"),
        (4.0, "+400 %"),
    ],
)
def test_percent(change: float | None, text: str) -> None:
    assert percent(change) == text


def test_csv_is_no_formula() -> None:
    text = as_csv(["step", "value"], [['=HYPERLINK("x")', -1.5], ["a,b\nc", ""]])
    assert list(csv.reader(io.StringIO(text))) == [
        ["step", "value"],
        ['\'=HYPERLINK("x")', "-1.5"],
        ["a,b\nc", ""],
    ]
