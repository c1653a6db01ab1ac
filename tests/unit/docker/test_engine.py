"""The engine of tests/compose removes what a killed one left, and no engine that runs."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.compose.engine import remove_leftovers

pytestmark = [pytest.mark.process, pytest.mark.root]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The folder of an engine with a container's network namespace."""
    namespace = tmp_path / "tipc-compose-a" / "exec" / "netns" / "0123"
    namespace.parent.mkdir(parents=True)
    namespace.touch()
    subprocess.run(["mount", "--bind", "/proc/self/ns/net", namespace], check=True, timeout=20)
    yield tmp_path / "tipc-compose-a"
    subprocess.run(["umount", namespace], capture_output=True, check=False, timeout=20)


def test_namespaces_of_a_killed_engine_are_removed(folder: Path) -> None:
    killed = subprocess.Popen(["true"])
    killed.wait(20)
    (folder / "pid").write_text(str(killed.pid))
    remove_leftovers(folder.parent)
    assert not folder.exists()
    assert str(folder) not in Path("/proc/self/mounts").read_text()


def test_running_engine_is_kept(folder: Path) -> None:
    with subprocess.Popen(["bash", "-c", "exec -a dockerd sleep 60"]) as running:
        (folder / "pid").write_text(str(running.pid))
        while b"dockerd" not in Path(f"/proc/{running.pid}/cmdline").read_bytes():
            assert running.poll() is None
        remove_leftovers(folder.parent)
        running.kill()
    assert str(folder) in Path("/proc/self/mounts").read_text()


def test_engine_that_starts_is_kept(folder: Path) -> None:
    remove_leftovers(folder.parent)
    assert folder.exists()
