"""`tipcflow scaling run`: the sample suite on 1 and 2 nodes with 1 and 2 processes each."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.certify import TIPCFLOW, Site
from tests.support.samples.site import sample_site

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain.run.scaling import ScalingDocument

pytestmark = [pytest.mark.cluster, pytest.mark.full]

PARAMS = "test_tipc/benchmark/mobilenet_v3_small/train_benchmark.txt"
SAMPLE, NAME = "mobilenet_v3_small", "mobilenet_v3_small_benchmark"
LIMIT_S = 900


@pytest.fixture
def site(make_nodes: Callable[..., LocalNodes], node_python: Path, tmp_path: Path) -> Site:
    """An installation with the sample suite, whose measured trainings have 12 iterations."""
    nodes = make_nodes(tmp_path / "nodes", python=node_python)
    made = sample_site(tmp_path / "site", nodes, NAME, sample=SAMPLE)
    params = made.suite / PARAMS
    params.write_text(params.read_text().replace("max-iters:150", "max-iters:12"))
    return made


def test_speed_is_measured_on_one_and_two_nodes(site: Site) -> None:
    command = [str(TIPCFLOW), "scaling", "run", PARAMS, "--suite", NAME, "--cluster", "local", "--json"]
    command += ["--global-batch-size", "8", "--repeats", "2", "--skip", "2", "--take", "10"]
    done = subprocess.run(command, env=site.env, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    rows = result["models"]["mobilenet_v3_small"]
    sizes = {name: row["batch_size_per_device"] for name, row in rows.items()}
    assert sizes == {"1n1g": 8, "1n2g": 4, "2n1g": 4, "2n2g": 2}
    for row in rows.values():
        assert row["repeats"] == len(row["speeds"]) == 2
        assert all(speed > 0 for speed in row["speeds"].values())
        assert row["speedup"] == pytest.approx(row["median_speed"] / rows["1n1g"]["median_speed"], abs=0.01)
        assert row["efficiency"] == pytest.approx(row["speedup"] / row["devices"], abs=0.005)
    entries = {entry["topology"]: entry for entry in result["topologies"]}
    not_run = {name: entry["reason"] for name, entry in entries.items() if entry["status"] == "not_run"}
    assert not_run == {
        "1n4g": "4 devices per node needed, node a has 2",
        "1n8g": "8 devices per node needed, node a has 2",
        "2n8g": "8 devices per node needed, node a has 2",
        "4n8g": "4 nodes needed, cluster local has 2",
    }
    with site.store() as store:
        last = entries["2n2g"]["run"]
        kept = store.documents.get(last, ScalingDocument)
        assert kept is not None
        assert [entry.model_dump(mode="json") for entry in kept.topologies] == result["topologies"]
        for entry in entries.values():
            if entry["run"]:
                world = {step.world_size for step in store.plans.get(entry["run"]).steps} - {0}
                assert world == {rows[entry["topology"]]["devices"]}
    assert site.left_behind() == []
    again = [
        str(TIPCFLOW),
        "scaling",
        last,
        "--batch-size-per-device",
        "4",
        "--skip",
        "2",
        "--take",
        "10",
        "--json",
    ]
    shown = subprocess.run(again, env=site.env, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    assert set(json.loads(shown.stdout)["models"]["mobilenet_v3_small"]) >= {"1n2g", "2n1g"}


def test_failed_training_has_no_speed(site: Site) -> None:
    params = site.suite / PARAMS
    params.write_text(params.read_text().replace("norm_train:train.py", "norm_train:train.py --inject=exit@8"))
    command = [str(TIPCFLOW), "scaling", "run", PARAMS, "--suite", NAME, "--cluster", "local", "-t", "1n1g"]
    command += ["--batch-size-per-device", "4", "--repeats", "1", "--skip", "2", "--take", "5"]
    done = subprocess.run(command, env=site.env, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 1, done.stderr
    assert "1n1g: failed: " in done.stdout
    assert "'1n1g'" not in done.stdout
