"""`tipcflow plan --budget`: predicted minutes from the database, and what is dropped."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tipcflow.domain import Plan, Run, Status
from tipcflow.store import Store

ROOT = Path(__file__).parents[4]
PARAMS = "test_tipc/configs/mobilenet_v3_small/train_linux_gpu_fleet_normal_infer_python_linux_gpu_cpu.txt"


@pytest.fixture
def plan(tipcflow: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.chdir(ROOT)
    return lambda *more: tipcflow("plan", PARAMS, "--suite", "mobilenet_v3_small", *more)


def test_without_history_every_step_is_unknown(plan: Callable[..., Any], home: Path) -> None:
    result = plan("--budget", "600", "--json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    steps = [step.id for step in Plan.model_validate_json(plan("--json").out).steps if not step.not_run]
    assert set(steps) <= set(found["unknown"])
    assert (found["runs"], found["unproven"]) == (True, [])


def test_past_runs_predict_and_a_short_budget_drops_legs(plan: Callable[..., Any], home: Path) -> None:
    made = Plan.model_validate_json(plan("--json").out)
    fields = {"id": "r", "chain": made.chain, "suite": made.suite, "model": made.model, "mode": made.mode}
    with Store.open() as store:
        store.runs.create(Run.model_validate({**fields, "cluster": "c", "created_at": 0.0}), made)
        for step in made.steps:
            attempt = store.attempts.open("r", step.id, step.nodes, 100.0)
            store.attempts.close("r", step.id, attempt, Status.PASS, "", (), 160.0)
        store.runs.finish("r", Status.PASS, "", 999.0)
    full = json.loads(plan("--budget", "600", "--json").out)
    assert not set(full["unknown"]) & {step.id for step in made.steps}
    assert full["node_s"] == pytest.approx(sum(step["node_s"] for step in full["steps"]))
    legs = [leg for step in full["steps"] for leg in step["legs"]]
    assert legs
    assert all(leg["node_s"] >= leg["planned_s"] > 0 for leg in legs)
    short = json.loads(plan("--budget", f"{full['full_s'] / 60 - 1:.2f}", "--json").out)
    assert short["dropped_legs"]
    assert short["predicted_s"] < full["full_s"]
    text = plan("--budget", f"{full['full_s'] / 60 - 1:.2f}")
    assert "dropped: leg " in text.out
    head, *rows = text.out.splitlines()
    assert head.split("  ")[0] == "STEP AND LEG"
    assert "NODE-MINUTES" in head
    assert all(any(row.startswith(f"  {leg['leg']}  ") for row in rows) for leg in legs)
    assert "node-minutes, budget" in text.out
    assert "does not run: the chain takes more than" in text.out
    none = plan("--budget", "0.5")
    assert "dropped: chain" in none.out


@pytest.mark.parametrize("wrong", ["0", "-1", "inf", "nan", "unknown"])
def test_a_wrong_budget_is_refused(plan: Callable[..., Any], home: Path, wrong: str) -> None:
    result = plan("--budget", wrong)
    assert result.code == 2
    assert "--budget" in result.err
