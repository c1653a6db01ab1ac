"""The runner's observations of a job's ranks: their lifetimes, their framework, their connections."""

import shutil
import socket
import sys
import time
from pathlib import Path

import pytest

from tipcflow.remote.runner.observer import SHARE, Observer, host, side

pytestmark = pytest.mark.process

WORKS = """
import ctypes, socket, sys, time
library, address, port, seconds = sys.argv[1:]
if library:
    ctypes.CDLL(library)
if address:
    one = socket.create_connection((address, int(port)))
until = time.monotonic() + float(seconds)
while time.monotonic() < until:
    pass
"""


@pytest.fixture
def library(tmp_path: Path) -> str:
    """A shared library under the name of PyTorch's."""
    import _ctypes

    found = getattr(_ctypes, "__file__", "")
    if not found:
        pytest.skip("this Python has no shared library to copy")
    shutil.copy(found, tmp_path / "libtorch_cpu.so")
    return str(tmp_path / "libtorch_cpu.so")


@pytest.fixture
def script(tmp_path: Path) -> str:
    (tmp_path / "works.py").write_text(WORKS)
    return str(tmp_path / "works.py")


def test_ranks_are_distinguished_by_their_connections(bench, script, library):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.2", 0)) as peer:
        ports = (server.getsockname()[1], peer.getsockname()[1])
        ranks = (
            f"RANK=0 WORLD_SIZE=3 {sys.executable} {script} {library} 127.0.0.2 {ports[1]} 2",
            f"PADDLE_TRAINER_ID=1 {sys.executable} {script} {library} 127.0.0.1 {ports[0]} 2",
            f"RANK=2 {sys.executable} {script} '' '' 0 0.5",
        )
        record = bench.end_of(" & ".join(ranks) + " & wait", peers=("127.0.0.2",))
    assert record.ok, record.message
    zero, one, two = record.observed.ranks
    assert [rank.rank for rank in record.observed.ranks] == [0, 1, 2]
    assert (zero.peers, zero.others, zero.local) == (1, 0, 0)
    assert (one.peers, one.others, one.local) == (0, 0, 1)
    assert (two.remote, two.local, two.framework) == (0, 0, "")
    assert (zero.framework, one.framework) == ("torch", "torch")
    assert 1.5 < zero.seconds < 30
    assert two.seconds < zero.seconds
    assert zero.cpu_s > two.cpu_s > 0
    assert zero.framework_s > 1
    assert not record.observed.servers
    assert not any(rank.hidden for rank in record.observed.ranks)


def test_a_connection_that_has_ended_is_counted(bench, script):
    """A rank that ended before it was probed leaves a trace: its training may have had a group."""
    with socket.create_server(("127.0.0.2", 0)) as peer:
        port = peer.getsockname()[1]
        text = f"{sys.executable} -c \"import socket; socket.create_connection(('127.0.0.2', {port})).close()\""
        job = bench.job(text, peers=("127.0.0.2",))
        bench.call("start", job)
        with peer.accept()[0] as connection:
            assert connection.recv(1) == b"", "the rank closes it first"
        assert bench.ended(job).observed.closed == 1


def test_parameter_servers_are_noticed(bench):
    assert bench.end_of("TRAINING_ROLE=PSERVER sleep 0.5").observed.servers
    assert bench.end_of("sleep 0.1", step="eval").observed.ranks == ()


def test_addresses_of_peers_are_recognized():
    assert [host(text) for text in ("10.0.0.1:80", "[::1]:80", "[::ffff:10.0.0.1]:80")] == [
        "10.0.0.1",
        "::1",
        "10.0.0.1",
    ]
    peers = frozenset({"10.0.0.2"})
    assert side("10.0.0.1:1", "10.0.0.2:2", peers) == "peer"
    assert side("10.0.0.1:1", "10.0.0.1:2", peers) == "local"
    assert side("127.0.0.1:1", "127.0.0.1:2", peers) == "local"
    assert side("10.0.0.1:1", "10.0.0.3:2", peers) == "other"
    assert side("[::1]:1", "[::1]:2", peers) == "local"


def test_looks_use_little_of_a_cpu(monkeypatch):
    """However long a look takes: the next one waits in proportion."""
    clock = iter([7.0, 7.5])
    observer = Observer({})
    observer.ranks["0"] = type("Rank", (), {"pids": [], "peers": 0, "others": 0})()
    monkeypatch.setattr("tipcflow.remote.runner.observer.time.process_time", lambda: next(clock))
    observer.poll()
    assert observer.next_poll == pytest.approx(time.monotonic() + 0.5 / SHARE, abs=2.0)
