"""A machine with GPUs whose programs are stand-ins: nvidia-smi, uv, tipcflow and interpreters."""

import os
import sys
from pathlib import Path

import pytest

from tipcflow.remote.runner import facts

HOST = {
    "hostname": "gpu-1",
    "os": "Debian GNU/Linux 12 (bookworm)",
    "kernel": "6.1.0",
    "architecture": "x86_64",
    "cpu_model": "Intel Xeon",
    "cpu_count": 64,
    "memory_bytes": 512 << 30,
    "disk_free_bytes": 900 << 30,
}
SMI = """#!/bin/bash
[ -z "$STUB_SMI_FAILS" ] || { echo "NVIDIA-SMI has failed: no communication with the driver"; exit 9; }
case $1 in
    --query-gpu=*)
        for i in $(seq 1 $STUB_GPUS); do
            echo "NVIDIA H100 80GB HBM3, GPU-$i, 81559, 570.124.06, 9.0"
        done ;;
    topo) echo "GPU0 GPU1 NV18" ;;
    *) echo "| NVIDIA-SMI 570.124.06    Driver Version: 570.124.06    CUDA Version: 12.8 |" ;;
esac
"""
# Makes the interpreter of an environment, and the locked requirements.
UV = """#!/bin/bash
echo "uv $*" >> "$STUB_CALLS"
last=${!#}
case "$1 $2" in
    "venv "*)
        mkdir -p "$last/bin"
        cp "$(dirname "$0")/interpreter" "$last/bin/python"
        cp "$(dirname "$0")/interpreter" "$last/bin/torchrun" ;;
    "pip compile")
        printf '%s==1 \\\\\\n    --hash=sha256:00\\n' paddlepaddle-gpu auto-log > "$last" ;;
    "pip sync")
        case $last in
            *$STUB_BROKEN_ENVIRONMENT) [ -z "$STUB_BROKEN_ENVIRONMENT" ] || {
                echo "error: hash mismatch" >&2; echo "  hint: retry" >&2; exit 1; } ;;
        esac ;;
esac
"""
INTERPRETER = """#!/bin/bash
echo "python $*" >> "$STUB_CALLS"
case "$*" in
    *run_check*) echo "PaddlePaddle works well on 8 GPUs." ;;
    *"import json, paddle"*) echo '{"paddle": "3.3.1", "paddle: CUDA": "12.6", "paddle: NCCL": "2.25.1"}' ;;
    *"import json, torch"*) echo '{"torch": "2.13.0+cu130", "torch: CUDA": "13.0", "torch: NCCL": "2.28.9"}' ;;
    *mmmg_toy*"--rank 1"*) echo "[rank 1] wrong value" >&2; exit ${STUB_TOY_FAILS:-0} ;;
    *mmmg_*) echo "rank 0 of 2, backend nccl, device gpu, seed 1" ;;
esac
"""
TIPCFLOW = """#!/bin/bash
echo "tipcflow $*" >> "$STUB_CALLS"
case "$*" in
    "run "*two_normal*)
        echo '{"checks": [], "run": {"id": "r-2", "status": "failed",
            "reason": "node a, rank 1: NCCL error\\n  hint: retry"}}'
        exit 1 ;;
    "run "*amp_o2*) echo "infra_failure: node a: disk full" >&2; exit 5 ;;
    "run "*)
        [ -z "$STUB_SLOW" ] || { touch "$STUB_SLOW"; sleep 60; }
        echo '{"run": {"id": "r-1", "status": "pass", "reason": ""}, "checks": [
            {"check": "ran.steps", "status": "pass"}, {"check": "loss.falling", "status": "pass"},
            {"check": "speed.ips", "status": "insufficient_data"}]}' ;;
    "export "*)
        echo "step,leg,status,reason,node,exit_code,duration_s,gpu_rss,inference_time"
        echo "norm/infer_gpu,trt_fp16,pass,,a,0,3.5,512.0,0.81"
        echo "norm/infer_cpu,mkldnn,not_run,no AVX512,a,,nan,," ;;
    "scaling run"*"--precision amp"*)
        echo '{"models": {}, "topologies": [
            {"topology": "1n1g", "status": "failed", "reason": "rank 0: loss is nan\\n  hint: lower the rate"},
            {"topology": "2n8g", "status": "not_run", "reason": "2 nodes needed, cluster local has 1"}]}'
        echo "note: no plot was written" >&2
        exit 1 ;;
    "scaling run"*)
        echo '{"models": {"m": {"1n1g": {"median_speed": 410.5, "speedup": 1.0, "efficiency": 1.0},
            "1n8g": {"median_speed": 2955.6, "speedup": 7.2, "efficiency": 0.9}}},
            "notes": ["spread of 1n8g: 9 %"],
            "topologies": [{"topology": "1n1g", "status": "pass", "reason": ""},
            {"topology": "1n8g", "status": "pass", "reason": ""},
            {"topology": "2n8g", "status": "not_run", "reason": "2 nodes needed, cluster local has 1"}]}' ;;
    "doctor "*)
        echo '{"ok": false, "findings": [
            {"where": "here", "what": "git", "ok": true, "found": "/usr/bin/git", "fix": ""},
            {"where": "here", "what": "ping", "ok": false, "found": "", "fix": "apt-get install iputils-ping"},
            {"where": "node a", "what": "login", "ok": true, "found": "127.0.1.1", "fix": ""}]}'
        exit 5 ;;
esac
"""


class GpuMachine:
    """The machine: its programs, the calls of uv, tipcflow and interpreters, and a folder with wheels."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        programs = {"nvidia-smi": SMI, "uv": UV, "interpreter": INTERPRETER, "tipcflow": TIPCFLOW}
        for name, text in {**programs, "sshd": "#!/bin/sh\n", "ssh-keygen": "#!/bin/sh\n"}.items():
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)
        self.wheels = folder / "wheels"
        self.wheels.mkdir()
        tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
        self.add_wheel(f"paddlepaddle_gpu-3.3.1-{tag}-{tag}-linux_x86_64.whl")
        self.add_wheel("auto_log-1.2.0-py3-none-any.whl")
        self.env = {
            "PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin",
            "STUB_CALLS": str(folder / "calls"),
            "STUB_GPUS": "8",
            # tools/lock_gpu.sh prefers the uv of this folder.
            "TIPCFLOW_HOME": str(folder / "home"),
        }
        for name, value in self.env.items():
            monkeypatch.setenv(name, value)

    def add_wheel(self, name: str) -> None:
        (self.wheels / name).touch()

    @property
    def calls(self) -> list[str]:
        file = Path(os.environ["STUB_CALLS"])
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GpuMachine:
    monkeypatch.setattr(facts, "machine", lambda folder: HOST)
    return GpuMachine(tmp_path, monkeypatch)
