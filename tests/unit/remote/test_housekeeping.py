import os
import subprocess
import time
from pathlib import Path

from tipcflow.domain import Node
from tipcflow.remote.housekeeping import list_runs, remove_builds


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


def test_unused_builds_are_removed(tmp_path: Path) -> None:
    node = Node(name="a", address="127.0.0.1", python="/usr/bin/python3", workspace=str(tmp_path / "odd 'name"))
    command = remove_builds(node, days=30)
    cache = Path(node.cache_folder)

    def removed() -> list[str]:
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True, timeout=30)
        assert done.stderr == ""
        return sorted(done.stdout.splitlines())

    assert removed() == []
    long_ago = time.time() - 40 * 86400
    for name in (
        "builds/old/complete",
        "builds/used/complete",
        "wheels/old/w.whl",
        "wheels/used/w.whl",
        "data/old/x",
    ):
        (cache / name).parent.mkdir(parents=True)
        (cache / name).touch()
        os.utime(cache / name, (long_ago, long_ago))
        os.utime((cache / name).parent, (long_ago, long_ago))
    for name in ("builds/used/complete", "wheels/used/w.whl"):
        os.utime(cache / name)
    assert removed() == ["builds/old", "wheels/old"]
    assert (cache / "data" / "old").exists()
    assert removed() == []
