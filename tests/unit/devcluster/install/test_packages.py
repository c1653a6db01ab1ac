"""System packages: found, installed as root with apt-get, or named in one line."""

from pathlib import Path

import pytest

from devcluster.install import packages
from devcluster.install.packages import PING, SSHD, Need, ensure, find_program
from tipcflow.domain import InfraError

MISSING = Need("no-such-program", "no-such-package", "does nothing")


@pytest.fixture
def bin_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH; policy-rc.d is a file of the test."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(packages, "_POLICY", tmp_path / "policy-rc.d")
    return folder


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{text}\n")
    path.chmod(0o755)


def test_nothing_is_done_when_all_is_here(bin_dir: Path) -> None:
    script(bin_dir / MISSING.program, "")
    messages: list[str] = []
    ensure([MISSING], messages.append)
    assert messages == []


def test_packages_to_install_are_listed_without_root(bin_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(bin_dir / "apt-get", "exit 9")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(InfraError) as caught:
        ensure([MISSING, MISSING._replace(program="another", package="other")], print)
    assert str(caught.value) == (
        "missing on this machine: no-such-program, another\n  hint: sudo apt-get install no-such-package other"
    )


def test_packages_to_install_are_listed_without_apt(bin_dir: Path) -> None:
    with pytest.raises(InfraError) as caught:
        ensure([MISSING], print)
    assert str(caught.value) == (
        "missing on this machine: no-such-program\n  hint: install what Debian calls no-such-package"
    )


def test_an_optional_program_is_reported_and_not_required(bin_dir: Path) -> None:
    messages: list[str] = []
    ensure([MISSING._replace(optional=True)], messages.append)
    assert messages == [
        "no-such-program (does nothing) is not installed: install what Debian calls no-such-package"
    ]


def test_root_installs_and_no_service_starts_meanwhile(
    bin_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "calls"
    script(
        bin_dir / "apt-get",
        f'echo "$@" >> {log}; {tmp_path}/policy-rc.d; echo "policy $?" >> {log}\n'
        f'case "$*" in *install*) touch {bin_dir}/no-such-program; chmod +x {bin_dir}/no-such-program;; esac\n'
        'echo "Setting up no-such-package (1.0) ..."; echo noise',
    )
    monkeypatch.setattr("os.geteuid", lambda: 0)
    messages: list[str] = []
    ensure([MISSING], messages.append)
    assert messages == [
        "installing no-such-package (services are not started)",
        "Setting up no-such-package (1.0) ...",
        "Setting up no-such-package (1.0) ...",
    ]
    assert log.read_text().splitlines() == [
        "-o DPkg::Lock::Timeout=120 update -qq",
        "policy 101",
        "-o DPkg::Lock::Timeout=120 install -qq -y --no-install-recommends no-such-package",
        "policy 101",
    ]
    assert not (tmp_path / "policy-rc.d").exists()


def test_the_administrators_policy_stays(bin_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "policy-rc.d", "exit 0")
    before = (tmp_path / "policy-rc.d").read_text()
    script(bin_dir / "apt-get", "echo 'E: Could not resolve host'; exit 100")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(InfraError, match="the package index cannot be reached"):
        ensure([MISSING], lambda _: None)
    assert (tmp_path / "policy-rc.d").read_text() == before


def test_sshd_is_found_outside_of_path(bin_dir: Path) -> None:
    assert find_program(SSHD).endswith("sshd")
    assert find_program(PING._replace(program="no-such-ping")) == ""
