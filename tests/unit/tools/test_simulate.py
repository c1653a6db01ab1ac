"""The simulation of a site: a small one runs to its end, and its figures agree with each other."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
OPTIONS = ("--nodes", "5", "--chains", "6", "--at-once", "4", "--pulls", "3", "--manual", "2", "--hours", "0.5")


@pytest.mark.slow
def test_small_site_is_simulated_to_its_end(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks/scale/simulate.py"), *OPTIONS, "--mtbf-days", "0.2"]
    more = ["--database", "sqlite", "--full-every", "3", "--results", str(tmp_path)]
    done = subprocess.run([*command, *more], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "scale-sqlite.json").read_text())
    runs = sum(found["runs"].values())
    assert found["runs"]["weekly"] == 6
    assert found["problems"] == 0
    assert sum(found["statuses"].values()) == runs
    assert set(found["statuses"]) <= {"pass", "infra_failure"}
    assert found["calls"]["release"]["calls"] == runs
    assert found["calls"]["judge"]["calls"] > 0
    assert found["throughput"]["ratio"] > 0.97  # a run on a failing node ends after the failure
    assert found["growth"]["bytes_per_run"] > 0
