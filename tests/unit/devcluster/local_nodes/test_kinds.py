"""The kind of local nodes, and the reason where it is loopback."""

import subprocess
import sys
from pathlib import Path

import pytest

from devcluster.local_nodes import kinds, namespaces

ASK = "from devcluster.local_nodes.kinds import choose; print(choose())"


def test_without_root_nodes_are_loopback_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert kinds.choose() == ("loopback", "network namespaces require root")


@pytest.mark.parametrize(
    ("program", "package"), [("unshare", "util-linux"), ("nsenter", "util-linux"), ("ip", "iproute2")]
)
def test_a_missing_program_is_named_with_its_package(
    program: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for other in {"unshare", "nsenter", "ip"} - {program}:
        (tmp_path / other).symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert kinds.choose() == (
        "loopback",
        f"the program {program} is missing: install the package {package}",
    )


@pytest.mark.process
@pytest.mark.root
@pytest.mark.parametrize(
    ("capability", "words"),
    [
        ("sys_admin", "network namespaces are not permitted here, as in most containers: unshare: "),
        ("net_admin", ""),
    ],
)
def test_root_of_a_container_has_loopback_nodes(capability: str, words: str) -> None:
    """The kernel itself refuses."""
    argv = ["setpriv", f"--bounding-set=-{capability}", sys.executable, "-c", ASK]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.startswith(f"('loopback', {words!r}"[:-1]), done.stdout
    assert "Operation not permitted" in done.stdout


def test_a_requested_kind_is_not_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "unavailable", lambda: pytest.fail("probed"))
    assert kinds.choose("namespaces") == ("namespaces", "")
    assert kinds.choose("loopback") == ("loopback", "as requested")


def test_the_sentence_states_the_reason() -> None:
    assert kinds.sentence("namespaces") == "network namespaces, each with its own sshd"
    assert (
        kinds.sentence("loopback", "network namespaces require root")
        == "loopback addresses, each with an unprivileged sshd (network namespaces require root)"
    )
