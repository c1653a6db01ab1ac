"""Logs that are made of rubbish are read in time that grows with their size, not with its square."""

import time
from collections.abc import Callable

import pytest

from tipcflow.parse import parse_inference
from tipcflow.parse.bulk.summary import summarize_log
from tipcflow.parse.reports.results import parse_result

pytestmark = pytest.mark.slow

LONG = 19_500


def seconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


@pytest.mark.parametrize("unit", [b"\n", b"\r\n", b" \n"])
def test_floods_of_empty_lines(unit: bytes) -> None:
    """100,000 blank lines before a report: the pattern of its signature took time by their square (9 s)."""
    data = unit * 100_000 + b"reporter: me\n"
    assert seconds(lambda: parse_inference(data)) < 4
    assert seconds(lambda: summarize_log([data])) < 4


@pytest.mark.parametrize(
    "head", [b"a", b'"a": 1', b"[2022/03/22 06:15:51] root INFO: a", b"engine: a=b", b"reporter: a"]
)
@pytest.mark.parametrize("unit", [b" ", b"\t", b"\r", b"a ", b"0", b"[", b"\x1b["])
def test_floods_within_a_line(head: bytes, unit: bytes) -> None:
    """Three lines; those of AutoLog took 1 s each."""
    report = b"[2022/03/22 06:15:51] root INFO: ----------- Perf info -----------\n"
    data = report + (head + unit * (LONG // len(unit)) + b"x\n") * 3
    assert seconds(lambda: parse_inference(data)) < 0.5
    assert seconds(lambda: summarize_log([data])) < 0.5


def test_a_progress_bar_can_have_many_states() -> None:
    data = b"".join(b"\r%7d/1000000 [==>...]" % at for at in range(200_000)) + b"\n"
    assert seconds(lambda: summarize_log([data[at : at + 4096] for at in range(0, len(data), 4096)])) < 4


def test_a_result_line_can_have_many_blanks() -> None:
    line = "Run failed with command - " + " " * LONG + "x"
    assert seconds(lambda: parse_result(line)) < 0.5
    found = parse_result("  [33m Run failed with command - a - b !  ! [0m ")
    assert found is not None
    assert found.command == "a - b !"
