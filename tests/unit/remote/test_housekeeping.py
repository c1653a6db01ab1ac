import fcntl
import os
import subprocess
import time
from pathlib import Path

import pytest

from tipcflow.domain import Node
from tipcflow.remote.housekeeping import clean_cache, list_runs


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


def cleaned(node: Node) -> list[str]:
    command = clean_cache(node, days=30)
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True, timeout=30)
    assert done.stderr == ""
    return sorted(done.stdout.splitlines())


def entry(node: Node, name: str, *, days: float, size: int = 0) -> Path:
    """An entry of the cache that was last used some days ago."""
    path = Path(node.cache_folder) / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x" * size)
    for one in (path, path.parent):
        os.utime(one, (time.time() - days * 86400,) * 2)
    return path


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(name="a", address="127.0.0.1", python="/usr/bin/python3", workspace=str(tmp_path / "odd 'name"))


def test_cache_entries_unused_for_a_month_are_removed(node: Node) -> None:
    assert cleaned(node) == []
    files = {"builds": "complete", "wheels": "w.whl", "packages": "complete", "data": "manifest.json"}
    for kind, file in {**files, "downloads": "meta.json", "other": "x"}.items():
        entry(node, f"{kind}/old/{file}", days=40)
        used = entry(node, f"{kind}/used/{file}", days=40)
        os.utime(used)
    assert cleaned(node) == [f"{kind}/old" for kind in ("builds", "data", "downloads", "packages", "wheels")]
    assert cleaned(node) == []
    assert (Path(node.cache_folder) / "other" / "old").exists()


def test_an_entry_that_is_being_made_stays(node: Node) -> None:
    place = entry(node, "data/old/manifest.json", days=40).parent
    with Path(f"{place}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        assert cleaned(node) == []
    assert cleaned(node) == ["data/old"]


def test_large_cache_drops_the_least_recently_used_files(node: Node) -> None:
    for name, days in (("data/a", 20), ("packages/b", 10), ("downloads/c", 5), ("data/d", 1)):
        entry(node, f"{name}/file", days=days, size=1_000_000)
    assert cleaned(node) == []
    assert cleaned(node.model_copy(update={"cache_gb": 0.0025})) == ["data/a", "packages/b"]
    assert cleaned(node.model_copy(update={"cache_gb": 0.0001})) == ["downloads/c"]
