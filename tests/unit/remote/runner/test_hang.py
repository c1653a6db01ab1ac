"""A command without progress: inspected while it hangs, then ended; the record names the rank behind."""

import json
import os
import re
import socket
import sys
from pathlib import Path

import pytest

from tipcflow.domain import EndReason
from tipcflow.remote.runner.watch import Watch

pytestmark = pytest.mark.process
ours = pytest.mark.parametrize("bench", ["ours"], indirect=True)

# Rank 0 continues; rank 1 waits for a peer that never sends.
WORKER = """
import os, socket, sys, time
rank, port = os.environ["PADDLE_TRAINER_ID"], int(sys.argv[1])
peer = socket.create_connection(("127.0.0.1", port))
def receive():
    peer.recv(1)
def train():
    for i in range(100000):
        print("[Iter: %d/100000] loss: 1" % i, flush=True)
        if rank == "1" and os.path.exists("hang"):
            receive()
        time.sleep(0.05)
train()
"""
GANG = f"""mkdir -p log
for rank in 0 1; do PADDLE_TRAINER_ID=$rank {sys.executable} work.py %d > log/workerlog.$rank 2>&1 & done; wait"""


@pytest.fixture
def port():
    """The address of a listening peer that never sends a byte."""
    with socket.socket() as peer:
        peer.bind(("127.0.0.1", 0))
        peer.listen()
        yield peer.getsockname()[1]


def beat(bench, job):
    """The job's heartbeat."""
    return bench.call("poll", job)["heartbeat"] or {}


def iteration(bench, job):
    """How far rank 1 is."""
    return beat(bench, job).get("progress", {}).get("log/workerlog.1", {}).get("iteration") or 0


@pytest.mark.parametrize("bench", [pytest.param("oldest", marks=pytest.mark.full), "ours"], indirect=True)
def test_hanging_rank_of_two_is_named(bench, wait, port):
    (bench.root / "work.py").write_text(WORKER)
    job = bench.job(GANG % port, hang_s=1.0, progress=("log/workerlog.*",), hang_wait_s=600.0)
    bench.call("start", job)
    first = wait(lambda: iteration(bench, job), "an iteration")
    second = wait(lambda: (now := iteration(bench, job)) > first and now, "the next")
    wait(lambda: iteration(bench, job) > second, "and one more")
    (bench.root / "hang").touch()
    wait(lambda: beat(bench, job)["hang"], "the hang")
    # The controllers of the job and its peers poll while it hangs; they get the findings once complete.
    seen = bench.call("evidence", job)
    assert (seen["why"], seen["complete"]) == ("hang", True)
    assert re.fullmatch(
        r"no progress: nothing new in log/workerlog\.1 \(rank 1\) for \d+ s, after iteration \d+; "
        r"1 other is active",
        seen["message"],
    )
    logs = {one["log"]: one for one in seen["logs"]}
    assert {name: one["rank"] for name, one in logs.items()} == {
        "logs/main.log": "", "log/workerlog.0": "0", "log/workerlog.1": "1",
    }  # fmt: skip
    late = logs["log/workerlog.1"]
    assert late["last_line"] == f"[Iter: {late['iteration']}/100000] loss: 1"
    stuck = next(one for one in seen["processes"] if one["rank"] == "1")
    assert (stuck["stack_by"], stuck["state"].split(", ")[1]) == ("signal", "S (sleeping)")
    assert re.findall(r"in (<?\w+>?)", stuck["stack"]) == ["receive", "train", "<module>"]
    peers = {(one["rank"], one["peer"], one["state"]) for one in seen["sockets"]}
    assert ("1", f"127.0.0.1:{port}", "ESTABLISHED") in peers
    assert (job / stuck["stack_file"]).read_text().startswith(stuck["stack"])
    assert seen["machine"]["memory"]["MemTotal"] > 0
    assert "failed" not in seen
    assert bench.call("poll", job)["evidence"]["logs"] == seen["logs"]
    # The runner waits for its peers to be queried; a stop has an effect nevertheless.
    assert bench.call("stop", job, "rank 1 hangs")["state"] == "running"
    record = bench.ended(job)
    assert (record.reason, record.message) == (EndReason.STOPPED, "rank 1 hangs")
    assert bench.call("evidence", job) == seen, "it stays when the job is over"


def test_a_silent_command_is_ended_as_a_hang(bench):
    (bench.root / "stopped.sh").write_text("echo begun; kill -STOP $$; sleep 300")
    job = bench.job("bash stopped.sh & wait", hang_s=1.0)
    bench.call("start", job)
    watch = bench.popen("watch", job)
    out, err = watch.communicate(timeout=60)
    assert not err, err.decode()
    events = [json.loads(line) for line in out.splitlines()]
    record = bench.ended(job)
    assert record.reason is EndReason.HANG
    assert re.fullmatch(r"no progress: nothing new in logs/main\.log for \d+ s", record.message)
    report = [event for event in events if event["event"] == "hang"]
    assert [(event["message"], event["number"]) for event in report] == [(record.message, 1)]
    assert events[-1]["record"]["reason"] == "hang"
    seen = json.loads((job / "evidence.json").read_text())
    assert (seen["complete"], seen["message"]) == (True, record.message)
    states = [one["state"] for one in seen["processes"]]
    assert [state for state in states if "T (stopped)" in state], "a stopped process is reported as stopped"
    assert seen["logs"][0]["last_line"] == "begun"


@ours
def test_evidence_is_collected_from_a_healthy_job(bench, wait):
    """Inspection harms no process, even one that does not respond."""
    python = f"{sys.executable} -I -c 'import time; print(1, flush=True); time.sleep(300)'"
    job = bench.job(python)
    bench.call("start", job)
    wait(lambda: bench.log(job), "its first output")
    seen = bench.call("evidence", job)
    assert (seen["why"], seen["message"], seen["state"]) == ("requested", "", "running")
    assert [one for one in seen["processes"] if sys.executable in one["cmdline"] and "stack" not in one]
    assert bench.call("poll", job)["state"] == "running"
    bench.call("stop", job, "over")
    assert bench.ended(job).message == "over"


@ours
def test_py_spy_and_nvidia_smi_are_used_if_installed(bench, wait):
    spy = bench.root / "bin" / "py-spy"
    spy.parent.mkdir()
    spy.write_text('#!/bin/sh\necho "dumped $1 $2 $3"\n')
    spy.chmod(0o755)
    smi = spy.with_name("nvidia-smi")
    smi.write_text("#!/bin/sh\necho '| NVIDIA-SMI | 87% |'\n")
    smi.chmod(0o755)
    path = f"{spy.parent}:{os.environ['PATH']}"
    job = bench.job(
        f"{sys.executable} -c 'print(1, flush=True); import time; time.sleep(300)'", env={"PATH": path}
    )
    bench.call("start", job)
    wait(lambda: bench.log(job), "its first output")
    seen = bench.call("evidence", job, env={"PATH": path})
    assert seen["gpus"] == (job / "evidence" / "nvidia-smi.txt").read_text() == "| NVIDIA-SMI | 87% |\n"
    python = next(one for one in seen["processes"] if "stack" in one)
    assert (python["stack_by"], python["stack"]) == ("py-spy", f"dumped dump --pid {python['pid']}\n")
    bench.call("stop", job, "over")
    bench.ended(job)


@ours
def test_evidence_of_ended_or_missing_jobs_has_a_message(bench, wait):
    job = bench.job("echo 1; exec sleep 300")
    assert bench.call("evidence", job)["message"] == "job has ended; no evidence was collected"
    assert bench.call("evidence", bench.root)["message"].endswith("job.json is missing or not JSON")
    pid = bench.call("start", job)["pid"]
    wait(lambda: bench.log(job), "its first output")
    bench.kill_runner(pid)
    wait(lambda: not Path(f"/proc/{pid}").exists(), "the runner's end")
    seen = bench.call("evidence", job)
    assert (seen["state"], [one["cmdline"] for one in seen["processes"]]) == ("lost", ["sleep 300"])
    bench.call("reap", bench.workspace)


@ours
def test_the_next_leg_is_a_new_chance(bench):
    """The silence of a leg that ended in time does not count as a hang of the next leg."""
    beat = '"$TIPCFLOW_WORKSPACE"/jobs/r1/train%2Fnorm_train/1/heartbeat.json'
    silent = f"until grep -q 'no progress' {beat}; do sleep 0.1; done"
    job = bench.job(silent, "echo two", legs=True, keep_going=True, hang_s=1.0, hang_wait_s=60.0)
    bench.call("start", job)
    out = bench.popen("watch", job).communicate(timeout=60)[0]
    report = [event for event in map(json.loads, out.splitlines()) if event["event"] == "hang"]
    assert [bool(event["message"]) for event in report] in ([True], [])  # it may end before the inspection
    record = bench.ended(job)
    assert record.ok
    legs = [json.loads(line) for line in (job / "legs.jsonl").read_text().splitlines()]
    assert [(leg["reason"], bool(leg["message"])) for leg in legs] == [("exited", True), ("exited", False)]


def test_late_job_is_inspected_before_its_end(bench):
    job = bench.job("echo begun; sleep 300", deadline_s=1.0)
    bench.call("start", job)
    record = bench.ended(job)
    assert (record.reason, record.message) == (EndReason.DEADLINE, "not done within 1 s")
    seen = json.loads((job / "evidence.json").read_text())
    assert (seen["why"], seen["message"], seen["complete"]) == ("deadline", "not done within 1 s", True)
    assert [one["cmdline"] for one in seen["processes"] if one["cmdline"].startswith("sleep")] == ["sleep 300"]
    assert seen["logs"][0]["last_line"] == "begun"


@ours
def test_inspection_of_a_late_job_has_a_deadline(bench):
    """As where the kernel does not respond: the deadline is not put off for long."""
    source = bench.runner.read_bytes()
    slow = source.replace(b"LATE_S = 10.0", b"LATE_S = 0.2").replace(
        b"def collect(self) -> Json:", b"def collect(self) -> Json:\n        time.sleep(300)", 1
    )
    assert slow.count(b"time.sleep(300)") == 1
    assert b"LATE_S = 0.2" in slow
    bench.runner.write_bytes(slow)
    record = bench.end_of("sleep 300", deadline_s=0.2)
    assert record.reason is EndReason.DEADLINE


# Two lines at the start, like a rank that is not rank 0: no iteration is counted.
MUTE = "mkdir -p log; echo joined > log/workerlog.2; while [ ! -e over ]; do sleep 0.1; done"


def silent_job(bench):
    """A job with peers, whose only rank prints no iterations."""
    job = bench.job(MUTE, hang_s=1.0, progress=("log/workerlog.*",), peers=("10.0.0.9",))
    bench.call("start", job)
    return job


@ours
def test_silent_rank_without_counts_is_not_ended_while_peers_progress(bench, wait):
    job = silent_job(bench)
    wait(lambda: beat(bench, job).get("hang"), "the silence")
    assert beat(bench, job)["hang_unsure"] is True
    # A controller that collects evidence meanwhile gets it at once.
    assert bench.call("evidence", job)["why"] == "requested"
    bench.call("peers", job, "active")
    wait(lambda: not (job / "peers.json").exists(), "the next silence, for which the report does not count")
    wait(lambda: beat(bench, job)["hang_number"] == 2, "its number")
    (bench.root / "over").touch()
    record = bench.ended(job)
    assert (record.reason, record.message) == (EndReason.EXITED, "")


@ours
def test_a_silent_rank_is_ended_when_its_peers_are_silent_too(bench, wait):
    job = silent_job(bench)
    wait(lambda: beat(bench, job).get("hang"), "the silence")
    watch = bench.popen("watch", job)
    bench.call("peers", job, "silent")
    record = bench.ended(job)
    assert record.reason is EndReason.HANG
    out, err = watch.communicate(timeout=60)
    assert not err, err.decode()
    report = [event for event in map(json.loads, out.splitlines()) if event["event"] == "hang"]
    assert report[0]["unsure"] is True
    seen = json.loads((job / "evidence.json").read_text())
    assert (seen["why"], seen["complete"], seen["message"]) == ("hang", True, record.message)


def reported(folder, capsys, *hangs):
    """(number, message) of the printed hangs, for these heartbeats one after the other."""
    seen = Watch(str(folder), {})
    for hang in hangs:
        seen.report_hang({"progress": {}, "t": 1.0, **hang})
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [(event["number"], event["message"]) for event in events]


@ours
def test_hang_is_identified_by_its_number(bench, capsys):
    first, second = ({"hang": "no progress", "hang_number": number} for number in (1, 2))
    over = {"hang": "", "hang_number": 1}
    hangs = (first, first | {"hang": "reworded"}, over, second, second)
    assert reported(bench.root, capsys, *hangs) == [(1, "no progress"), (2, "no progress")]


@ours
def test_the_message_of_an_older_runner_identifies_its_hang(bench, capsys):
    hangs = ({}, {"hang": "one"}, {"hang": "one"}, {"hang": ""}, {"hang": "two"})
    assert reported(bench.root, capsys, *hangs) == [(0, "one"), (0, "two")]
