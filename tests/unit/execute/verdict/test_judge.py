"""A stored run is judged and certified: the detector's limits are in the certificate, and `verify` passes."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import T0, open_store
from tests.support.two_nodes import NODES, stored

from tipcflow.check.baseline.detector_limits import gate_section
from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.domain import Run, Status
from tipcflow.execute.verdict import judge as judgement
from tipcflow.report import verify
from tipcflow.store import Store

pytestmark = pytest.mark.slow

JUDGED = {
    "reader_cost",
    "preprocess_time",
    "batch_cost",
    "ips",
    "inference_time",
    "peak_rss.rank0",
    "peak_rss.rank1",
    "loss",
}


def certified(store: Store, home: Path, weeks: int) -> tuple[Run, dict[str, Any]]:
    for week in range(weeks):
        run = stored(store, week, lambda _: 1.0, NODES)
        store.runs.finish(run, Status.PASS, "", T0 + week * 100 + 50)
    run = stored(store, weeks, lambda _: 1.0, NODES)
    result = judgement.judge_run(store, run, rules=Policy(name="mine"), references=References(suite="sample"))
    store.runs.finish(run, result.status, result.reason, T0 + weeks * 100 + 50)
    path = judgement.write_certificate(store, run, home)
    return store.runs.get(run), json.loads(path.read_text())


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with open_store(tmp_path / "tipcflow.db") as opened:
        yield opened


def test_the_gates_limits_are_certified(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judgement, "GATE_S", 60.0)  # a busy machine must not cut it
    run, made = certified(store, tmp_path, weeks=8)
    assert (run.status, verify(made)) == (Status.PASS, [])
    gate = made["gate"]
    assert (gate["policy"], gate["within_runs"], gate["cut"]) == ("mine", 12, "")
    assert {row["metric"] for row in gate["numbers"]} == JUDGED
    for row in gate["numbers"]:
        assert row["runs"] == 8
        assert row["smallest"] is not None
        assert row["false_per_year"] is not None
    assert gate["false_per_year"] >= 0
    assert gate["simulated_years"] >= 10 * len(gate["numbers"])


def test_a_lack_of_time_is_reported(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judgement, "GATE_S", 0.0)
    _, made = certified(store, tmp_path, weeks=8)
    assert made["gate"]["cut"].startswith("false-alert rate unknown for 8 of 8 metrics")
    assert verify(made) == []


def test_a_new_chain_is_certified_too(store: Store, tmp_path: Path) -> None:
    _, made = certified(store, tmp_path, weeks=1)
    assert {row["smallest"] for row in made["gate"]["numbers"]} == {None}
    assert verify(made) == []
    assert gate_section((), Policy(name="x"), within_s=1.0)["numbers"] == []
