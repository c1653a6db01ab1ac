"""The frameworks that an interpreter can import, found without importing them."""

import os
import sys
from pathlib import Path

import pytest

from devcluster.local_nodes.frameworks import frameworks_of


@pytest.mark.parametrize(
    ("modules", "found"),
    [
        (("paddle",), ("paddlepaddle",)),
        (("torch", "paddle"), ("paddlepaddle", "torch")),
        ((), None),
    ],
)
def test_modules_are_found_but_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modules: tuple[str, ...], found: tuple[str, ...] | None
) -> None:
    for name in modules:
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.setenv("PYTHONPATH", os.fspath(tmp_path))
    assert frameworks_of(Path(sys.executable)) == found


def test_an_interpreter_that_does_not_run_declares_nothing(tmp_path: Path) -> None:
    assert frameworks_of(tmp_path / "python") is None
    assert frameworks_of(Path("/bin/false")) is None
