"""`tipcflow demo` with a real model: trained on two nodes, exported, run in eight legs and judged."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tipcflow.domain import Phase, Run, Status, StepKind
from tipcflow.report import verify
from tipcflow.store import Store

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [str(Path(sys.executable).with_name("tipcflow")), "demo"]
DEADLINE_S = 400.0


def home(folder: Path) -> Path:
    """A home that shares the nodes' environment with this clone, so that nothing is installed."""
    made = ROOT / ".tipcflow" / "envs"
    assert (made / "node-cpu" / ".tipcflow-complete").exists(), "make test makes the nodes' environment"
    folder.mkdir()
    (folder / "envs").symlink_to(made)
    return folder


def start(at: Path, *extra: str) -> "subprocess.Popen[str]":
    environment = os.environ | {"TIPCFLOW_HOME": str(at)}
    return subprocess.Popen(
        [*COMMAND, *extra], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def end(process: "subprocess.Popen[str]", at: Path) -> Run:
    """The run of a demo that passed."""
    try:
        output = process.communicate(timeout=DEADLINE_S)[0]
    finally:
        process.kill()
    assert process.returncode == 0, output
    assert output.strip().splitlines()[-1] == "pass"
    assert list((at / "nodes").iterdir()) == []
    with Store.open(f"sqlite:///{at / 'tipcflow.db'}") as store:
        assert store.leases.all() == []
        return store.runs.newest(limit=1)[0]


def test_demo_passes_with_known_results(tmp_path: Path) -> None:
    here = home(tmp_path / "here")
    assert_everything_is_known(end(start(here), here), here)


@pytest.mark.full
def test_two_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    here, there = home(tmp_path / "here"), home(tmp_path / "there")
    first = end(start(here, "--cli"), here)
    processes = [start(here, "--cli"), start(there, "--cli")]
    second, other = end(processes[0], here), end(processes[1], there)
    with Store.open(f"sqlite:///{here / 'tipcflow.db'}") as store:
        assert {run.id for run in store.runs.newest()} == {first.id, second.id}
        answers = {result.check: result for result in store.checks.results(second.id)}
    assert answers["loss.reproducible"].status is Status.PASS, answers["loss.reproducible"]
    assert first.id in answers["loss.reproducible"].reason
    assert "x the last run" in answers["speed.batch_cost"].reason
    with Store.open(f"sqlite:///{there / 'tipcflow.db'}") as store:
        assert [run.id for run in store.runs.newest()] == [other.id]


def assert_everything_is_known(run: Run, at: Path) -> None:
    """Steps, legs, measurements of every rank, node facts, certificate."""
    with Store.open(f"sqlite:///{at / 'tipcflow.db'}") as store:
        facts = store.history.facts(run.id)
        numbers = store.measurements.of(run.id)
        answers = {result.check: result.status for result in store.checks.results(run.id)}
    legs = sorted(status.value for status in facts.leg_status.values())
    assert legs == ["not_run"] * 4 + ["pass"] * 8
    train = next(step for step in facts.plan.steps if step.kind is StepKind.TRAIN)
    for metric in ("loss", "batch_cost", "reader_cost", "ips"):
        found = {(m.node, m.rank) for m in numbers if m.metric == metric and m.phase is Phase.TRAIN}
        assert found == {("a", 0), ("a", 1), ("b", 2), ("b", 3)}, metric
    peaks = {m.rank: m.value for m in numbers if m.metric == "peak_rss" and m.step == train.id and m.rank >= 0}
    assert set(peaks) == {0, 1, 2, 3}
    assert min(peaks.values()) > 100e6
    assert any(m.metric == "top1" and m.phase is Phase.EVAL for m in numbers)
    latencies = {m.leg for m in numbers if m.metric == "inference_time"}
    assert latencies == {key.leg for key, status in facts.leg_status.items() if status == "pass"}
    assert {fact.node for fact in facts.node_facts} == {"a", "b"}
    assert all(fact.framework_version and fact.framework_commit for fact in facts.node_facts)
    for check in ("ran.steps", "ran.world_size", "ran.engine", "loss.finite", "loss.falling", "parity.onednn"):
        assert answers[check] is Status.PASS, check
    assert answers["accuracy.final"] is Status.PASS
    certificate = json.loads((at / "runs" / run.id / "certificate.json").read_text())
    assert verify(certificate) == []
    # `make test` installs AutoLog if TIPCFLOW_WHEEL_URL has it.
    has_autolog = (at / "envs" / "node-cpu" / ".tipcflow-autolog").exists()
    assert certificate["reporter"] == ("auto_log 1.2.0" if has_autolog else "tipcflow-sample")
