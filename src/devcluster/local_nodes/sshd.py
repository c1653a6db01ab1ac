"""Keys, configuration and start of a node's own OpenSSH server. Nothing of the machine's own sshd is used."""

import os
import pwd
import shutil
import socket
import time
from pathlib import Path

from devcluster.shell import call
from tipcflow.domain import InfraError

PORT_DEADLINE_S = 10.0


def find_sshd() -> str:
    """Absolute path of the OpenSSH server's program ('' when there is none)."""
    # sbin is not on every user's PATH.
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin", "/sbin"])
    return shutil.which("sshd", path=path) or ""


def require_sshd() -> str:
    """Absolute path of the OpenSSH server's program.

    Raises:
        InfraError: it is not installed.
    """
    found = find_sshd()
    if not found:
        raise InfraError("the OpenSSH server is not installed", hint="install the package openssh-server")
    return str(Path(found).resolve())


def make_key(path: Path, comment: str) -> str:
    """A fresh ed25519 key pair at `path` (0600) and `path`.pub. Returns: the public line."""
    call(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)])
    return path.with_name(path.name + ".pub").read_text().strip()


def user() -> str:
    """Who logs in: the user who runs this, for an unprivileged sshd lets nobody else in."""
    return pwd.getpwuid(os.getuid()).pw_name


def write_config(folder: Path, *, address: str, port: int, marker: str) -> list[str]:
    """sshd_config in `folder`, where host_key and authorized_keys already stand.

    Args:
        marker: NAME=VALUE that every remote command of this node gets in its environment.

    Returns: the command that starts the server in the foreground.
    """
    lines = [
        f"Port {port}",
        f"ListenAddress {address}",
        f"HostKey {folder}/host_key",
        f"AuthorizedKeysFile {folder}/authorized_keys",
        f"SetEnv {marker}",
        "PidFile none",
        "UsePAM no",
        # The folder may stand below one that others may write, such as /tmp.
        "StrictModes no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitRootLogin prohibit-password",
        "MaxStartups 100",
        "MaxSessions 100",
        "UseDNS no",
        "PrintMotd no",
        "X11Forwarding no",
        "AllowAgentForwarding no",
        "LogLevel VERBOSE",
        "Subsystem sftp internal-sftp",
    ]
    if os.geteuid() == 0:
        # sshd's own empty folder, which its service would make.
        Path("/run/sshd").mkdir(mode=0o755, parents=True, exist_ok=True)
    config = folder / "sshd_config"
    config.write_text("\n".join(lines) + "\n")
    return [require_sshd(), "-D", "-f", str(config), "-E", str(folder / "sshd.log")]


def known_hosts_line(address: str, port: int, public_key: str) -> str:
    """One line of a known_hosts file."""
    kind, key = public_key.split()[:2]
    host = address if port == 22 else f"[{address}]:{port}"
    return f"{host} {kind} {key}\n"


def answers(address: str, port: int, *, timeout_s: float = 0.5) -> bool:
    """Whether an SSH server greets at that address."""
    try:
        with socket.create_connection((address, port), timeout=timeout_s) as connection:
            connection.settimeout(timeout_s)
            return connection.recv(4).startswith(b"SSH-")
    except OSError:
        return False


def wait_for_sshd(name: str, address: str, port: int, folder: Path) -> None:
    """Wait until the node's sshd greets.

    Raises:
        InfraError: it did not in time; with the last line of its log.
    """
    deadline = time.monotonic() + PORT_DEADLINE_S
    while not answers(address, port):
        if time.monotonic() > deadline:
            raise InfraError(
                f"sshd of node {name} does not answer at {address}:{port}: {last_line(folder / 'sshd.log')}",
                node=name,
            )
        time.sleep(0.01)


def last_line(log: Path) -> str:
    """The last line of a log file, or that there is none."""
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else "its log is empty"


def minimal_shadow(folder: Path) -> Path | None:
    """A password file for a root whose account is locked, which sshd without PAM would turn away; else None."""
    try:
        entries = Path("/etc/shadow").read_text().splitlines()
    except OSError:
        return None
    locked = any(line.startswith("root:!") for line in entries)
    if not locked:
        return None
    shadow = folder / "shadow"
    shadow.touch(mode=0o600)
    shadow.write_text("root:*:20000:0:99999:7:::\n")
    return shadow
