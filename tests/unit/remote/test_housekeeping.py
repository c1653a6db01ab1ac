import subprocess
from pathlib import Path

from tipcflow.domain import Node
from tipcflow.remote.housekeeping import list_runs


def listed(workspace: Path) -> list[str]:
    node = Node(name="a", address="127.0.0.1", python="/usr/bin/python3", workspace=str(workspace))
    done = subprocess.run(list_runs(node), shell=True, capture_output=True, text=True, check=True, timeout=30)
    assert done.stderr == ""
    return sorted(done.stdout.splitlines())


def test_folders_of_runs_and_jobs(tmp_path: Path) -> None:
    workspace = tmp_path / "odd $(touch x) 'name"
    assert listed(workspace) == []
    workspace.mkdir()
    assert listed(workspace) == []
    for name in ("runs/one", "runs/two", "jobs/two", "jobs/three", "suites/four"):
        (workspace / name).mkdir(parents=True)
    (workspace / "runs" / "file").write_text("")
    (workspace / "runs" / "link").symlink_to(workspace / "suites")
    assert listed(workspace) == ["one", "three", "two", "two"]
    assert not (tmp_path / "x").exists()
