"""The benchmark of chains in Airflow on a Slurm of its own: a small one loses nothing, and its figures agree."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support import slurm as slurm_support
from tests.support.certify import ROOT
from tests.support.programs import missing, need

pytestmark = [pytest.mark.slurm, pytest.mark.full, pytest.mark.timeout(1300)]
CHAINS = 6
OPTIONS = ("--nodes", "4", f"--chains={CHAINS}", "--at-once", "5", "--seconds", "5", "--minutes", "15")
# The ports of the Slurm that the other tests share are in use, and the shared one sees processes of this one.
NAMESPACES = ["unshare", "--kill-child", "--pid", "--fork", "--mount-proc", "--mount", "--net"]
NETWORK = 'ip link set lo up && ip addr add 192.0.2.1/32 dev lo && exec "$@"'


def test_small_benchmark_loses_no_chain(tmp_path: Path) -> None:
    if problem := slurm_support.missing():
        missing(problem)
    need("redis-server", "redis")
    if subprocess.run([*NAMESPACES, "true"], capture_output=True, check=False).returncode:
        missing("namespaces are not permitted")
    script = str(ROOT / "benchmarks" / "scale" / "slurm.py")
    program = [sys.executable, script, *OPTIONS, "--end-minutes", "5", "--results", str(tmp_path)]
    command = [*NAMESPACES, "bash", "-c", NETWORK, "own", *program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("nothing was lost\n")
    found = json.loads((tmp_path / "scale-slurm.json").read_text())
    assert (found["started"], found["statuses"]) == (CHAINS, {"pass": CHAINS})
    assert found["allocations"] == {"1": CHAINS}
    assert 1 <= found["most_running"] <= 4
    for name in ("to_training_s", "training_s", "to_status_s"):
        assert 0 < found[name]["median"] <= found[name]["max"]
    assert found["training_s"]["median"] >= 5
