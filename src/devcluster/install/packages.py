"""Required system programs: installed as root on Debian and derivatives; otherwise one line names the fix.

Services of the packages are not started, or are stopped, because local nodes run their own sshd.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from devcluster.local_nodes.sshd import find_sshd
from devcluster.shell import call
from tipcflow.domain import InfraError
from tipcflow.install.installer import run_installer

_POLICY = Path("/usr/sbin/policy-rc.d")


class Need(NamedTuple):
    """A program and its package.

    Attributes:
        program: the program's name.
        package: package name in Debian and derivatives.
        use: purpose of the program.
        services: services that the package may start.
        optional: whether local nodes work without it.
    """

    program: str
    package: str
    use: str
    services: tuple[str, ...] = ()
    optional: bool = False


SSHD = Need("sshd", "openssh-server", "access to local nodes", ("ssh.socket", "ssh.service"))
SSH_KEYGEN = Need("ssh-keygen", "openssh-client", "keys of local nodes")
PING = Need("ping", "iputils-ping", "network check between nodes", optional=True)
IP = Need("ip", "iproute2", "network of local nodes in namespaces", optional=True)
UNSHARE = Need("unshare", "util-linux", "start of local nodes in namespaces", optional=True)
REDIS = Need("redis-server", "redis-server", "tests of Celery workers", ("redis-server.service",))
CHROMIUM = Need("chromium", "chromium", "tests of the pages")
COMPOSE = Need("docker-compose", "docker-compose", "test of docker-compose.yaml")
POSTGRES = Need("initdb", "postgresql", "tests of the database", ("postgresql.service",))
IPTABLES = Need("iptables", "iptables", "tests with Docker's packet filter")
FAKETIME = Need("faketime", "faketime", "tests with a wrong clock")

FOR_TESTS = (POSTGRES, REDIS, CHROMIUM, COMPOSE, FAKETIME, IPTABLES)
FOR_NODES = (SSHD, SSH_KEYGEN, PING)
FOR_NAMESPACES = (IP, UNSHARE)


def for_local_nodes() -> tuple[Need, ...]:
    """Return the programs that local nodes need on this machine; as root, including those for namespaces."""
    return (*FOR_NODES, *FOR_NAMESPACES) if os.geteuid() == 0 else FOR_NODES


def find_program(need: Need) -> str:
    """Return the program's path, '' if missing; also search sbin and PostgreSQL's own folder."""
    if need.program == "sshd":
        return find_sshd()
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    program = shutil.which(need.program, path=path)
    if need.program == "initdb" and not program:
        program = str(next(iter(Path("/usr/lib/postgresql").glob("*/bin/initdb")), ""))
    return program or ""


def ensure(needs: Sequence[Need], report: Callable[[str], None]) -> None:
    """Install missing programs; report optional ones that cannot be installed.

    Raises:
        InfraError: a required program is missing and cannot be installed; the message names what to install.
    """
    missing = [need for need in needs if not find_program(need)]
    if not missing:
        return
    if (way := _way_to_install()) is not None:
        _refuse(missing, way, report)
        return
    names = " ".join(need.package for need in missing)
    report(f"installing {names} (services are not started)")
    running = _active([service for need in missing for service in need.services])
    with _no_service_starts():
        _apt("update", "-qq", report=report)
        _apt("install", "-qq", "-y", "--no-install-recommends", *(need.package for need in missing), report=report)
    _quiet_down([service for need in missing for service in need.services], running)
    still = [need.program for need in missing if not find_program(need)]
    if still:
        raise InfraError(f"still missing after the installation of {names}: {', '.join(still)}")


def _way_to_install() -> str | None:
    """Return the start of the hint to install packages; None if this process can install them itself."""
    if not shutil.which("apt-get"):
        return "install what Debian calls"
    return None if os.geteuid() == 0 else "sudo apt-get install"


def _refuse(missing: Sequence[Need], way: str, report: Callable[[str], None]) -> None:
    required = [need for need in missing if not need.optional]
    if required:
        programs = ", ".join(need.program for need in required)
        names = " ".join(need.package for need in required)
        raise InfraError(f"missing on this machine: {programs}", hint=f"{way} {names}")
    for need in missing:
        report(f"{need.program} ({need.use}) is not installed: {way} {need.package}")


def _apt(*arguments: str, report: Callable[[str], None]) -> None:
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    # Another apt-get may be running, especially on a new machine.
    argv = ["apt-get", "-o", "DPkg::Lock::Timeout=120", *arguments]

    def relay(line: str) -> None:
        # One line per package; the rest is shown on failure.
        if line.startswith("Setting up"):
            report(line)

    run_installer(argv, what="a system package", folder=Path("/"), report=relay, env=env)


def _quiet_down(services: Sequence[str], running: set[str]) -> None:
    """Stop and disable services that came with the installed packages; leave others unchanged."""
    if not shutil.which("systemctl"):
        return
    for service in services:
        if service not in running:
            call(["systemctl", "disable", "--quiet", service], check=False)
    for service in _active(services) - running:
        call(["systemctl", "stop", service], check=False)


def _active(services: Sequence[str]) -> set[str]:
    if not Path("/run/systemd/system").is_dir():
        return set()
    return {name for name in services if call(["systemctl", "is-active", name], check=False).returncode == 0}


@contextmanager
def _no_service_starts() -> Iterator[None]:
    """Prevent packages from starting services (Debian's policy-rc.d); keep the administrator's file."""
    ours = not _POLICY.exists()
    try:
        if ours:
            _POLICY.write_text("#!/bin/sh\nexit 101\n")
            _POLICY.chmod(0o755)
        yield
    finally:
        if ours:
            _POLICY.unlink(missing_ok=True)
