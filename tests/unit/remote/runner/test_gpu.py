"""GPU use through nvidia-smi: a stand-in that prints real output."""

import json
import os
import pwd
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tipcflow.remote.runner.gpu import FIRST_NAMESPACE, Gpu

GOLDEN = Path(__file__).parents[3] / "golden" / "gpu"
SMI = f"""#!{sys.executable}
import os, sys, time
while True:
    if "memory.total" in sys.argv[1]:
        print("GPU-aaaa, 4096")
        print("GPU-bbbb, [N/A]")
    elif "--query-gpu" in sys.argv[1]:
        print("GPU-aaaa, 87, 2048")
        print("GPU-bbbb, [N/A], 3")
    else:
        for pid in os.listdir("/proc"):
            try:
                env = open(f"/proc/{{pid}}/environ", "rb").read()
            except OSError:
                continue
            if b"PADDLE_TRAINER_ID=1" in env:
                print(f"GPU-aaaa, {{pid}}, 512")
                print(f"GPU-bbbb, {{pid}}, 256")
            if b"NEIGHBOR_ON_THE_GPU=1" in env:
                print(f"GPU-aaaa, {{pid}}, 3000")
        print("GPU-aaaa, 99999999, [Insufficient Permissions]")
    sys.stdout.flush()
    if "-lms" not in sys.argv:
        break
    time.sleep(0.1)
"""


@pytest.fixture
def smi(tmp_path):
    """A folder for PATH, with nvidia-smi in it."""
    folder = tmp_path / "gpu bin"
    folder.mkdir()
    (folder / "nvidia-smi").write_text(SMI)
    (folder / "nvidia-smi").chmod(0o755)
    return folder


@pytest.mark.process
def test_memory_is_by_rank_and_use_by_gpu(bench, smi, wait):
    job = bench.job("PADDLE_TRAINER_ID=1 sleep 300")
    bench.call("start", job, env={"PATH": f"{smi}:{os.environ['PATH']}"})
    samples = job / "samples.jsonl"

    def newest() -> dict:
        lines = samples.read_text().splitlines(keepends=True) if samples.exists() else []
        return json.loads(next((line for line in reversed(lines) if line.endswith("\n")), "{}"))

    # Two readers, of which either may be the first.
    wait(lambda: newest().get("gpu") and len(newest().get("gpus", ())) == 2, "a sample of memory and GPUs")
    last = newest()
    assert last["gpu"] == {"1": 768 * 1024**2}
    assert last["gpus"] == [
        {"uuid": "GPU-aaaa", "busy_percent": 87.0, "used_bytes": 2048 * 1024**2},
        {"uuid": "GPU-bbbb", "busy_percent": 0.0, "used_bytes": 3 * 1024**2},
    ]
    assert last["procs"] <= 2, "the readers of nvidia-smi are no processes of the job"
    bench.call("stop", job, "over")
    record = bench.ended(job)
    assert record.peak_gpu_bytes == {"1": 768 * 1024**2}
    assert record.killed == 0


@pytest.mark.process
def test_failed_command_records_the_processes_on_its_gpus(bench, smi, wait):
    go = bench.root / "go"
    text = f"PADDLE_TRAINER_ID=1 bash -c 'until [ -e \"{go}\" ]; do sleep 0.05; done; exit 1'"
    neighbor = subprocess.Popen(["sleep", "300"], env={"PATH": os.environ["PATH"], "NEIGHBOR_ON_THE_GPU": "1"})
    try:
        job = bench.job(text)
        bench.call("start", job, env={"PATH": f"{smi}:{os.environ['PATH']}"})
        samples = job / "samples.jsonl"
        wait(lambda: samples.exists() and '"gpu": {"1": ' in samples.read_text(), "a sample of the GPU's memory")
        go.touch()
        record = bench.ended(job)
    finally:
        neighbor.kill()
        neighbor.wait()
    if str(Path("/proc/self/ns/pid").readlink()) != FIRST_NAMESPACE:
        assert record.gpu_processes == (), "pids of another namespace"
        return
    other = record.gpu_processes[0]
    assert (other.pid, other.gpu, other.is_own, other.rank) == (neighbor.pid, 0, False, -1)
    assert (other.size_bytes, other.total_bytes) == (3000 * 1024**2, 4096 * 1024**2)
    assert other.command == f"sleep, user {pwd.getpwuid(os.getuid()).pw_name}"
    own = {(process.gpu, process.is_own, process.rank, process.size_bytes) for process in record.gpu_processes[1:]}
    assert own == {(0, True, 1, 512 * 1024**2), (1, True, 1, 256 * 1024**2)}


def test_gpu_readings_are_empty_without_nvidia_smi(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    gpu = Gpu()
    gpu.start({})
    assert (gpu.readers, gpu.read()) == ([], ({}, []))


class Piped:
    """A reader of which the test is the other end."""

    def __init__(self):
        end, self.write_end = os.pipe()
        os.set_blocking(end, False)
        self.stdout = os.fdopen(end, "rb", buffering=0)

    def say(self, text):
        os.write(self.write_end, text.encode())


@pytest.fixture
def piped():
    """A Gpu whose two nvidia-smi are pipes."""
    gpu = Gpu()
    pipes = [Piped(), Piped()]
    gpu.readers = pipes
    yield gpu
    for pipe in pipes:
        pipe.stdout.close()
        os.close(pipe.write_end)


def test_two_rounds_in_one_piece_are_not_added_up(piped):
    """nvidia-smi prints once a second; a reader may come later."""
    round_ = "GPU-aaaa, 7, 512\nGPU-bbbb, 7, 256\nGPU-bbbb, 8, 100\n"
    piped.readers[1].say(round_ * 2)
    assert piped.read()[0] == {7: 768 * 1024**2, 8: 100 * 1024**2}
    piped.readers[1].say("GPU-aaaa, 7, 5")
    piped.readers[1].say("13\nGPU-bbbb, 7, 2")
    assert piped.read()[0][7] == 769 * 1024**2, "a line counts when it is whole"
    piped.readers[1].say("56\n")
    assert piped.read()[0][7] == 769 * 1024**2


def test_a_gpu_that_a_process_has_left_no_longer_counts(piped, monkeypatch):
    piped.readers[1].say("GPU-aaaa, 7, 512\nGPU-bbbb, 7, 256\n")
    assert piped.read()[0] == {7: 768 * 1024**2}
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 60)
    piped.readers[1].say("GPU-bbbb, 7, 256\n")
    assert piped.read()[0] == {7: 256 * 1024**2}


@pytest.fixture
def neighbors():
    """Processes of this machine: of no run, and of a job of run r1."""
    env = {"PATH": os.environ["PATH"]}
    jobs = [{}, {"TIPCFLOW_JOB": "r1/train/1"}, {"TIPCFLOW_JOB": "r10/train/1"}]
    made = [subprocess.Popen(["sleep", "300"], env={**env, **job}) for job in jobs]
    yield made
    for one in made:
        one.kill()
        one.wait()


def test_processes_on_the_jobs_gpus(piped, neighbors, monkeypatch):
    monkeypatch.setattr("tipcflow.remote.runner.gpu.sees_whole_machine", lambda: True)
    monkeypatch.setattr(piped, "tool", "/nowhere/nvidia-smi")
    none, of_run, of_other_run = (one.pid for one in neighbors)
    piped.readers[0].say("GPU-aaaa, 7, 512\nGPU-bbbb, 7, 256\nGPU-cccc, 7, 256\n")
    piped.readers[1].say(f"GPU-bbbb, {os.getpid()}, 300\nGPU-bbbb, {os.getpid()}, 200\nGPU-cccc, {none}, 9\n")
    piped.read()
    piped.learn({os.getpid(): "4"})
    piped.readers[1].say(f"GPU-bbbb, {os.getpid()}, 100\nGPU-aaaa, {none}, 70\nGPU-bbbb, {of_other_run}, 80\n")
    piped.readers[1].say(f"GPU-aaaa, {of_run}, 60\nGPU-aaaa, 0, 5\nGPU-aaaa, 999999999, 5\n")
    found = piped.holders(1, "r1", {os.getpid()})
    keys = ("gpu", "pid", "is_own", "rank")
    assert [tuple(entry[key] for key in keys) for entry in found] == [
        (1, of_other_run, False, -1),
        (0, none, False, -1),
        (0, of_run, True, -1),
        (1, os.getpid(), True, 4),
    ]
    assert [entry["size_bytes"] >> 20 for entry in found] == [80, 70, 60, 200]
    assert {entry["total_bytes"] for entry in found if not entry["is_own"]} == {0}, "nvidia-smi failed"
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 60)
    assert [entry["pid"] for entry in piped.holders(1, "r1", {os.getpid()})] == [os.getpid()], "they left"


def test_pids_of_another_namespace_are_not_recorded(piped, neighbors, monkeypatch):
    monkeypatch.setattr(os, "readlink", lambda _: "pid:[4026532695]")
    piped.readers[0].say("GPU-aaaa, 7, 512\n")
    piped.readers[1].say(f"GPU-aaaa, {neighbors[0].pid}, 70\n")
    assert piped.holders(1, "r1", set()) == []


def test_recorded_lines_of_a_gpu_are_read(piped):
    """tests/golden/gpu/README.md has the hardware and the command."""
    piped.readers[0].say((GOLDEN / "lines_gpu.csv").read_text())
    piped.readers[1].say((GOLDEN / "lines_apps.csv").read_text())
    apps, gpus = piped.read()
    assert apps == {908: 1016 * 1024**2, 1115: 140070 * 1024**2, 1522: 712 * 1024**2, 1521: 712 * 1024**2}
    uuid = "GPU-00000000-0000-0000-0000-000000000001"
    assert gpus == [{"uuid": uuid, "busy_percent": 0.0, "used_bytes": 0}]


def test_unexpected_lines_are_omitted():
    gpu = Gpu()
    for row in (["NVIDIA-SMI has failed"], ["1", "2", "3", "4"], ["", "", ""], ["GPU-a", "x", "[N/A]"]):
        gpu.take(0, row, 1.0)
        gpu.take(1, row, 1.0)
    assert (gpu.gpus, gpu.apps) == ({}, {})
