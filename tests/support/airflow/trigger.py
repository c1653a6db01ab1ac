"""What tests of `tipcflow trigger` share: chains, and runs as Airflow and the page report them."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.airflow.fake import FakeAirflow
from tests.support.expected.golden import assert_golden
from tests.support.stories import a_run

from tipcflow.domain import Status

GOLDEN = Path(__file__).parents[2] / "golden" / "cli"
CHAIN = "sample/mobilenet_v3_small/train_infer_python"
DAG = "sample.mobilenet_v3_small.train_infer_python"
OTHER = "sample.resnet50.train_infer_python"
COMMIT = "a" * 40
Tipcflow = Callable[..., Any]


def facts(status: str | None, reason: str = "", **more: Any) -> dict[str, Any]:
    run = a_run(status=status and Status(status), reason=reason, chain=CHAIN)
    return {
        "run": {**run.model_dump(mode="json"), "a_field_of_tomorrow": 1},
        "checks": [],
        "steps": [],
        "legs": [],
        **more,
    }


def passing() -> tuple[str, dict[str, Any]]:
    return "success", facts("pass", "5 checks passed")


def bad_day() -> dict[str, Any]:
    steps = [
        {"id": "prepare", "status": "pass", "seconds": 2.5, "nodes": ["node-a", "node-b"]},
        {"id": "norm_train/train", "status": "failed", "reason": "node-b: loss is nan", "seconds": 31.0},
        {"id": "norm_train/export", "status": None},
    ]
    legs = [{"step": "norm_train/infer_cpu", "id": "cpu_onednn_on", "status": "blocked", "reason": "no model"}]
    checks = [
        {"check": "ran.steps", "status": "failed", "reason": "train ended with 1", "step": "norm_train/train"},
        {"check": "speed.ips", "status": "regression", "reason": "70 of 100", "gating": False},
        {"check": "loss.finite", "status": "failed", "reason": "nan at iteration 7", "step": "norm_train/train"},
    ]
    verdict = "## failed: mobilenet_v3_small\n\ntraining diverged\n"
    return facts("failed", "training diverged", steps=steps, legs=legs, checks=checks, verdict_markdown=verdict)


def transcript(result: Any, airflow: FakeAirflow) -> str:
    text = f"exit code {result.code}\n--- stdout\n{result.out}--- stderr\n{result.err}".replace(
        airflow.url, "AIRFLOW"
    )
    return re.sub(r"(?m)^\d\d:\d\d:\d\d", "HH:MM:SS", text)


def golden(name: str, text: str) -> None:
    path = GOLDEN / name
    assert_golden(path, text)
