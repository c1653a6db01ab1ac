"""Random faults of a new seed through a real Airflow with PostgreSQL (tests/faults)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.certify import ROOT
from tests.support.faults.report import absent

from devcluster.local_nodes import namespaces

CASES = 4
# Random moments meet races: a verdict may carry another word. Everything else may not happen.
WORDS = frozenset({"wrong verdict", "node not named"})


@pytest.mark.e2e
@pytest.mark.full
@pytest.mark.timeout(1800)
def test_random_faults_through_airflow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if why := namespaces.unavailable():
        absent(f"random faults need namespaces: {why}")
    details = tmp_path / "cases.json"
    command = [
        sys.executable,
        "tests/faults/random.py",
        "--airflow",
        "--cases",
        str(CASES),
        "--json",
        str(details),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1700, check=False)
    with capsys.disabled():
        sys.stdout.write(f"\n{done.stdout}\n")
    rows = json.loads(details.read_text())["rows"]
    assert len(rows) == CASES, done.stderr
    assert {kind for row in rows for kind in row["wrong"]} <= WORDS, done.stdout
