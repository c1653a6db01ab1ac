"""Progress and errors of the CLI as JSON lines."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tipcflow.cli.output.json_lines import has_json_lines
from tipcflow.cli.output.live import LiveDisplay
from tipcflow.domain import Status
from tipcflow.execute.progress import Event, Kind

RUN = "20261121t093005-toy-0a1b"
T0 = 1_790_000_000.0


def shown(events: list[Event], capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    with LiveDisplay() as display:
        for event in events:
            display.take(event)
    captured = capsys.readouterr()
    assert captured.out == ""
    return [json.loads(line) for line in captured.err.splitlines()]


def test_lines_of_a_run_have_run_step_and_node(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIPCFLOW_JSON_LOGS", "true")
    events = [
        Event(Kind.RUN, RUN, at=T0),
        Event(Kind.NOTE, "connecting to 2 nodes\nin Ω", at=T0 + 1),
        Event(Kind.STEP_STARTED, step="v/train", node="node-a,node-b", at=T0 + 2),
        Event(Kind.STATE, "running", step="v/train", node="node-a", at=T0 + 3),
        Event(Kind.STEP_ENDED, "no space left", step="v/train", status=Status.INFRA_FAILURE, at=T0 + 63),
        Event(Kind.CHECKS, "node-a: no space left", status=Status.INFRA_FAILURE, at=T0 + 64),
    ]
    of_run = {"level": "info", "tipcflow_run": RUN}
    bad = {"level": "warning", "tipcflow_run": RUN, "tipcflow_status": "infra_failure"}
    step = {"tipcflow_step": "v/train"}
    assert shown(events, capsys) == [
        {"timestamp": "2026-09-21T14:13:20.000Z", "event": f"run {RUN}", **of_run},
        {"timestamp": "2026-09-21T14:13:21.000Z", "event": "connecting to 2 nodes\nin Ω", **of_run},
        {
            "timestamp": "2026-09-21T14:13:22.000Z",
            "event": "v/train started on node-a, node-b",
            "tipcflow_node": "node-a,node-b",
            **of_run,
            **step,
        },
        {
            "timestamp": "2026-09-21T14:14:23.000Z",
            "event": "v/train: infra_failure after 1:01 (no space left)",
            **bad,
            **step,
        },
        {
            "timestamp": "2026-09-21T14:14:24.000Z",
            "event": f"run {RUN}: infra_failure (node-a: no space left)",
            **bad,
        },
    ]


def test_error_of_a_command_is_a_json_line(tmp_path: Path) -> None:
    environment = {**os.environ, "TIPCFLOW_JSON_LOGS": "1", "TIPCFLOW_DATABASE_URL": f"sqlite:///{tmp_path}/x.db"}
    command = [sys.executable, "-m", "tipcflow", "show", "no-such-run"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    (line,) = done.stderr.splitlines()
    found = json.loads(line)
    assert (found["level"], found["tipcflow_status"]) == ("error", "config_error")
    assert "no-such-run" in found["event"]
    assert done.returncode != 0


@pytest.mark.parametrize(("value", "expected"), [("", False), ("0", False), ("yes", True), ("maybe", False)])
def test_only_valid_values_switch_json_on(value: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIPCFLOW_JSON_LOGS", value)
    assert has_json_lines() is expected
