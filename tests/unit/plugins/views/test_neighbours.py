"""Files that a run's page reads."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from tipcflow.domain import LegKey, Status
from tipcflow_pages.data.files import run_files
from tipcflow_pages.views import neighbours


def test_a_page_with_many_failed_legs_reads_few_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"leg{number:02}" for number in range(60)]
    for name in names:
        log = tmp_path / "infer_cpu" / "a" / "logs" / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("" if name == "leg00" else f"{name}: ValueError: unknown operator\n")
    opened: list[Path] = []
    tail = neighbours.tail
    monkeypatch.setattr(neighbours, "tail", lambda path: opened.append(path) or tail(path))
    step = SimpleNamespace(id="infer_cpu", legs=[SimpleNamespace(id=name) for name in names])
    facts = SimpleNamespace(
        plan=SimpleNamespace(steps=[step]),
        step_status={"infer_cpu": Status.FAILED},
        leg_status={LegKey("infer_cpu", name): Status.FAILED for name in names},
    )
    data: Any = SimpleNamespace(facts=facts, last={})
    shown = neighbours._excerpts(data, tmp_path, run_files(tmp_path), Mock())
    assert [about for _, about, _, _ in shown] == ["leg01", "leg02", "leg03", "leg04"]
    assert len(opened) == 5
