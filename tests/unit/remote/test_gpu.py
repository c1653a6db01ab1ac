"""GPU use through nvidia-smi: a stand-in that prints what the real one prints."""

import json
import os
import sys

import pytest

from tipcflow.remote.runner.gpu import Gpu

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
                print(f"{{pid}}, 512")
                print(f"{{pid}}, 256")
        print("99999999, [Insufficient Permissions]")
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


def test_memory_by_rank_and_use_by_gpu(bench, smi, wait):
    job = bench.job("PADDLE_TRAINER_ID=1 sleep 300")
    bench.ask("start", job, env={"PATH": f"{smi}:{os.environ['PATH']}"})
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
    bench.ask("stop", job, "over")
    record = bench.ended(job)
    assert record.peak_gpu_bytes == {"1": 768 * 1024**2}
    assert record.killed == 0


def test_without_nvidia_smi_there_is_nothing(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    gpu = Gpu()
    gpu.start({})
    assert (gpu.readers, gpu.read()) == ([], ({}, []))


def test_lines_that_nobody_expects_are_left_out():
    gpu = Gpu()
    for row in (["NVIDIA-SMI has failed"], ["1", "2", "3", "4"], ["", ""], ["x", "5"]):
        gpu.take(0, row, 1.0)
        gpu.take(1, row, 1.0)
    assert (gpu.gpus, gpu.apps) == ({}, {})
