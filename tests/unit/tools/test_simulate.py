"""The simulation of a site: a small one runs to its end, its figures agree, and its detectors find defects."""

import argparse
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "benchmarks" / "scale"
OPTIONS = ("--nodes", "5", "--chains", "6", "--at-once", "4", "--pulls", "3", "--manual", "2", "--hours", "0.5")
# One node for three weekly chains and more pull requests than it can run: they wait for hours.
CROWDED = ("--nodes", "1", "--chains", "3", "--at-once", "3", "--pulls", "4", "--manual", "0", "--hours", "3")
# The simulation with a defect in the leases, which its schedulers inherit.
WITH_DEFECT = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import simulate
from tipcflow.store.leases import leases, queue
exec(sys.argv.pop(1))
sys.exit(simulate.main())
"""


@pytest.mark.slow
def test_small_site_is_simulated_to_its_end(tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / "simulate.py"), *OPTIONS, "--mtbf-days", "0.2"]
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("defect", "problem"),
    [
        pytest.param("", "", id="none"),
        pytest.param("leases.before = queue.before = lambda *_: []", "has overtaken", id="no-order"),
        pytest.param("leases.leases_on = queue.leases_on = lambda *_: []", "was granted to", id="no-leases"),
    ],
)
def test_crowded_site_has_only_problems_of_the_defect(tmp_path: Path, defect: str, problem: str) -> None:
    command = [sys.executable, "-c", WITH_DEFECT, str(FOLDER), defect, *CROWDED, "--schedulers", "1"]
    more = ["--mtbf-days", "1000", "--database", "sqlite", "--full-every", "1000", "--results", str(tmp_path)]
    done = subprocess.run([*command, *more], capture_output=True, text=True, timeout=240, check=False)
    found = [line for line in done.stdout.splitlines() if line.startswith("problem: ")]
    assert done.returncode == bool(problem), done.stdout + done.stderr
    assert bool(found) == bool(problem)
    assert all(problem in line for line in found)


@pytest.fixture
def simulate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The script, which imports its neighbors by their plain names."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module("simulate")
    for name in set(sys.modules) - before:
        if FOLDER in Path(getattr(sys.modules[name], "__file__", None) or "/").parents:
            del sys.modules[name]


@pytest.mark.parametrize(
    ("later", "taken", "bypassed"),
    [
        pytest.param(4000.0, (), {"old"}, id="free-node"),
        pytest.param(3000.0, (), set(), id="within-an-hour"),
        pytest.param(4000.0, (("b", 1),), set(), id="node-partly-in-use"),
    ],
)
def test_waiting_run_is_bypassed_on_a_usable_node(
    simulate: Any, later: float, taken: tuple[tuple[str, int], ...], bypassed: set[str]
) -> None:
    site = simulate.Site(argparse.Namespace(nodes=2, chains=0, seed=1))

    def apply(at: float, run: str, kind: str, *outcome: object) -> None:
        site.runs.setdefault(run, simulate.Timeline(simulate.Wanted(run, 0, "github", 60.0), at))
        site.apply(simulate.Outcome(simulate.Event(at, "poll", run), kind, *outcome))

    apply(0.0, "busy", "granted", (("a", 0), ("a", 1)))
    apply(0.0, "other", "granted", taken)
    apply(1.0, "old", "waiting", (("a", 0), ("a", 1)), ("a", "b"))
    apply(later, "new", "granted", (("b", 0),))
    assert site.bypassed == bypassed
    assert site.problems == []
