"""What machines read."""

from pathlib import Path

import pytest
import yaml
from fastapi.testclient import TestClient
from tests.support.certify import ROOT
from tests.support.framework.wheels import make_wheel, sha256_of
from tests.support.github.world import make_configs
from tests.support.stories import INFER, TRAIN, record_run

from tipcflow.store import Store

API = "/certification/api/runs"
BUILDS = "/certification/api/builds"
RELEASE = {"framework": "paddlepaddle==3.4.0"}


def test_api_returns_a_run(machine: TestClient, store: Store) -> None:
    run = record_run(store)
    report = machine.get(f"{API}/{run.id}").json()
    assert report["run"]["status"] == "pass"
    assert [(step["id"], step["status"]) for step in report["steps"]] == [(TRAIN, "pass"), (INFER, "pass")]
    assert [leg["id"] for leg in report["legs"]] == ["cpu_onednn_on", "cpu_onednn_off"]
    assert report["certificate"] is None
    assert report["verdict_markdown"].startswith("## pass: ")


def test_an_unknown_run_is_not_found(machine: TestClient, store: Store) -> None:
    response = machine.get(f"{API}/nothing")
    assert (response.status_code, response.json()) == (404, {"detail": "no such run: nothing"})


def test_api_lists_runs(machine: TestClient, store: Store) -> None:
    run = record_run(store)
    report = machine.get(API, params={"chain": run.chain, "limit": 5}).json()
    assert ([one["id"] for one in report["runs"]], report["total"]) == ([run.id], 1)
    assert machine.get(API, params={"chain": "other"}).json() == {"runs": [], "total": 0}


@pytest.fixture
def configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "configs"
    suite = ROOT / "tests" / "support" / "toy_suite"
    make_configs(folder, suite, ("train_infer_python", "other"), builds={"paddlepaddle": ["**/train*"]})
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(folder))
    return folder


def test_runs_of_a_release_are_listed(machine: TestClient, configs: Path) -> None:
    params = {"mode": "lite_train_lite_infer", "cluster": "local", "policy": "pr"}
    assert machine.get(BUILDS, params=RELEASE).json() == {
        "framework": "paddlepaddle 3.4.0",
        "runs": [{"chain": "toy/toy/train_infer_python", "repository": "o/r", **params}],
    }


def test_runs_of_a_wheel_are_listed(machine: TestClient, home: Path, configs: Path) -> None:
    wheel = make_wheel(home / "wheels", "paddlepaddle", "3.4.0")
    query = {"framework_wheel": wheel.name, "framework_sha256": sha256_of(wheel)}
    report = machine.get(BUILDS, params=query).json()
    assert report["framework"] == f"paddlepaddle 3.4.0 (wheel {sha256_of(wheel)[:12]})"
    assert len(report["runs"]) == 1
    wrong = machine.get(BUILDS, params={**query, "framework_sha256": "0" * 64})
    assert (wrong.status_code, "has another hash" in wrong.json()["detail"]) == (422, True)


def test_invalid_builds_are_refused(machine: TestClient, configs: Path) -> None:
    unknown = machine.get(BUILDS, params={"framework": "torch==2.0"})
    assert unknown.status_code == 422
    assert unknown.json()["detail"].endswith("found 'torch'; expected one of paddlepaddle")
    file = configs / "repositories" / "r.yaml"
    text = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump({**text, "builds": {"paddlepaddle": ["**/missing"]}}))
    assert "r.yaml:3: builds.paddlepaddle" in machine.get(BUILDS, params=RELEASE).json()["detail"]
    file.write_text(yaml.safe_dump({**text, "builds": {}}))
    assert "no repository declares" in machine.get(BUILDS, params=RELEASE).json()["detail"]
    assert machine.get(BUILDS).status_code == 422
