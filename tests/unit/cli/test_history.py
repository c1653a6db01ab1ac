import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import T0, a_run, database_of, losses, record_run

from tipcflow.store import Store

CHAIN = a_run().chain
KINDS = ("gpu/8x-tesla-v100/1-nodes", "cpu/some-cpu-4/2-nodes", "gpu/8x-tesla-v100/1-nodes")


def three_days(store: Store) -> None:
    for number, environment in enumerate(KINDS):
        at = T0 + number * 86_400
        run = record_run(
            store, a_run(f"run-{number}", environment=environment, created_at=at, framework="paddle 3.3.1")
        )
        store.measurements.add(losses(run.id, [0.05, 0.06 + number], metric="batch_cost", unit="s"))


@pytest.fixture(autouse=True)
def report(database: Path) -> None:
    database.write_bytes(database_of(three_days))


def test_history_can_be_limited_to_one_kind_of_node(tipcflow: Callable[..., Any]) -> None:
    result = tipcflow("history", "mobilenet", "batch_cost", "--environment", "v100")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        "unit s, environment gpu/8x-tesla-v100/1-nodes, mode lite_train_lite_infer",
        "AT                    STATUS  N  MEDIAN  P10    P90    LOWEST  HIGHEST  FRAMEWORK     RUN",
        "2026-11-18 11:06 UTC  pass    2  0.055   0.051  0.059  0.05    0.06     paddle 3.3.1  run-0",
        "2026-11-20 11:06 UTC  pass    2  1.055   0.251  1.859  0.05    2.06     paddle 3.3.1  run-2",
    ]


@pytest.mark.parametrize("trigger", ["bisect", "confirm"])
def test_runs_of_bisections_and_confirm_runs_are_left_out(tipcflow: Callable[..., Any], trigger: str) -> None:
    with Store.open() as store:
        run = record_run(store, a_run("side", environment=KINDS[0], created_at=T0 + 9 * 86_400, trigger=trigger))
        store.measurements.add(losses(run.id, [7.0], metric="batch_cost", unit="s"))
    result = tipcflow("history", "mobilenet", "batch_cost", "--environment", "v100")
    assert [line.split()[-1] for line in result.out.splitlines()[2:]] == ["run-0", "run-2"]


def test_all_kinds_are_distinguished(tipcflow: Callable[..., Any]) -> None:
    result = tipcflow("history", CHAIN, "batch_cost")
    lines = result.out.splitlines()
    assert result.err.splitlines() == [
        "not compared with the newest run's environment, gpu/8x-tesla-v100/1-nodes:",
        "cpu/some-cpu-4/2-nodes: device cpu instead of gpu, hardware some-cpu-4 instead of 8x-tesla-v100, "
        "number of nodes 2 instead of 1",
    ]
    assert "ENVIRONMENT" in lines[1]
    assert [any(kind in line for kind in KINDS) for line in lines[2:]] == [True] * 3


def test_history_is_printed_as_json_and_csv(tipcflow: Callable[..., Any]) -> None:
    rows = json.loads(tipcflow("history", CHAIN, "loss", "--json").out)
    assert [(row["run"], row["median"], row["n"]) for row in rows] == [(f"run-{n}", 1.0, 3) for n in range(3)]
    found = list(csv.DictReader(io.StringIO(tipcflow("history", CHAIN, "loss", "--each", "--csv").out)))
    assert [(row["run"], row["rank"], row["median"]) for row in found] == [
        (f"run-{n}", "0", "1.0") for n in range(3)
    ]


def test_an_empty_history_is_reported(tipcflow: Callable[..., Any]) -> None:
    result = tipcflow("history", CHAIN, "los")
    assert (result.code, result.out) == (2, "")
    assert f"METRIC: step train of {CHAIN} has no such metric; found 'los'; expected one of " in result.err
    assert result.err.endswith("  hint: did you mean loss?\n")
    result = tipcflow("history", CHAIN, "batch_cost", "--environment", "a100")
    assert (result.code, result.out) == (2, "")
    assert f"no run of {CHAIN} has batch_cost in step train; found 'environment a100'" in result.err
    result = tipcflow("history", "resnet", "batch_cost")
    assert result.code == 2
    assert f"no run of a chain with this name; found 'resnet'; expected one of {CHAIN}" in result.err.replace(
        ":", ";"
    )


def test_two_forms_at_once_are_refused(tipcflow: Callable[..., Any]) -> None:
    result = tipcflow("history", CHAIN, "batch_cost", "--json", "--csv")
    assert (result.code, result.out) == (2, "")
    assert "give either --json or --csv" in result.err


def test_a_run_in_another_environment_names_the_excluded_runs(tipcflow: Callable[..., Any]) -> None:
    assert json.loads(tipcflow("show", "run-0", "--json").out)["environment_changes"] == ""
    result = json.loads(tipcflow("show", "run-2", "--json").out)["environment_changes"]
    assert result == (
        "device gpu instead of cpu, hardware 8x-tesla-v100 instead of some-cpu-4, number of nodes 1 instead of 2: "
        "not compared with run-1, the run before"
    )
    assert result in " ".join(tipcflow("show", "run-2").out.split())


def test_a_run_is_exported(tipcflow: Callable[..., Any], tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(tipcflow("export", "run-0").out)))
    assert [(row["metric"], row["value"]) for row in rows[:2]] == [("batch_cost", "0.05"), ("batch_cost", "0.06")]
    legs = list(csv.DictReader(io.StringIO(tipcflow("export", "run-0", "legs").out)))
    assert [(row["leg"], row["status"]) for row in legs] == [("cpu_onednn_off", "pass"), ("cpu_onednn_on", "pass")]
    result = tipcflow("export", "run-0", "-o", str(tmp_path / "x.csv"))
    assert (result.code, result.out) == (0, "")
    assert len((tmp_path / "x.csv").read_text().splitlines()) == len(rows) + 1
    assert tipcflow("export", "run-0", "-o", str(tmp_path / "nowhere" / "x.csv")).code == 2


def test_rollup_previews_then_executes_its_work(tipcflow: Callable[..., Any]) -> None:
    with Store.open() as store:
        store.measurements.add(losses("run-1", [1.0] * 20, metric="ips"))
    assert tipcflow("db", "rollup", "--older-than", "30").out == "0 raw samples in 0 series of 0 runs rolled up\n"
    with Store.open() as store:
        store.runs.finish("run-1", store.runs.get("run-1").status, "", 1_700_000_000.0)  # type: ignore[arg-type]
    result = tipcflow("db", "rollup", "--older-than", "30", "--dry-run").out
    assert result == "20 raw samples in 1 series of 1 runs would be rolled up\n"
    done = json.loads(tipcflow("db", "rollup", "--older-than", "30", "--json").out)
    assert done == {"runs": 1, "series": 1, "samples": 20, "dry_run": False}
    assert tipcflow("db", "rollup", "--older-than", "0").code == 2
