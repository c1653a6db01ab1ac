"""`tipcflow scaling run` with `launch: script`: a shell script of the suite starts the ranks of each node."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cluster.scaling.test_topologies import LIMIT_S
from tests.support.certify import TIPCFLOW, Site
from tests.support.samples.scripted import NAME, PARAMS, scripted_site

from devcluster.local_nodes.nodes import LocalNodes

pytestmark = [pytest.mark.cluster, pytest.mark.full, pytest.mark.timeout(LIMIT_S)]


@pytest.fixture
def site(make_nodes: Callable[..., LocalNodes], node_python: Path, tmp_path: Path) -> Site:
    """An installation with the sample suite, whose measured trainings are started by `run_nodes.sh`."""
    return scripted_site(tmp_path / "site", make_nodes(tmp_path / "nodes", python=node_python))


def test_script_is_called_on_each_node_and_measured(site: Site, tmp_path: Path) -> None:
    command = [str(TIPCFLOW), "scaling", "run", PARAMS, "--suite", NAME, "--cluster", "local", "--json"]
    command += ["--batch-size-per-device", "4", "--repeats", "2", "--skip", "2", "--take", "10"]
    command += ["-t", "1n1g", "-t", "2n2g", "--plot", str(tmp_path / "scaling.png")]
    done = subprocess.run(command, env=site.env, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    rows = result["models"]["mobilenet_v3_small"]
    assert {name: row["repeats"] for name, row in rows.items()} == {"1n1g": 2, "2n2g": 2}
    assert all(speed > 0 for row in rows.values() for speed in row["speeds"].values())
    assert (tmp_path / "scaling.png").read_bytes().startswith(b"\x89PNG")
    assert site.left_behind() == []
    runs = {entry["topology"]: site.home / "runs" / entry["run"] for entry in result["topologies"]}
    calls = sorted(
        line.removeprefix("arguments: mobilenet_v3_small 4 fp32 ")
        for log in runs["2n2g"].rglob("logs/main.log")
        for line in log.read_text().splitlines()
        if line.startswith("arguments: ")
    )
    addresses = " ".join(node.address for node in site.nodes.cluster.nodes)
    assert calls == [f"{addresses} 1", f"{addresses} 1", f"{addresses} 2", f"{addresses} 2"]
    for topology, run in runs.items():
        logs = sorted(run.rglob(f"logs/bz4/{topology}/*.log"))
        assert {log.name for log in logs} == {f"mobilenet_v3_small_b4_fp32_{repeat}.log" for repeat in (1, 2)}
    read = [
        str(TIPCFLOW),
        "scaling",
        str(runs["1n1g"]),
        "--batch-size-per-device",
        "4",
        "--skip",
        "2",
        "--take",
        "10",
    ]
    table = subprocess.run([*read, "--json"], env=site.env, capture_output=True, text=True, check=True)
    assert json.loads(table.stdout)["models"]["mobilenet_v3_small"]["1n1g"]["repeats"] == 2
