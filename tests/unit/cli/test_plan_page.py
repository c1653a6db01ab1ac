"""The table that is read before a run, and the minutes in it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tipcflow.domain import Plan, Run, Status
from tipcflow.store import Store

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "cli"
PARAMS = "test_tipc/configs/mobilenet_v3_small/train_linux_gpu_fleet_normal_infer_python_linux_gpu_cpu.txt"
MODE = "lite_train_lite_infer"
TRAIN = "norm_train_gpus_0,1_autocast_null_nodes_2/train"
Tipcflow = Callable[..., Any]


@pytest.fixture
def table(tipcflow: Tipcflow, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.chdir(ROOT)
    return lambda *more: tipcflow("plan", PARAMS, "--suite", "mobilenet_v3_small", *more)


@pytest.fixture
def planned(table: Callable[..., Any]) -> Plan:
    return Plan.model_validate_json(table("--json").out)


def remember(plan: Plan, minutes: float, name: str, status: Status = Status.PASS, **fields: Any) -> None:
    """A past run whose every step took so many minutes."""
    run = {
        "id": name,
        "chain": plan.chain,
        "suite": plan.suite,
        "model": plan.model,
        "mode": plan.mode,
        "cluster": "c",
        "created_at": 0.0,
    }
    with Store.open() as store:
        store.create_run(Run.model_validate(run | fields), plan)
        for step in plan.steps:
            attempt = store.open_attempt(name, step.id, step.nodes, 100.0)
            store.close_attempt(name, step.id, attempt, status, "", (), 100.0 + 60 * minutes)
        store.finish_run(name, status, "", 9999.0)


def golden(name: str, text: str) -> None:
    if os.environ.get("UPDATE_GOLDEN"):
        (GOLDEN / name).write_text(text)
    assert text == (GOLDEN / name).read_text()


def test_without_history_the_table_has_no_minutes(table: Callable[..., Any], home: Path) -> None:
    said = table("--format", "table")
    assert (said.code, said.err) == (0, "")
    golden("plan_table.txt", said.out)
    assert not list(home.rglob("*.db")), "planning must not make a database"


def test_with_history_every_step_has_its_median(table: Callable[..., Any], planned: Plan) -> None:
    for number, minutes in enumerate((1.0, 2.0, 30.0)):
        remember(planned, minutes, f"run-{number}")
    said = table("--format", "table")
    golden("plan_table_minutes.txt", said.out)
    assert "predicted 12.0 minutes, the median of 3 past runs" in said.out


def test_only_good_runs_of_the_same_mode_and_chain_count(table: Callable[..., Any], planned: Plan) -> None:
    remember(planned, 7.0, "failed", Status.FAILED)
    remember(planned, 7.0, "whole", mode="whole_train_whole_infer")
    remember(planned, 7.0, "other", chain="s/m/other")
    assert "MINUTES" not in table("--format", "table").out


def test_steps_that_the_past_did_not_have_are_told(table: Callable[..., Any], planned: Plan) -> None:
    remember(planned.model_copy(update={"steps": tuple(s for s in planned.steps if s.id == TRAIN)}), 3.0, "run")
    said = table("--format", "table")
    assert "predicted 3.0 minutes, the median of 1 past run; 5 of 6 steps have no history" in said.out


def test_a_database_that_cannot_be_read_is_no_obstacle(
    table: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir()
    (home / "tipcflow.db").write_bytes(b"this is no database" * 99)
    said = table("--format", "table")
    assert said.code == 0
    assert "no predicted minutes: " in said.err
    assert (home / "tipcflow.db").read_bytes() == b"this is no database" * 99


@pytest.mark.parametrize("missing", [[PARAMS], ["--suite", "mobilenet_v3_small"]])
def test_what_is_missing_is_told(tipcflow: Tipcflow, missing: list[str]) -> None:
    said = tipcflow("plan", *missing)
    assert (said.code, said.out) == (2, "")
    assert "is missing" in said.err
