"""A server that accepts the login but responds to later requests late or never: every call has its own limit."""

import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import paramiko
import pytest
from paramiko.common import AUTH_SUCCESSFUL, OPEN_SUCCEEDED

from tipcflow.domain import InfraError, Node, SshTarget
from tipcflow.transport.connect import connect
from tipcflow.transport.paramiko_adapter import ParamikoTransport, closed_at

# A timer thread that dies with a traceback fails its test.
pytestmark = [
    pytest.mark.process,
    pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning"),
]

WAIT_S = 20.0  # after which the server responds: a call that waited for it fails its test


class Slow(paramiko.ServerInterface):
    """Accepts every login, and responds to the request named `held` only once `release` is set."""

    def __init__(self, held: str) -> None:
        self.held, self.release, self.answered = held, threading.Event(), threading.Event()
        self.transport: paramiko.Transport | None = None

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        if self.held == "login":
            self.release.wait(WAIT_S)
        if self.held == "end of login":
            assert self.transport is not None
            self.transport.close()
        return AUTH_SUCCESSFUL

    def check_channel_request(self, kind: str, chanid: int) -> int:
        if self.held == "open":
            self.release.wait(WAIT_S)
            self.answered.set()
        return OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        if self.held == "exec":
            self.release.wait(WAIT_S)
            self.answered.set()
        threading.Thread(target=self._serve, args=(channel,), daemon=True).start()
        return self.held != "refuse"

    @staticmethod
    def _serve(channel: paramiko.Channel) -> None:
        try:
            while channel.recv(1024):  # the end of the input comes after the request got its response
                pass
            channel.sendall(b"done")
            channel.send_exit_status(0)
            channel.close()
        except (EOFError, OSError, paramiko.SSHException):  # the client has left
            return


class Harness:
    """The listening server, and the node that it is."""

    def __init__(self, folder: Path, held: str) -> None:
        self.slow, self._made = Slow(held), []
        self._key = paramiko.ECDSAKey.generate()
        # paramiko tries this type last: of another type it would report that the file is not of this one.
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "id")]
        subprocess.run(command, check=True)
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        known = f"[127.0.0.1]:{port} {self._key.get_name()} {self._key.get_base64()}\n"
        (folder / "known_hosts").write_text(known)
        target = SshTarget(
            host="127.0.0.1",
            port=port,
            user="x",
            identity_file=str(folder / "id"),
            known_hosts=str(folder / "known_hosts"),
        )
        self.node = Node(name="a", address="127.0.0.1", ssh=target, python="/usr/bin/python3", workspace="/tmp/w")
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            server = paramiko.Transport(sock)
            self._made.append(server)
            self.slow.transport = server
            server.add_server_key(self._key)
            server.start_server(event=threading.Event(), server=self.slow)

    def close(self) -> None:
        self.slow.release.set()
        # The thread must not accept from the listener of the next test, which may get the same descriptor.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()
        self._listener.close()
        for server in self._made:
            server.close()


@pytest.fixture
def reach(tmp_path: Path) -> Iterator[Callable[[str], tuple[Slow, ParamikoTransport]]]:
    """`reach(held)`: the server's behavior, and a connection to it."""
    ends = []

    def make(held: str) -> tuple[Slow, ParamikoTransport]:
        harness = Harness(tmp_path, held)
        ends.append(harness)
        transport = connect(harness.node)
        ends.append(transport)
        return harness.slow, transport

    yield make
    for end in reversed(ends):
        end.close()


@pytest.mark.parametrize("held", ["login", "end of login"])
def test_a_login_without_a_response_is_not_a_rejection(tmp_path: Path, held: str) -> None:
    harness = Harness(tmp_path, held)
    try:
        with pytest.raises(
            InfraError, match=r"^node a: \S+ did not respond to the login \(Authentication"
        ) as caught:
            connect(harness.node, timeout=0.5)
        assert caught.value.passing
    finally:
        harness.close()


def test_a_server_that_responds(reach):
    _, transport = reach("nothing")
    assert transport.run("x").stdout == b"done"


@pytest.mark.parametrize("held", ["open", "exec"])
def test_a_request_without_a_response_has_a_deadline(reach, held):
    slow, transport = reach(held)
    with pytest.raises(InfraError, match=r"^node a: no response within 0\.5 s"):
        transport.run("x", timeout=0.5)
    assert not slow.answered.is_set(), "the call waited for the server"


@pytest.mark.parametrize("held", ["open", "exec"])
def test_a_stream_without_a_response_has_a_deadline(reach, held):
    slow, transport = reach(held)
    with (
        pytest.raises(InfraError, match=r"^node a: no response within 0\.5 s"),
        transport.stream("x", timeout=0.5) as lines,
    ):
        next(lines)
    assert not slow.answered.is_set(), "the call waited for the server"


def test_the_connection_serves_again_once_the_server_does(reach):
    slow, transport = reach("exec")
    with pytest.raises(InfraError, match="no response"):
        transport.run("x", timeout=0.5)
    slow.release.set()
    assert transport.run("x").stdout == b"done"


def test_a_rejection_is_not_a_missing_response(reach):
    _, transport = reach("refuse")
    with pytest.raises(InfraError, match=r"the connection is lost \(Channel closed"):
        transport.run("x")


def test_connection_that_ends_before_its_deadline_is_a_timeout() -> None:
    class Ended:
        def close(self) -> None:
            raise EOFError

    with pytest.raises(TimeoutError), closed_at(Ended(), time.monotonic() + 0.05):  # type: ignore[arg-type]
        time.sleep(0.2)
