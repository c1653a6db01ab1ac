"""The facts that a node reports about itself."""

import os
import platform
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tipcflow.domain import NodeFacts
from tipcflow.remote.runner import facts as module
from tipcflow.remote.runner.framework import compiler_version, cudnn_version, software, toolkit_version, version_of

pytestmark = pytest.mark.process

GOLDEN = Path(__file__).parents[3] / "golden" / "gpu"

PADDLE = """# THIS FILE IS GENERATED FROM PADDLEPADDLE SETUP.PY
full_version     = '3.3.1'
major            = '3'
nccl_version     = '22504'
cuda_version     = '12.6'
cudnn_version    = '9.5.1'
tensorrt_version = 'None'
commit           = '7688495538f4d6c1893f084dd238a402e8f68ab6'
def show(): raise RuntimeError("must not be imported")
"""
TORCH = """from typing import Optional
__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']
__version__ = '2.13.0+cpu'
debug = False
cuda: Optional[str] = None
git_version = '0123abcd'
"""


def test_facts_describe_this_machine(bench):
    before = time.time()
    report = bench.call("facts", bench.workspace, "--python", sys.executable)
    assert before - 1 < report.pop("clock") < time.time() + 1
    known = NodeFacts.model_validate({"node": "a", **report})
    assert known.hostname == socket.gethostname()
    assert known.kernel == platform.release()
    assert known.python == platform.python_version()
    assert known.cpu_count == os.cpu_count()
    assert known.cpu_model
    assert known.memory_bytes > known.memory_available_bytes > 1 << 20
    assert known.swap_bytes >= 0
    assert known.architecture == platform.machine()
    assert known.disk_free_bytes > 0
    assert known.os
    assert known.unreachable == {}
    assert known.unfinished == ()


def test_facts_of_a_missing_workspace_include_the_free_space(bench, tmp_path):
    assert bench.call("facts", tmp_path / "not" / "yet", "--python", sys.executable)["disk_free_bytes"] > 0


def test_peers_are_reached_by_tcp_or_have_a_reason(bench):
    with socket.socket() as server, socket.socket() as closed:
        for sock in (server, closed):
            sock.bind(("127.0.0.1", 0))
        server.listen()
        ports = server.getsockname()[1], closed.getsockname()[1]
        peers = f"b=127.0.0.1:{ports[0]},c=127.0.0.1:{ports[1]},d=no-such-host.invalid,e=127.0.0.1"
        report = bench.call(
            "facts", bench.workspace, "--python", sys.executable, "--peers", peers, "--port", ports[0]
        )
    assert set(report["unreachable"]) == {"c", "d"}
    assert report["unreachable"]["c"].startswith(f"127.0.0.1 port {ports[1]}: Connection refused")
    assert "no-such-host.invalid" in report["unreachable"]["d"]


def test_python_that_does_not_work(bench):
    report = bench.call("facts", bench.workspace, "--python", "/bin/false")
    assert report.get("python", "") == ""
    assert report["packages"] == {}


def test_an_environment_can_have_two_frameworks(bench, tmp_path):
    for name, file, text in (("paddle", "version/__init__.py", PADDLE), ("torch", "version.py", TORCH)):
        path = tmp_path / name / file
        path.parent.mkdir(parents=True)
        path.write_text(text)
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('imported')")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    report = bench.call("facts", bench.workspace, "--python", str(python))
    assert report["frameworks"] == {"paddle": "3.3.1", "torch": "2.13.0+cpu"}
    assert (report["framework"], report["framework_version"]) == ("paddle", "3.3.1")


@pytest.mark.parametrize(
    ("name", "file", "text", "expected"),
    [
        (
            "paddle",
            "version/__init__.py",
            PADDLE,
            {
                "framework": "paddle",
                "framework_version": "3.3.1",
                "framework_commit": "7688495538f4d6c1893f084dd238a402e8f68ab6",
                "cuda": "12.6",
                "cudnn": "9.5.1",
                "nccl": "22504",
            },
        ),
        (
            "paddle",
            "version/__init__.py",
            PADDLE.replace("'12.6'", "'False'").replace("'9.5.1'", "'False'").replace("'22504'", "'0'"),
            {
                "framework": "paddle",
                "framework_version": "3.3.1",
                "framework_commit": "7688495538f4d6c1893f084dd238a402e8f68ab6",
            },
        ),
        (
            "torch",
            "version.py",
            TORCH,
            {"framework": "torch", "framework_version": "2.13.0+cpu", "framework_commit": "0123abcd"},
        ),
        ("torch", "other.py", "", {"framework": "torch", "framework_version": "", "framework_commit": ""}),
    ],
)
def test_version_is_read_as_text(tmp_path, name, file, text, expected):
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert version_of(name, str(tmp_path)) == expected


def test_framework_of_an_environment_is_read_without_an_import(bench, tmp_path, monkeypatch):
    package = tmp_path / "site" / "paddle"
    (package / "version").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('must not be imported')")
    (package / "version" / "__init__.py").write_text(PADDLE)
    report = bench.call(
        "facts", bench.workspace, "--python", sys.executable, env={"PYTHONPATH": str(tmp_path / "site")}
    )
    assert (report["framework"], report["framework_version"], report["cuda"]) == ("paddle", "3.3.1", "12.6")


def test_gpus_are_read_from_nvidia_smi(monkeypatch):
    row = "NVIDIA H200, GPU-aaaa, 143771, 570.124.06, 9.0\n"
    monkeypatch.setattr(module, "output", lambda *command: row * 2)
    report = module.gpus()
    assert report["driver"] == "570.124.06"
    assert (
        report["gpus"]
        == [
            {
                "name": "NVIDIA H200",
                "uuid": "GPU-aaaa",
                "memory_bytes": 143771 * 1024**2,
                "compute_capability": "9.0",
            }
        ]
        * 2
    )
    monkeypatch.setattr(module, "output", lambda *command: "")
    assert module.gpus() == {"gpus": [], "driver": ""}


@pytest.mark.parametrize("file", ["smi_h200_580.txt", "smi_h100_580.txt"])
def test_recorded_output_of_nvidia_smi_is_read(monkeypatch, file):
    """tests/golden/gpu/README.md has the hardware and the command."""
    rows, page = ((GOLDEN / name).read_text() for name in ("query_h200_580.csv", file))
    monkeypatch.setattr(module, "output", lambda *command: rows if len(command) > 1 else page)
    report = module.gpus()
    assert (report["driver"], report["cuda_of_driver"]) == ("580.159.04", "13.0")
    assert [(gpu["name"], gpu["memory_bytes"] >> 20) for gpu in report["gpus"]] == [("NVIDIA H200", 143771)]


def test_packages_have_the_versions_of_libraries(tmp_path):
    """PyTorch's wheels have neither cuDNN nor NCCL; a system's library would be another one."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").touch()
    (tmp_path / "torch" / "version.py").write_text(TORCH)
    for name, version in (("nvidia_cudnn_cu13", "9.19.0.56"), ("nvidia_nccl_cu13", "2.28.9")):
        folder = tmp_path / f"{name}-{version}.dist-info"
        folder.mkdir()
        name = name.replace("_", "-")
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    report = software(str(python))
    assert (report["cudnn"], report["nccl"]) == ("9.19.0.56", "2.28.9")


def test_addresses_without_iproute2_come_from_the_kernel(monkeypatch):
    tree = (
        "  +-- 127.0.0.0/8 2 0 2\n        |-- 127.0.0.1\n           /32 host LOCAL\n"
        "     |-- 192.0.2.2\n        /32 host LOCAL\n     |-- 192.0.2.3\n        /32 link BROADCAST\n"
    )
    monkeypatch.setattr(module, "output", lambda *command: "")
    monkeypatch.setattr(module, "read_text", lambda path: tree if path == "/proc/net/fib_trie" else "")
    assert module.addresses() == {"ips": ["192.0.2.2"]}


def test_the_newest_cuda_of_the_driver_is_read(monkeypatch):
    """The header of nvidia-smi 410.79, from the document that lists these facts."""
    header = "| NVIDIA-SMI 410.79       Driver Version: 410.79       CUDA Version: 10.0     |\n"
    rows = "Tesla P40, GPU-aaaa, 24451, 410.79, 6.1\n"
    monkeypatch.setattr(module, "output", lambda *command: rows if len(command) > 1 else header)
    assert module.gpus()["cuda_of_driver"] == "10.0"


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"version.json": '{"cuda": {"name": "CUDA SDK", "version": "12.6.3"}}'}, "12.6.3"),
        ({"version.txt": "CUDA Version 10.0.130\n"}, "10.0.130"),
        ({"version.json": "[]", "version.txt": "CUDA Version 10.2.89\n"}, "10.2.89"),
        ({"version.json": "{", "version.txt": "?"}, ""),
        ({}, ""),
    ],
)
def test_the_version_of_a_cuda_toolkit_is_read(tmp_path, files, version):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert toolkit_version(str(tmp_path)) == version


def test_the_version_of_a_cuda_compiler_is_read(tmp_path):
    """The last lines of nvcc 13.0."""
    nvcc = tmp_path / "nvcc"
    nvcc.write_text(
        "#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.88'\n"
        "echo Build cuda_13.0.r13.0/compiler.36424714_0\n"
    )
    nvcc.chmod(0o755)
    assert compiler_version(str(nvcc)) == "13.0.88"
    assert compiler_version(str(tmp_path / "none")) == ""
    assert compiler_version("/bin/false") == ""


CUDNN = "#define CUDNN_MAJOR 7\n#define CUDNN_MINOR 5\n#define CUDNN_PATCHLEVEL 0\n"


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"cudnn.h": CUDNN}, "7.5.0"),
        ({"cudnn.h": '#include "cudnn_version.h"\n', "cudnn_version.h": CUDNN.replace("7", "9")}, "9.5.0"),
        ({"cudnn.h": "#define CUDNN_MAJOR 7\n"}, ""),
        ({}, ""),
    ],
)
def test_version_of_cudnn_is_read_from_headers(tmp_path, files, version):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert cudnn_version(str(tmp_path)) == version


def test_facts_list_container_engines(monkeypatch):
    """The line of docker 28.2.2; that of NVIDIA's tool is not recorded: it needs a GPU's driver."""
    printed = {
        "docker": "Docker version 28.2.2, build e6534b4\n",
        "nvidia-container-cli": "cli-version: 1.17.8\nlib-version: 1.17.8\n",
    }
    monkeypatch.setattr(module, "output", lambda program, *_: printed[program])
    assert module.engines() == {"docker": "28.2.2", "nvidia_docker": "1.17.8"}
    monkeypatch.setattr(module, "output", lambda *_: "")
    assert module.engines() == {}


@pytest.fixture
def held(monkeypatch):
    """Nothing waits long, and what `held` holds waits until the test is over."""
    over = threading.Event()
    monkeypatch.setattr(module, "LIMIT_S", 0.3)
    monkeypatch.setattr(module, "software", lambda python: {"python": "3.7.9"})
    yield over
    over.set()


def test_a_peer_whose_check_did_not_end_is_not_reachable(held, monkeypatch, tmp_path):
    def unreachable(name, address, port):
        if name == "b":
            held.wait(60)
        return "" if name == "c" else "refused"

    monkeypatch.setattr(module, "unreachable", unreachable)
    report = module.facts(str(tmp_path), sys.executable, "b=10.0.0.2,c=10.0.0.3,d=10.0.0.4", 22)
    assert report["unreachable"] == {"b": "10.0.0.2: no response within 0.3 s", "d": "refused"}


def test_a_peer_whose_check_breaks_is_not_reachable(held, monkeypatch, tmp_path):
    def unreachable(name, address, port):
        raise ValueError("surprise")

    monkeypatch.setattr(module, "unreachable", unreachable)
    monkeypatch.setattr(threading, "excepthook", lambda args: None)
    assert set(module.facts(str(tmp_path), sys.executable, "b=10.0.0.2", 22)["unreachable"]) == {"b"}


def test_a_part_that_did_not_end_is_not_known_rather_than_none(held, monkeypatch, tmp_path):
    def gpus():
        held.wait(60)
        return {"gpus": []}

    monkeypatch.setattr(module, "gpus", gpus)
    monkeypatch.setattr(module, "machine", lambda workspace: held.wait(60))
    report = module.facts(str(tmp_path), sys.executable, "", 22)
    assert {"machine", "gpus"} <= set(report["unfinished"])
    assert {"gpus", "cpu_flags", "disk_free_bytes"}.isdisjoint(report)
    assert report["python"] == "3.7.9"
    report.pop("clock")
    assert NodeFacts.model_validate({"node": "a", **report}).cpu_flags == ()


def test_a_command_that_times_out_has_no_output(held, monkeypatch, tmp_path):
    """A driver that hangs is not a machine without GPUs."""

    def slow(*command):
        raise subprocess.TimeoutExpired(command, 4)

    monkeypatch.setattr(module, "output", slow)
    report = module.facts(str(tmp_path), sys.executable, "", 22)
    assert {"gpus", "addresses"} <= set(report["unfinished"])
    assert "gpus" not in report


def test_output_distinguishes_silence_from_slowness(monkeypatch):
    monkeypatch.setattr(module, "LIMIT_S", 1.2)
    assert module.output("/no/such") == module.output("false") == ""
    with pytest.raises(subprocess.TimeoutExpired):
        module.output("sleep", "60")


def test_an_interpreter_that_hangs(monkeypatch, tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 60\n")
    python.chmod(0o755)
    with pytest.raises(subprocess.TimeoutExpired):
        software(str(python))
