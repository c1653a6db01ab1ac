"""A real sshd of our own on loopback: own host key, own configuration, no privileges."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.programs import need

from tipcflow.domain import Node, SshTarget


def free_port() -> int:
    """A TCP port without a listener."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def make_sshd_folder() -> None:
    """Create the folder that sshd needs when root runs it, if the sshd of this machine was never started."""
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)


def keygen(path: Path, *options: str) -> Path:
    """A new key pair."""
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(path), *options]
    subprocess.run(argv, check=True, capture_output=True)
    return path


@dataclass
class Server:
    """An sshd.

    Attributes:
        folder: its keys and files: `id` may log in, `stranger` may not.
        program: its path.
    """

    folder: Path
    port: int
    program: str
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self) -> None:
        """Start it, and wait until it listens."""
        log = self.folder / "log"
        log.unlink(missing_ok=True)
        argv = [self.program, "-D", "-f", str(self.folder / "sshd_config"), "-E", str(log)]
        self.process = subprocess.Popen(argv)
        end = time.monotonic() + 20
        while "Server listening" not in (log.read_text() if log.exists() else ""):
            assert self.process.poll() is None, log.read_text()
            assert time.monotonic() < end, "sshd did not start"
            time.sleep(0.01)

    def node(self, **ssh: object) -> Node:
        """The node that it is; `ssh` replaces parts of the address."""
        target = {
            "host": "127.0.0.1",
            "port": self.port,
            "identity_file": str(self.folder / "id"),
            "known_hosts": str(self.folder / "known_hosts"),
        }
        return Node(
            name="a",
            address="127.0.0.1",
            ssh=SshTarget(**{**target, **ssh}),
            python=sys.executable,
            workspace=str(self.folder / "work"),
        )

    def learn(self, key: Path | None = None, *, port: int | None = None) -> None:
        """Write known_hosts: with the server's key, or with another one."""
        kind, data = (key or self.folder / "host_key").with_suffix(".pub").read_text().split()[:2]
        line = f"[127.0.0.1]:{port or self.port} {kind} {data}\n"
        (self.folder / "known_hosts").write_text(line)

    def close(self) -> None:
        """End it, with its connections."""
        for line in subprocess.run(
            ["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True, check=False
        ).stdout.split():
            subprocess.run(["kill", line], check=False, capture_output=True)
        self.process.terminate()
        self.process.wait(timeout=10)


def start_sshd(folder: Path, *options: str, port: int = 0) -> Server:
    """Start an sshd with keys of its own in the new folder.

    Args:
        options: further lines of its configuration.
        port: 0 for a free one.
    """
    sshd = need("sshd", "openssh-server")
    make_sshd_folder()
    folder.mkdir()
    for name in ("host_key", "id", "stranger"):
        keygen(folder / name)
    (folder / "authorized_keys").write_text((folder / "id.pub").read_text())
    port = port or free_port()
    (folder / "sshd_config").write_text(
        "\n".join(
            [
                *options,
                f"ListenAddress 127.0.0.1:{port}",
                f"HostKey {folder}/host_key",
                f"AuthorizedKeysFile {folder}/authorized_keys",
                f"PidFile {folder}/pid",
                "PasswordAuthentication no",
                "KbdInteractiveAuthentication no",
                "StrictModes no",
                "UsePAM no",
                "Subsystem sftp internal-sftp",
            ]
        )
        + "\n"
    )
    server = Server(folder, port, sshd)
    server.start()
    server.learn()
    return server


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """`make_server("Option value", …)`: an sshd with further options."""
    made: list[Server] = []

    def make(*options: str) -> Server:
        made.append(start_sshd(tmp_path / f"server{len(made)}", *options))
        return made[-1]

    yield make
    for server in made:
        server.close()


@pytest.fixture
def server(make_server: Callable[..., Server]) -> Server:
    """An sshd as usual."""
    return make_server()
