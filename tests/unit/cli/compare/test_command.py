"""`tipcflow compare`: golden as a user sees it; the same numbers as JSON and CSV."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.precedents import put_run, weeks
from tests.support.stories import TRAIN, database_of

from tipcflow.cli.compare.page import page
from tipcflow.config.run_documents import SuiteDocument
from tipcflow.config.settings import settings
from tipcflow.config.suite import Prints, Suite
from tipcflow.domain import Measurement, Phase, Status
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


def test_values_have_the_units_of_the_logs(database: Path, tipcflow: Callable[..., Any]) -> None:
    with Store.open() as store:
        for number, unit, accuracy in ((0, "", 0.91667), (1, "%", 91.667)):
            run = put_run(store, number)
            step = {"run": run.id, "step": TRAIN, "node": "node-b", "rank": 0}
            store.measurements.add(
                [
                    Measurement(**step, metric="ips", phase=Phase.TRAIN, value=40.0, unit="images/s"),
                    Measurement(**step, metric="acc", phase=Phase.EVAL, value=accuracy, unit=unit),
                ]
            )
    shown = tipcflow("compare", "run-00", "run-01", "--all").out
    assert re.search(r"^40 images/s +40 images/s +", shown, re.MULTILINE)
    assert re.search(r"^0\.91667 +91\.667 % +", shown, re.MULTILINE)
    assert "\nUnits of eval.acc differ between the runs: none, %.\n" in shown


@pytest.mark.parametrize("accuracy", ["%", "1"])
def test_accuracies_have_the_unit_that_the_suite_file_declares(database: Path, accuracy: str) -> None:
    suite = Suite(name="s", folder="s", dialects=("models/template",), prints=Prints(accuracy=accuracy))
    with Store.open() as store:
        for number in (0, 1):
            store.documents.put(put_run(store, number).id, SuiteDocument(suite))
        compared = compare_runs(store, ["run-00", "run-01"], config_dir=settings().config_dir)
    unit = "%" if accuracy == "%" else ""
    assert next(row.units for row in compared.metrics if row.metric == "eval.top1") == (unit, unit)


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
