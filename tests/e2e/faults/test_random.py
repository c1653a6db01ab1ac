"""Random faults of a new seed through a real Airflow with PostgreSQL (tests/faults)."""

import json
import secrets
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.certify import ROOT
from tests.support.faults.report import absent

from devcluster.local_nodes import namespaces

CASES = 4
# Random moments meet races: a verdict may carry another word. Everything else may not happen.
WORDS = frozenset({"wrong verdict", "wrong class", "node not named", "rank not named"})


@pytest.mark.e2e
@pytest.mark.full
@pytest.mark.timeout(1800)
def test_random_faults_end_in_allowed_outcomes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    seed = secrets.randbelow(10**6)
    command += ["--seed", str(seed)]
    # Printed while it runs: a run that is ended by its deadline shows its seed and its cases, too.
    with capsys.disabled():
        sys.stdout.write(f"\nrandom faults: seed {seed}\n")
        sys.stdout.flush()
        subprocess.run(command, cwd=ROOT, timeout=1700, check=False)
    rows = json.loads(details.read_text())["rows"]
    assert len(rows) == CASES, seed
    assert {kind for row in rows for kind in row["wrong"]} <= WORDS, (seed, rows)
