"""Every lie and every prepared fault reaches the toy suite, and leaves valid Python: else it proves nothing."""

import os
import random
import re
import shutil
from pathlib import Path

import pytest
from tests.faults.catalogue import FAULTS
from tests.faults.fault import Fault
from tests.faults.world import World
from tests.support.certify import ROOT, Site
from tests.support.liars.lie import Lie
from tests.support.liars.table import LIES

pytestmark = pytest.mark.slow

# These prepare the node, the controller or Airflow, not the suite alone.
ON_NODES = frozenset(
    {"disk full", "runner file cut before", "disk full here", "queued run deleted", "queued run marked failed"}
    | {
        "login banner",
        "login script",
        "fake exit record",
        "exit record of another run",
        "rubbish in legs.jsonl",
        "no inodes",
        "read-only workspace",
    }
)


class Editor(Site):
    """The suite and policies of a user without nodes."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.suite = folder / "toy"
        self.configs = folder / "configs"
        shutil.copytree(ROOT / "tests" / "support" / "toy_suite", self.suite)
        shutil.copytree(ROOT / "configs" / "policies", self.configs / "policies")
        (self.configs / "suites").mkdir()


def _contents(site: Site) -> dict[Path, bytes]:
    """The suite's files, models among them, and the accuracy targets of its models."""
    files = [*site.suite.rglob("*"), *site.configs.glob("references/*")]
    return {path: path.read_bytes() for path in files if path.is_file() and path.suffix != ".pyc"}


def _compiles(site: Site) -> None:
    for path, content in _contents(site).items():
        if path.suffix == ".py":
            compile(content, str(path), "exec")


@pytest.mark.parametrize("lie", [pytest.param(lie, id=re.sub(r"\W+", "_", lie.name)) for lie in LIES])
def test_a_lie_changes_the_suite(lie: Lie, tmp_path: Path) -> None:
    site = Editor(tmp_path)
    before = _contents(site)
    lie.apply(site)
    assert _contents(site) != before
    _compiles(site)


@pytest.mark.parametrize(
    "fault", [pytest.param(one, id=re.sub(r"\W+", "_", one.name)) for one in FAULTS if one.name not in ON_NODES]
)
def test_a_fault_can_be_prepared(fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A fault may change the environment, which later tests of this process would inherit.
    monkeypatch.setattr(os, "environ", os.environ.copy())
    site = Editor(tmp_path)
    world = World(tmp_path, site, random.Random(1), target="b", rank=3, iteration=4)
    world.set_up()
    fault.prepare(world)
    _compiles(site)
