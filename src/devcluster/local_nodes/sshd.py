"""OpenSSH server of a node: keys, configuration and start, independent of the machine's own sshd."""

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
    """Return the absolute path of the OpenSSH server's program ('' if not installed)."""
    # sbin is not on every user's PATH.
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin", "/sbin"])
    return shutil.which("sshd", path=path) or ""


def require_sshd() -> str:
    """Return the absolute path of the OpenSSH server's program.

    Raises:
        InfraError: sshd is not installed.
    """
    program = find_sshd()
    if not program:
        raise InfraError("the OpenSSH server is not installed", hint="install the package openssh-server")
    return str(Path(program).resolve())


def make_key(path: Path, comment: str) -> str:
    """Create an ed25519 key pair at `path` (0600) and `path`.pub. Returns: the public line."""
    call(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)])
    return path.with_name(path.name + ".pub").read_text().strip()


def user() -> str:
    """Return the login name: the current user, because an unprivileged sshd accepts no other user."""
    return pwd.getpwuid(os.getuid()).pw_name


def write_config(folder: Path, *, address: str, port: int, marker: str) -> list[str]:
    """Write sshd_config to `folder`, which already contains host_key and authorized_keys.

    Args:
        marker: NAME=VALUE in the environment of every remote command of this node.

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
        # The folder may be below a world-writable folder, such as /tmp.
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
        # sshd's privilege separation folder, which its service normally creates.
        Path("/run/sshd").mkdir(mode=0o755, parents=True, exist_ok=True)
    config = folder / "sshd_config"
    config.write_text("\n".join(lines) + "\n")
    return [require_sshd(), "-D", "-f", str(config), "-E", str(folder / "sshd.log")]


def known_hosts_line(address: str, port: int, public_key: str) -> str:
    """Return one line of a known_hosts file."""
    kind, key = public_key.split()[:2]
    host = address if port == 22 else f"[{address}]:{port}"
    return f"{host} {kind} {key}\n"


def is_listening(address: str, port: int, *, timeout_s: float = 0.5) -> bool:
    """Whether an SSH server responds at that address."""
    try:
        with socket.create_connection((address, port), timeout=timeout_s) as connection:
            connection.settimeout(timeout_s)
            return connection.recv(4).startswith(b"SSH-")
    except OSError:
        return False


def wait_for_sshd(name: str, address: str, port: int, folder: Path) -> None:
    """Wait until the node's sshd responds.

    Raises:
        InfraError: no response within the deadline; with the last line of sshd's log.
    """
    deadline = time.monotonic() + PORT_DEADLINE_S
    while not is_listening(address, port):
        if time.monotonic() > deadline:
            raise InfraError(
                f"sshd of node {name} does not respond at {address}:{port}: {last_line(folder / 'sshd.log')}",
                node=name,
            )
        time.sleep(0.01)


def last_line(log: Path) -> str:
    """Return the last line of a log file, or a note that it is empty."""
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else "its log is empty"


def is_root_locked() -> bool:
    """Whether root's account is locked, so that sshd without PAM rejects its keys."""
    try:
        entries = Path("/etc/shadow").read_text().splitlines()
    except OSError:
        return False
    return any(line.startswith("root:!") for line in entries)


def minimal_shadow(folder: Path) -> Path | None:
    """Return a shadow file for a locked root account; None if the account is not locked."""
    if not is_root_locked():
        return None
    shadow = folder / "shadow"
    shadow.touch(mode=0o600)
    shadow.write_text("root:*:20000:0:99999:7:::\n")
    return shadow
