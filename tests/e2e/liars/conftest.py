"""Nodes for the liars, and an honest history that each of them starts from."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.certify import Site
from tests.support.liars.table import write
from tests.support.precedents import remember

from devcluster.local_nodes.nodes import LocalNodes, local_nodes

RUNS_BEFORE = 6


@pytest.fixture(scope="session")
def liar_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalNodes]:
    """Nodes a and b, shared by the tests of all lies."""
    with local_nodes(tmp_path_factory.mktemp("nodes"), python=Path(sys.executable)) as made:
        yield made


@pytest.fixture(scope="session")
def histories(liar_nodes: LocalNodes, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Policy -> the home of a user whose chain has accepted honest runs under that policy."""
    found: dict[str, Path] = {}
    for policy in ("pr", "weekly"):
        site = Site(tmp_path_factory.mktemp(policy), liar_nodes)
        honest = site.run(policy=policy)
        assert honest.code == 0, honest.output
        with site.store() as store:
            remember(store, honest.run, runs=RUNS_BEFORE)
        found[policy] = site.home
    return found


@pytest.fixture
def site(liar_nodes: LocalNodes, tmp_path: Path) -> Iterator[Site]:
    """A user with a suite of their own; nothing may be left on the nodes afterwards."""
    made = Site(tmp_path, liar_nodes)
    yield made
    left = made.left_behind() if made.home.is_dir() else []
    for node in liar_nodes.cluster.nodes:
        for process in liar_nodes.processes(node.name):
            liar_nodes.exec(node.name, ["kill", "-9", str(process.pid)])
    assert left == []


def adopt(site: Site, home: Path) -> None:
    """Give a user the history of another one."""
    site.home.mkdir(parents=True, exist_ok=True)
    for file in home.glob("tipcflow.db*"):
        shutil.copy2(file, site.home / file.name)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    write()
