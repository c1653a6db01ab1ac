"""Installations whose suite is a copy of a shipped sample suite, with its shipped configuration."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.certify import ROOT, Nodes, Site

from devcluster.install.environment import is_ready
from devcluster.local_nodes.nodes import LocalNodes, local_nodes

HOME = ROOT / ".tipcflow"


def needs_environment(kind: str, reason: str) -> pytest.MarkDecorator:
    """Skip without an environment of nodes; the reason is whole in its caller, for tests/support/skips.py."""
    return pytest.mark.skipif(not is_ready(HOME, kind), reason=reason)


def mark_tests_below(folder: Path, items: list[pytest.Item], *marks: pytest.MarkDecorator) -> None:
    """Mark the tests of a folder as tests of a sample suite: they take minutes, and need nodes."""
    for item in items:
        if folder in item.path.parents:
            for mark in (pytest.mark.cluster, pytest.mark.full, pytest.mark.timeout(900), *marks):
                item.add_marker(mark)


@contextmanager
def nodes_on_demand(folder: Path, python: Path) -> Iterator[Callable[[], LocalNodes]]:
    """Nodes a and b with an interpreter, started when a test needs them."""
    with ExitStack() as stack:
        made: list[LocalNodes] = []

        def nodes() -> LocalNodes:
            if not made:
                made.append(stack.enter_context(local_nodes(folder, python=python)))
            return made[0]

        yield nodes


def sample_site(folder: Path, nodes: Nodes, suite: str, *, sample: str = "", **settings: Any) -> Site:
    """Return an installation with the shipped suite file of that name and a copy of its sample suite.

    Args:
        sample: folder in examples/; '' for the suite's name.
        settings: keys of the suite file that differ; None removes a key.
    """
    made = Site(folder, nodes)
    shutil.rmtree(made.suite)
    ignored = shutil.ignore_patterns("output", "lite_data", "images", "pretrain_models*", "__pycache__")
    shutil.copytree(ROOT / "examples" / (sample or suite), made.suite, ignore=ignored)
    shutil.copytree(ROOT / "configs" / "dialects", made.configs / "dialects", dirs_exist_ok=True)
    shipped = yaml.safe_load((ROOT / "configs" / "suites" / f"{suite}.yaml").read_text())
    content = {**shipped, "folder": str(made.suite), **settings}
    kept = {key: value for key, value in content.items() if key not in settings or value is not None}
    (made.configs / "suites" / f"{suite}.yaml").write_text(yaml.safe_dump(kept))
    return made
