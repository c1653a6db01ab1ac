"""The wheel, installed into a fresh Airflow outside the clone, certifies the sample chain from one DAG file."""

import json
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tests.support.installed.wheel import build_wheel, install, stub

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(2400)]

ROOT = Path(__file__).resolve().parents[2]
DRIVER = ROOT / "tests" / "support" / "installed" / "existing_airflow.py"
NODE = ROOT / ".tipcflow" / "envs" / "node-cpu"
# An Airflow with its own settings: only what the driver needs to find its DAGs soon.
SETTINGS = "# Examples are not ours.\nAIRFLOW__CORE__LOAD_EXAMPLES=False\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder outside the clone with DAGs, configuration, sample suite and two environments."""
    folder = tmp_path_factory.mktemp("existing")
    assert not folder.is_relative_to(ROOT)
    wheel = build_wheel(folder / "wheel")
    install(folder / "base", [str(wheel)])
    install(folder / "airflow", ["apache-airflow", f"tipcflow[airflow] @ {wheel.as_uri()}"], compiled=True)
    shutil.copytree(ROOT / "configs", folder / "configs")
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "configs" / "airflow.env").write_text(SETTINGS)
    # A machine that runs other tests needs more than the 10 minutes of the policy `pr`.
    policy = (folder / "configs" / "policies" / "pr.yaml").read_text()
    for old, new in {"name: pr": "name: slow", "_minutes: 10\n": "_minutes: 30\n"}.items():
        assert old in policy
        policy = policy.replace(old, new)
    (folder / "configs" / "policies" / "slow.yaml").write_text(policy)
    (folder / "dags").mkdir()
    (folder / "dags" / "tipcflow.py").write_text(stub())
    return folder


def test_the_sample_chain_is_certified_with_one_dag_file(site: Path) -> None:
    assert (NODE / ".tipcflow-complete").exists(), "make test makes the nodes' environment"
    command = [site / "airflow/bin/python", "-P", DRIVER, site, NODE / "bin/python", site / "base/bin/tipcflow"]
    done = subprocess.run(command, cwd=site, stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["errors"] == {}
    assert {"certify", "confirm", "maintenance", "weekly"} < set(report["dags"])
    (run,) = report["runs"]
    assert (report["status"], report["exit_code"], run["reason"]) == ("pass", 0, run["reason"])
    checks = {check["check"]: check["status"] for check in run["checks"]}
    assert checks["ran.training"] == "pass", checks
    assert report["pages"] == {
        "": 200, "/runs/{run}": 200, "/api/runs/{run}": 200, "/assets/icon.svg": 200,
        "/assets/uPlot.iife.min.js": 200, "without login": 401,
    }  # fmt: skip
    suites = ET.parse(site / "junit.xml").getroot()
    assert int(suites.get("tests", "0")) > 0
    assert int(suites.get("failures", "1")) == 0
