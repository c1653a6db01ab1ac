"""Cells of a comparison."""

import csv
import io

from tipcflow.report.comparison.tables import as_csv


def test_csv_is_not_a_formula() -> None:
    text = as_csv(["step", "value"], [['=HYPERLINK("x")', -1.5], ["a,b\nc", ""]])
    assert list(csv.reader(io.StringIO(text))) == [
        ["step", "value"],
        ['\'=HYPERLINK("x")', "-1.5"],
        ["a,b\nc", ""],
    ]
