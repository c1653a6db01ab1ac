"""Tables of numbers fit the terminal: a line for each row, with all of its last column."""

import pytest

from tipcflow.cli.output.narrow import fitting

HEADERS = ("METRIC", "N", "MIN", "MAX", "UNIT")
ROWS = [("ips", "10", "1.5", "2.5", "samples/s"), ("loss", "10", "0.5", "0.75", "")]


@pytest.mark.parametrize(
    ("width", "first"),
    [
        (None, "METRIC  N   MIN  MAX   UNIT"),
        (36, "METRIC  N   MIN  MAX   UNIT"),
        (32, "METRIC  N   MIN  MAX   UNIT"),
        (31, "METRIC  N   MAX   UNIT"),
        (26, "METRIC  N   UNIT"),
        (5, "METRIC  N   UNIT"),
    ],
)
def test_columns_are_left_out_until_the_table_fits(width: int | None, first: str) -> None:
    lines = fitting(HEADERS, ROWS, width=width, spare=("MIN", "MAX"))
    assert len(lines) == 3
    assert lines[0] == first
    assert lines[1].endswith("samples/s")
