"""Parts of evidence that need no job: sockets, the kernel's messages, other programs that do not respond."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tipcflow.remote.runner import evidence, kmsg, ranks, stacks
from tipcflow.remote.runner.kmsg import TELLING, kernel_messages
from tipcflow.remote.runner.processes import Proc
from tipcflow.remote.runner.programs import find_program, run_program, unmarked_environment
from tipcflow.remote.runner.sockets import address, sockets

ME = Proc(os.getpid(), os.getppid(), 0.0, 0, b"RANK=3\0PATH=/bin")


def test_addresses_of_the_kernel_are_decoded():
    assert address("0100007F:1F90") == "127.0.0.1:8080"
    assert address("00000000000000000000000001000000:0016") == "[::1]:22"
    assert address("0000000000000000FFFF00000101A8C0:0050") == "[::ffff:192.168.1.1]:80"


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_socket_with_unread_bytes_is_reported(family, host):
    with socket.socket(family) as server:
        server.bind((host, 0))
        server.listen()
        with socket.create_connection(server.getsockname()[:2]) as client, server.accept()[0] as other:
            other.sendall(b"12345")
            port = client.getsockname()[1]
            found = sockets([ME], {ME.pid: "3"})
    mine = next(one for one in found if one["local"].endswith(f":{port}"))
    assert (mine["state"], mine["rx_queue"], mine["rank"], mine["pid"]) == ("ESTABLISHED", 5, "3", ME.pid)
    assert found.index(mine) < next(n for n, one in enumerate(found) if one["state"] == "LISTEN")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("NVRM: Xid (PCI:0000:65:00): 79, pid=1234, GPU has fallen off the bus.", True),
        ("INFO: task python:1234 blocked for more than 120 seconds.", True),
        ("Out of memory: Killed process 1234 (python)", True),
        ("mlx5_core 0000:5e:00.0 ib0: Link down", True),
        ("EXT4-fs (sda1): mounted filesystem", False),
        ("oxide of something", False),
    ],
)
def test_relevant_messages_of_the_kernel_are_kept(line, expected):
    assert bool(TELLING.search(line)) == expected


def test_kernel_messages_have_an_age(monkeypatch):
    up = float(Path("/proc/uptime").read_text().split()[0])
    records = [b"6,1,%d,-;NVRM: Xid 79\n SUBSYSTEM=pci" % int((up - 60) * 1e6), b"6,2,0,-;harmless", b"torn"]
    monkeypatch.setattr(kmsg, "records", lambda: iter(records))
    (line,) = kernel_messages()
    assert line.split(": ", 1)[1] == "NVRM: Xid 79"
    assert 59 <= int(line.split(" ")[0]) <= 70


def test_a_program_that_does_not_respond_is_left(tmp_path):
    assert run_program([sys.executable, "-c", "import time; time.sleep(300)"], 0.2) == (
        None,
        f"{Path(sys.executable).name} did not respond within 0.2 s",
    )
    assert run_program([str(tmp_path / "none")], 1.0) == (None, f"{tmp_path}/none: No such file or directory")
    assert run_program(["/bin/sh", "-c", "echo out; echo err >&2; exit 3"], 10.0) == (3, "out\nerr\n")


def test_tools_and_marks(tmp_path, monkeypatch):
    (tmp_path / "tool").write_text("")
    assert find_program("tool", str(tmp_path)) == ""
    (tmp_path / "tool").chmod(0o755)
    assert find_program("tool", str(tmp_path)) == str(tmp_path / "tool")
    monkeypatch.setenv("TIPCFLOW_JOB", "x")
    assert "TIPCFLOW_JOB" not in unmarked_environment()


def test_only_so_much_is_printed(tmp_path, monkeypatch):
    spec = {"workspace": str(tmp_path), "root": str(tmp_path), "run": "r", "step": "s", "attempt": 1, "node": "a"}
    made = evidence.Evidence(str(tmp_path), spec, "requested", "")
    long = "s" * 500_000
    made.ranks = dict.fromkeys(range(ME.pid, ME.pid + 200), "3")
    made.procs = [ME._replace(pid=pid) for pid in range(ME.pid, ME.pid + 200)]
    monkeypatch.setattr(evidence, "process", lambda proc: {"pid": proc.pid, "threads": ["x" * 100] * 24})
    monkeypatch.setattr(evidence, "stacks", lambda procs, _: {one.pid: ("signal", long) for one in procs})
    monkeypatch.setattr(evidence, "gpus", lambda: "g" * 100_000)
    monkeypatch.setattr(evidence, "sockets", lambda procs, ranks: 1 / 0)
    found = made.collect()
    assert (tmp_path / "evidence.json").stat().st_size < 256 * 1024
    assert found["failed"] == {"sockets": "ZeroDivisionError('division by zero')"}
    assert (tmp_path / "evidence" / "nvidia-smi.txt").stat().st_size == 100_000
    assert f"evidence/stack.{ME.pid}.txt" in found["files"]
    assert ["stack" in one for one in found["processes"]] == sorted(
        ("stack" in one for one in found["processes"]), reverse=True
    )
    assert "stack" in found["processes"][0], "those that matter most are kept"


def test_an_ended_process_has_no_evidence(tmp_path):
    process = subprocess.Popen(["true"])
    process.wait()
    gone = Proc(process.pid, 1, 0.0, 0, b"")
    assert stacks.stacks([gone], [str(tmp_path)]) == {}
    assert stacks.request_stack(process.pid, []) == ""
    assert evidence.process(gone)["state"] == ""
    assert ranks.holders([gone], (0, 0)) == []


def test_a_ranks_own_process_comes_before_its_helpers(tmp_path, monkeypatch):
    ranked, plain = b"PADDLE_TRAINER_ID=0", b""
    table = [
        Proc(12, 11, 0.0, 0, ranked),  # a data loader
        Proc(10, 9, 0.0, 0, plain),  # the launcher
        Proc(11, 10, 0.0, 0, ranked),
        Proc(21, 10, 0.0, 0, b"RANK=1"),
    ]
    monkeypatch.setattr(evidence, "job_processes", lambda *_: table)
    spec = {"workspace": str(tmp_path), "root": str(tmp_path), "run": "r", "step": "s", "attempt": 1, "node": "a"}
    made = evidence.Evidence(str(tmp_path), spec, "requested", "")
    assert [(proc.pid, made.main(proc)) for proc in made.procs] == [
        (11, True),
        (21, True),
        (12, False),
        (10, False),
    ]


@pytest.mark.root
def test_evidence_on_a_full_disk_is_still_reported(tmp_path):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(tmp_path)], check=True)
    try:
        spec = {"workspace": str(tmp_path), "root": "/", "run": "r", "step": "s", "attempt": 1, "node": "a"}
        with pytest.raises(OSError, match="No space"):
            (tmp_path / "full").write_bytes(b"x" * 8192)
        found = evidence.Evidence(str(tmp_path), spec, "requested", "").collect()
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
    assert (found["complete"], found["failed"]) == (True, {"evidence.json": "No space left on device"})
