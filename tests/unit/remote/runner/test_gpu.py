"""GPU use through nvidia-smi: a stand-in that prints real output."""

import json
import os
import sys
import time
from pathlib import Path

import pytest

from tipcflow.remote.runner.gpu import Gpu

GOLDEN = Path(__file__).parents[3] / "golden" / "gpu"
SMI = f"""#!{sys.executable}
import os, sys, time
while True:
    if "--query-gpu" in sys.argv[1]:
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
