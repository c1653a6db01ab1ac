"""The files of a run with a secret in a log are removed, by the commands of docs/operations.md, on real nodes."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.support.certify import TIPCFLOW, Site
from tests.support.installed.operations_page import commands, shell

from devcluster.local_nodes.nodes import LocalNodes

pytestmark = pytest.mark.cluster


@pytest.fixture
def site(nodes: LocalNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """An installation with an object store."""
    (tmp_path / "shared").mkdir()
    monkeypatch.setenv("TIPCFLOW_STORE", f"file://{tmp_path}/shared")
    return Site(tmp_path, nodes)


def places(site: Site, run: str) -> list[Path]:
    """Folders with files of the run: here, in the object store, on the nodes."""
    homes = [site.home, site.home.parent / "shared", *(Path(node.workspace) for node in site.nodes.cluster.nodes)]
    folders = [home / kind / run for home in homes for kind in ("runs", "jobs")]
    return [path for path in folders if any(each.is_file() for each in path.rglob("*"))]


def test_files_of_a_leaked_log_are_removed_everywhere(site: Site, tmp_path: Path) -> None:
    done = site.run("--keep")
    assert done.code == 0, done.output
    run, env = done.run.id, {**site.env, "PATH": f"{TIPCFLOW.parent}:{os.environ['PATH']}"}
    before = places(site, run)
    assert len(before) == 6, before
    report, remove = (line.replace("RUN", run) for line in commands("A secret leaked", "tipcflow"))
    shell(report, env, cwd=tmp_path)
    assert places(site, run) == before
    printed = shell(remove, env, cwd=tmp_path)
    for node in site.nodes.cluster.nodes:
        assert f" in {node.workspace} of node {node.name} ({node.address})\n" in printed
    assert printed.count("removed: folders: ") == 2
    assert places(site, run) == []

    def certificate(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [TIPCFLOW, "certificate", *words, run]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)

    verified = certificate("verify")
    assert (verified.returncode, "has no certificate here" in verified.stderr) == (2, True), verified.stderr
    assert certificate("show").returncode == 0
