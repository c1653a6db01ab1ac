"""The nodes' environment: a complete one is used as it is."""

from hashlib import sha256
from pathlib import Path

import pytest

from devcluster.install import environment
from tipcflow.install.uv import requirements_dir


@pytest.fixture
def complete(tmp_path: Path) -> Path:
    """A home with an environment that fits the requirements and has no AutoLog."""
    folder = tmp_path / "envs" / "node-cpu"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").write_text("")
    (folder / "bin" / "python").chmod(0o755)
    stamp = sha256((requirements_dir() / "node-cpu.txt").read_bytes()).hexdigest()
    (folder / ".tipcflow-complete").write_text(stamp)
    return tmp_path


def test_without_a_source_of_autolog_nothing_is_installed(complete: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even uv: a complete environment needs no network."""

    def refuse(*_: object) -> Path:
        raise AssertionError("uv is not needed")

    monkeypatch.setattr(environment, "require_uv", refuse)
    (complete / "wheels").mkdir()
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    for source in ("", str(complete / "wheels"), str(complete / "none")):
        monkeypatch.setenv("TIPCFLOW_WHEEL_URL", source)
        python = environment.node_environment(complete, lambda _: None)
        assert python == complete / "envs" / "node-cpu" / "bin" / "python"
    (complete / "wheels" / "auto_log-1.2.0-py3-none-any.whl").write_text("")
    monkeypatch.setenv("TIPCFLOW_WHEEL_URL", str(complete / "wheels"))
    with pytest.raises(AssertionError, match="uv is not needed"):
        environment.node_environment(complete, lambda _: None)
