"""Creation of the node environment: once, again after a change, and each failure is one clear line.

The index that cannot be reached is a real closed port.
"""

import os
import subprocess
from pathlib import Path

import pytest
from tests.support.programs import missing

from devcluster.install import environment
from devcluster.install.environment import is_ready, node_environment
from tipcflow.domain import InfraError
from tipcflow.install.uv import find_uv

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[4]


def no_lines(_line: str) -> None:
    pass


@pytest.fixture
def requirements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A requirements folder whose node environment needs nothing."""
    folder = tmp_path / "requirements"
    folder.mkdir()
    (folder / "node-cpu.txt").write_text("# nothing\n")
    monkeypatch.setattr(environment, "requirements_dir", lambda: folder)
    own = Path(os.environ.get("TIPCFLOW_HOME") or ROOT / ".tipcflow") / "uv" / "bin"
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{own}")
    if find_uv(tmp_path) is None:
        missing("uv is not installed (make install)")
    return folder


def test_environment_is_made_once(tmp_path: Path, requirements: Path) -> None:
    messages: list[str] = []
    python = node_environment(tmp_path, messages.append)
    assert (
        subprocess.run(
            [python, "-c", "import sys; sys.exit(sys.prefix == sys.base_prefix)"], check=False
        ).returncode
        == 0
    )
    assert messages
    messages.clear()
    assert node_environment(tmp_path, messages.append) == python
    assert messages == []


def test_environment_is_recreated_after_changed_requirements_or_an_interruption(
    tmp_path: Path, requirements: Path
) -> None:
    python = node_environment(tmp_path, no_lines)
    left = python.parent / "left-over"
    left.touch()
    (requirements / "node-cpu.txt").write_text("# nothing, said otherwise\n")
    assert not is_ready(tmp_path)
    node_environment(tmp_path, no_lines)
    assert not left.exists()
    (python.parents[1] / ".tipcflow-complete").unlink()
    assert not is_ready(tmp_path)
    node_environment(tmp_path, no_lines)
    assert is_ready(tmp_path)


def test_unreachable_index_is_reported(
    tmp_path: Path, requirements: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "tipcflow-no-such-package==1.0 --hash=sha256:" + "0" * 64
    (requirements / "node-cpu.txt").write_text(line)
    for name in ("UV_EXTRA_INDEX_URL", "UV_INDEX", "UV_INDEX_URL", "UV_FIND_LINKS", "UV_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(InfraError, match="node-cpu cannot be installed: the package index cannot be reached"):
        node_environment(tmp_path, no_lines)
    assert not is_ready(tmp_path)


def test_full_disk_is_reported_before_the_environment_is_created(
    tmp_path: Path, requirements: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "NEEDED_BYTES", 10**18)
    with pytest.raises(InfraError, match=r"needs 909494\.7 TiB, the disk has"):
        node_environment(tmp_path, no_lines)
    assert not (tmp_path / "envs" / "node-cpu").exists()


def test_a_python_without_a_paddle_wheel_is_replaced_or_reported(
    tmp_path: Path, requirements: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "_OLDEST", (3, 98))
    monkeypatch.setattr(environment, "_NEWEST", (3, 99))
    with pytest.raises(InfraError, match=r"Paddle has no wheel for Python 3\.\d+, and there is no other"):
        node_environment(tmp_path, no_lines)
