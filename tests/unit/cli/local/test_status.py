"""`tipcflow status`: what is listed, what is reported as stale, and the exit code."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devcluster.keep.nodes import HEAD
from devcluster.keep.record import Record
from devcluster.local_nodes.processes import start_time
from tipcflow.cli.local.status import Service

Tipcflow = Callable[..., Any]


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No nodes of other users of this machine."""
    registry = tmp_path / "registry"
    registry.mkdir()
    monkeypatch.setattr("devcluster.local_nodes.state.registry", lambda: registry)


@pytest.fixture
def configs(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "configs"
    (folder / "clusters").mkdir(parents=True)
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(folder))
    return folder


def kept(home: Path, configs: Path, *, alive: bool = True, **fields: Any) -> Record:
    """The record of nodes whose sshd does not listen."""
    facts = {"nodes": {"a": ["127.0.0.1", 9]}, "cluster_file": str(configs / "clusters" / "local.yaml")}
    pid = os.getpid()
    made = Record("nodes", pid, start_time(pid) if alive else 1, 1000.0, facts=facts, **fields)
    made.save(home)
    return made


def services(tipcflow: Tipcflow, code: int) -> list[dict[str, Any]]:
    result = tipcflow("status", "--json")
    assert (result.code, result.err) == (code, "")
    found: list[dict[str, Any]] = json.loads(result.out)["services"]
    return found


def test_nothing_is_running(tipcflow: Tipcflow, home: Path, configs: Path) -> None:
    result = tipcflow("status")
    assert (result.code, result.out) == (0, f"nothing is running (TIPCFLOW_HOME is {home})\n")
    assert services(tipcflow, 0) == []


def test_nodes_that_start_are_healthy(tipcflow: Tipcflow, home: Path, configs: Path) -> None:
    kept(home, configs)
    (nodes,) = services(tipcflow, 0)
    assert (nodes["what"], nodes["condition"], nodes["where"]) == ("local nodes", "starting", "a 127.0.0.1:9")
    assert (nodes["since"], nodes["note"]) == (1000.0, f"process {os.getpid()}")


def test_sshd_that_does_not_respond_is_a_problem(tipcflow: Tipcflow, home: Path, configs: Path) -> None:
    kept(home, configs, ready=True)
    (nodes,) = services(tipcflow, 5)
    assert (nodes["condition"], nodes["note"]) == ("running", "problem: sshd of a does not respond")


def test_crashed_nodes_have_the_reason_and_the_remedy(tipcflow: Tipcflow, home: Path, configs: Path) -> None:
    kept(home, configs, ready=True, failed="node a ended")
    (nodes,) = services(tipcflow, 5)
    assert (nodes["condition"], nodes["note"]) == ("failed", "node a ended: `tipcflow local down`")


def test_killed_keeper_is_stale(tipcflow: Tipcflow, home: Path, configs: Path) -> None:
    kept(home, configs, alive=False, ready=True)
    (nodes,) = services(tipcflow, 5)
    assert nodes["condition"] == "stale"
    assert nodes["note"].endswith("was killed, or the machine was restarted: `tipcflow local down`")
    result = tipcflow("status")
    assert result.code == 5
    assert result.out.splitlines()[0].split() == ["WHAT", "IS", "SINCE", "(UTC)", "WHERE"]


def test_cluster_file_without_nodes_is_stale(tipcflow: Tipcflow, home: Path, configs: Path) -> None:
    file = configs / "clusters" / "local.yaml"
    file.write_text(f"{HEAD}name: local\n")
    (cluster,) = services(tipcflow, 5)
    assert (cluster["what"], cluster["condition"], cluster["where"]) == ("cluster local", "stale", str(file))
    file.write_text("name: local\n")
    assert services(tipcflow, 0) == [], "a user's own file"


@pytest.mark.parametrize(
    ("condition", "problem", "healthy"),
    [
        ("running", False, True),
        ("starting", False, True),
        ("running", True, False),
        ("failed", False, False),
        ("stale", False, False),
    ],
)
def test_service_is_healthy_if_nothing_has_to_be_done(condition: str, problem: bool, healthy: bool) -> None:
    service = Service(what="Airflow", condition=condition, where="", has_problem=problem)
    assert service.healthy is healthy
