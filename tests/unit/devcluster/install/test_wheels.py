"""Wheels that the package index lacks: a missing one is one error that names it, before anything is installed."""

import os
import subprocess
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from tests.support.programs import missing

from devcluster.install import wheels
from devcluster.install.environment import check_environment
from devcluster.install.wheels import add_autolog, find_wheel, pinned, require_wheel, wheel_env
from tipcflow.domain import ConfigError, InfraError
from tipcflow.install.uv import find_uv

ROOT = Path(__file__).resolve().parents[4]
TORCH = ROOT / "requirements" / "node-torch.txt"


@pytest.fixture(autouse=True)
def no_source(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TIPCFLOW_WHEEL_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)


def test_pinned_versions_are_read_from_requirements() -> None:
    assert pinned(TORCH, "torch") == "2.13.0+cpu"
    assert pinned(ROOT / "requirements" / "node-autolog.txt", "auto-log") == "1.2.0"
    assert pinned(TORCH, "auto-log") == ""


def test_the_wheel_of_autolog_is_pinned_by_one_hash() -> None:
    text = (ROOT / "requirements" / "node-autolog.txt").read_text()
    block = text.partition("auto-log==1.2.0")[2].partition("    # via")[0]
    assert block.count("--hash=sha256:") == 1


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            None,
            "TIPCFLOW_WHEEL_URL: node-torch needs the wheel of torch 2.13.0+cpu, which the package index lacks",
        ),
        ("{tmp}/none", "found '{tmp}/none: no folder'"),
        ("{tmp}", "found '{tmp}: a folder without it'"),
    ],
)
def test_missing_wheel_is_an_error_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str | None, message: str
) -> None:
    (tmp_path / "torch-2.12.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl").touch()
    if source is not None:
        monkeypatch.setenv("TIPCFLOW_WHEEL_URL", source.format(tmp=tmp_path))
    with pytest.raises(ConfigError) as caught:
        check_environment(tmp_path / "home", "node-torch")
    assert message.format(tmp=tmp_path) in str(caught.value)
    assert "a folder, or a page with links, with the wheel of torch 2.13.0+cpu" in str(caught.value)


def test_existing_wheel_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tmp_path / "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl"
    wheel.touch()
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    require_wheel("node-torch", TORCH)
    assert find_wheel(str(tmp_path), "torch", "2.13.0+cpu") == wheel
    assert wheel_env()["UV_FIND_LINKS"] == str(tmp_path)
    monkeypatch.setenv("TIPCFLOW_WHEEL_URL", str(tmp_path / "none"))
    require_wheel("node-torch", TORCH)
    assert wheel_env()["UV_FIND_LINKS"] == str(tmp_path), "uv refuses a folder that does not exist"
    monkeypatch.setenv("TIPCFLOW_WHEEL_URL", "https://host.invalid/wheels")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "none"))
    require_wheel("node-torch", TORCH)
    assert wheel_env()["UV_FIND_LINKS"] == "https://host.invalid/wheels"


def test_environments_from_the_index_need_no_source(tmp_path: Path) -> None:
    check_environment(tmp_path / "home", "node-cpu")


def test_without_its_wheel_autolog_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "run_installer", lambda *_, **__: pytest.fail("nothing may be installed"))
    requirements = ROOT / "requirements" / "node-autolog.txt"
    assert not add_autolog(Path("uv"), Path("python"), requirements, lambda _: None)
    monkeypatch.setenv("TIPCFLOW_WHEEL_URL", str(tmp_path))
    assert not add_autolog(Path("uv"), Path("python"), requirements, lambda _: None)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path, Path]:
    """uv, the interpreter of an empty environment, and a wheel named like AutoLog's in the wheel source."""
    uv = find_uv(Path(os.environ.get("TIPCFLOW_HOME") or ROOT / ".tipcflow"))
    if uv is None:
        missing("uv is not installed (make install)")
    subprocess.run([uv, "venv", "--quiet", "--no-python-downloads", tmp_path / "env"], check=True)
    wheel = tmp_path / "wheels" / "auto_log-1.2.0-py3-none-any.whl"
    wheel.parent.mkdir()
    info = "auto_log-1.2.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("auto_log/__init__.py", "")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: auto_log\nVersion: 1.2.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("TIPCFLOW_WHEEL_URL", str(wheel.parent))
    monkeypatch.setenv("UV_OFFLINE", "1")
    return uv, tmp_path / "env" / "bin" / "python", wheel


@pytest.mark.process
def test_autolog_is_installed_by_hash(made: tuple[Path, Path, Path], tmp_path: Path) -> None:
    uv, python, wheel = made
    requirements = tmp_path / "node-autolog.txt"
    requirements.write_text(f"auto-log==1.2.0 --hash=sha256:{sha256(wheel.read_bytes()).hexdigest()}\n")
    messages: list[str] = []
    assert add_autolog(uv, python, requirements, messages.append)
    assert messages == ["AutoLog 1.2.0 installed: the sample suite uses it"]
    subprocess.run([python, "-c", "import auto_log"], check=True)


@pytest.mark.process
def test_another_wheel_of_that_name_is_refused(made: tuple[Path, Path, Path], tmp_path: Path) -> None:
    uv, python, _ = made
    requirements = tmp_path / "node-autolog.txt"
    requirements.write_text(f"auto-log==1.2.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(
        InfraError, match="AutoLog cannot be installed: a downloaded file is not the one whose hash"
    ):
        add_autolog(uv, python, requirements, lambda _: None)
