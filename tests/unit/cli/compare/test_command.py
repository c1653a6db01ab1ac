"""`tipcflow compare`: golden as a user sees it; the same numbers as JSON and CSV."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.precedents import put_run, weeks
from tests.support.stories import database_of

from tipcflow.cli.compare.page import page
from tipcflow.config.settings import settings
from tipcflow.domain import Status
from tipcflow.execute.comparison.load import compare_runs
from tipcflow.store import Store

GOLDEN = Path(__file__).parents[3] / "golden" / "cli"


def slower_run(store: Store) -> None:
    """Twelve accepted runs, and one that is slower, on another node and with another seed."""
    weeks(store, 12)
    put_run(store, 12, status=Status.REGRESSION, slower=1.3, nodes=("node-a", "node-c"), seed=1)


@pytest.fixture
def slower(database: Path) -> None:
    database.write_bytes(database_of(slower_run))


@pytest.mark.parametrize("width", [80, 200])
def test_compare_page_equals_the_golden_file(slower: None, width: int) -> None:
    with Store.open() as store:
        compared = compare_runs(store, ["run-11", "latest"], policy="weekly", config_dir=settings().config_dir)
    text = "\n".join(page(compared, width=width)) + "\n"
    assert text == (GOLDEN / f"compare-{width}.txt").read_text()


def test_compare_with_all_prints_every_section(slower: None, tipcflow: Callable[..., Any]) -> None:
    shown = tipcflow("compare", "run-11", "latest", "--all").out
    assert "suite content" not in shown
    assert "lite_train_lite_infer" in shown
    assert "ran.steps" in shown
    assert "--all" not in shown


def test_json_and_csv_have_the_same_numbers(slower: None, tipcflow: Callable[..., Any]) -> None:
    report = json.loads(tipcflow("compare", "run-00", "run-11", "run-12", "--json").out)
    assert [run["id"] for run in report["runs"]] == ["run-00", "run-11", "run-12"]
    rows = list(csv.DictReader(io.StringIO(tipcflow("compare", "run-00", "run-11", "run-12", "--csv").out)))
    assert [(row["step"], row["leg"], row["metric"]) for row in rows] == [
        (row["step"], row["leg"], row["metric"]) for row in report["metrics"]
    ]
    assert [float(row["change run-12"]) for row in rows] == [row["changes"][1] for row in report["metrics"]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run-00",), "number of runs; found '1'; expected 2 or 3"),
        (("run-00", "nothing"), "no such run"),
        (("run-00", "run-01", "--json", "--csv"), "give either --json or --csv"),
    ],
)
def test_invalid_input_is_an_error(
    slower: None, tipcflow: Callable[..., Any], arguments: tuple[str, ...], message: str
) -> None:
    shown = tipcflow("compare", *arguments)
    assert (shown.code, shown.out) == (2, "")
    assert message in shown.err


def test_show_names_the_command(slower: None, tipcflow: Callable[..., Any]) -> None:
    assert "tipcflow compare run-11 run-12\n" in tipcflow("show", "latest").out
    assert "tipcflow compare" not in tipcflow("show", "run-00").out
