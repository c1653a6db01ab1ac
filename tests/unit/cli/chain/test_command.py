"""`tipcflow chain`: golden as a user sees it; the same values as JSON and CSV."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.precedents import put_run, weeks
from tests.support.stories import database_of

from tipcflow.domain import Status
from tipcflow.store import Store

GOLDEN = Path(__file__).parents[3] / "golden" / "cli"


def slower_run(store: Store) -> None:
    weeks(store, 9)
    put_run(store, 9, status=Status.REGRESSION, slower=1.7)


@pytest.fixture
def runs(database: Path) -> None:
    database.write_bytes(database_of(slower_run))


def test_chain_page_equals_the_golden_file(runs: None, tipcflow: Callable[..., Any]) -> None:
    assert tipcflow("chain", "mobilenet").out == (GOLDEN / "chain.txt").read_text()


def test_json_and_csv_have_the_same_values(runs: None, tipcflow: Callable[..., Any]) -> None:
    report = json.loads(tipcflow("chain", "mobilenet", "--json").out)
    rows = list(csv.DictReader(io.StringIO(tipcflow("chain", "mobilenet", "--csv").out)))
    (speed,) = [row for row in report["metrics"] if row["metric"] == "batch_cost"]
    assert [float(row["value"]) for row in rows if row["metric"] == "batch_cost"] == speed["values"]
    assert (speed["verdict"], len(speed["values"])) == ("worse", 10)
    assert [run["id"] for run in report["runs"]] == [f"run-0{week}" for week in range(10)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing",), "no run of a chain with this name"),
        (("mobilenet", "--mode", "x"), "no run of the chain in this mode and environment class"),
        (("mobilenet", "--json", "--csv"), "give either --json or --csv"),
    ],
)
def test_invalid_input_is_an_error(
    runs: None, tipcflow: Callable[..., Any], arguments: tuple[str, ...], message: str
) -> None:
    shown = tipcflow("chain", *arguments)
    assert (shown.code, shown.out) == (2, "")
    assert message in shown.err
