"""Installers that fail: each failure is one clear line."""

import subprocess
from pathlib import Path

import pytest

from tipcflow.domain import InfraError
from tipcflow.install import installer, uv
from tipcflow.install.installer import explain, run_installer

pytestmark = pytest.mark.process

HOME = Path("/home/me/.tipcflow")


def no_lines(_line: str) -> None:
    pass


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (
            "error: Failed to install: x.whl\n  Caused by: No space left on device (os error 28)",
            "Paddle cannot be installed: the disk is full\n"
            "  hint: free some disk space below /home/me/.tipcflow, "
            "or set TIPCFLOW_HOME to a folder on another disk",
        ),
        (
            "error: Request failed after 3 retries\n  Caused by: dns error: failed to lookup address",
            "Paddle cannot be installed: the package index cannot be reached\n"
            "  hint: check the network, a proxy (HTTPS_PROXY) or your index (UV_DEFAULT_INDEX, PIP_INDEX_URL)",
        ),
        (
            "hint: You require CPython 3.14 (`cp314`), but we only found wheels with: `cp313`\n"
            "paddlepaddle==3.3.1 has no wheels with a matching Python ABI tag",
            "Paddle cannot be installed: a pinned package does not exist for this Python\n"
            "  hint: use Python 3.11, 3.12 or 3.13",
        ),
        (
            "error: Hash mismatch for `auto-log==1.2.0`\n\nhash mismatch",
            "Paddle cannot be installed: a downloaded file is not the one whose hash is recorded\n"
            "  hint: retry; if it persists, do not install: the package index or a proxy changes files",
        ),
        ("a\nb\nc\nd\n", "Paddle cannot be installed: b / c / d"),
        ("", "Paddle cannot be installed: no message"),
    ],
)
def test_failures_are_explained(output: str, message: str) -> None:
    assert str(explain(output, what="Paddle", folder=HOME)) == message


def test_lines_of_an_installer_are_reported_in_order() -> None:
    messages: list[str] = []
    run_installer(["sh", "-c", "echo one; echo two >&2"], what="it", folder=HOME, report=messages.append)
    assert messages == ["one", "two"]


def test_missing_installer_is_an_infra_failure() -> None:
    with pytest.raises(InfraError, match="no-such-tool is not installed"):
        run_installer(["no-such-tool"], what="it", folder=HOME, report=no_lines)


def test_deadline_ends_the_installer_and_its_children() -> None:
    with pytest.raises(InfraError, match=r"took longer than 0\.2 s"):
        run_installer(["sh", "-c", "sleep 71; sleep 71"], what="it", folder=HOME, report=no_lines, deadline_s=0.2)
    assert "sleep 71" not in subprocess.check_output(["ps", "-eo", "args"], text=True).splitlines()


def test_an_exception_ends_the_installer_too() -> None:
    def interrupt(_line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_installer(["sh", "-c", "echo x; sleep 72"], what="it", folder=HOME, report=interrupt)
    assert "sleep 72" not in subprocess.check_output(["ps", "-eo", "args"], text=True).splitlines()


def test_missing_uv_and_pip_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uv, "find_uv", lambda _home: None)
    fake = tmp_path / "python"
    fake.write_text('#!/bin/sh\necho "$0: No module named pip" >&2\nexit 1\n')
    fake.chmod(0o755)
    monkeypatch.setattr(uv, "base_python", lambda: str(fake))
    with pytest.raises(InfraError, match="uv cannot be installed: this Python has no pip"):
        uv.require_uv(tmp_path, no_lines)


def test_installer_deadline_is_bounded() -> None:
    assert installer.DEADLINE_S <= 3600
