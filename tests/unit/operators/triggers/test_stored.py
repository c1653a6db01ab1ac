"""Triggers that Airflow stored before an upgrade are found after it."""

import sys
from pathlib import Path
from typing import Any

import pytest
from airflow._shared.module_loading import import_string
from airflow.triggers.base import BaseTrigger

from tipcflow.domain import Node

NODE = Node(name="a", address="192.0.2.1", python="/usr/bin/python3", workspace="/w").model_dump(mode="json")
# Class path and arguments as the triggerer reads them from Airflow's database; since 2026-11-22 the package is
# `tipcflow_operators`.
STORED: list[tuple[str, dict[str, Any]]] = [
    (
        "operators.triggers.JobTrigger",
        {
            "run": "r",
            "step": "train",
            "node": NODE,
            "job": "/w/jobs/r/train/3",
            "peers": [[NODE, "/w/jobs/r/train/3"]],
            "resume": {"": 17},
            "until": 4e9,
            "lost_after_s": 60.0,
        },
    ),
    (
        "operators.triggers.JobTrigger",
        {
            "run": "r",
            "step": "train",
            "node": NODE,
            "job": "/w/jobs/r/train/3",
            "peers": [[NODE, "/w/jobs/r/train/3"]],
            "resume": {"": 17},
            "until": 4e9,
            "lost_after_s": 60.0,
            "silence_s": 60.0,
            "peers_every_s": 240.0,
            "hung": "no progress: nothing new in log/workerlog.1 (rank 1) for 120 s",
            "attempt": 3,
        },
    ),
    (
        "operators.triggers.LeaseTrigger",
        {
            "run": "r",
            "slots": [["192.0.2.1", 0]],
            "since": 1.0,
            "until": 4e9,
            "owner": "o",
            "names": {"192.0.2.1": "a"},
            "said": "",
            "looked": True,
        },
    ),
    ("operators.triggers.StepTrigger", {"run": "r", "step": "train", "awaited": "prepare", "until": 4e9}),
    ("operators.triggers.dag_run.DagRunTrigger", {"dag_id": "d", "run_id": "r", "until": 4e9}),
]


PLUGINS = Path(__file__).parents[4] / "plugins"


@pytest.mark.parametrize("package", ["operators", "tipcflow_operators"])
@pytest.mark.parametrize(("path", "arguments"), STORED, ids=[path.rpartition(".")[2] for path, _ in STORED])
def test_a_stored_trigger_resumes(
    path: str, arguments: dict[str, Any], package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(PLUGINS)
    for name in [name for name in sys.modules if name.partition(".")[0] == "operators"]:
        monkeypatch.delitem(sys.modules, name)
    trigger = import_string(path.replace("operators", package, 1))(**arguments)
    assert isinstance(trigger, BaseTrigger)
    again, fields = trigger.serialize()
    assert import_string(again) is type(trigger)
    assert arguments.items() <= fields.items()
