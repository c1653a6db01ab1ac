"""`tools/gpu_day.sh` by contract: no test has a GPU; nvidia-smi, uv, tipcflow and interpreters are stand-ins."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.expected.golden import assert_golden
from tests.unit.devcluster.gpu_day.conftest import GpuMachine

from devcluster.gpu_day.main import main
from devcluster.gpu_day.report import markdown
from tipcflow.install.uv import base_python

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[4]
MAIN = "devcluster.gpu_day.main"
GOLDEN = ROOT / "tests" / "golden" / "devcluster"


def statuses(output: Path) -> dict[str, tuple[str, str]]:
    document = json.loads((output / "report.json").read_text())
    return {part["part"]: (part["status"], part["reason"]) for part in document["parts"]}


def plain(text: str, machine: GpuMachine) -> str:
    """A text without the names of this machine's folders and Python."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    text = text.replace(str(machine.folder), "/srv/gpu-day").replace(base_python(), "/usr/bin/python3")
    return text.replace(f"node-gpu.txt {version}", "node-gpu.txt 3.11")


def normalized(document: Any) -> Any:
    """A report without times and the commit."""
    if isinstance(document, dict):
        fixed = {"seconds": 1.0, "started": "2026-11-26 12:00", "tipcflow": "0.1.0 0123456"}
        return {key: fixed.get(key, normalized(value)) for key, value in document.items()}
    return [normalized(value) for value in document] if isinstance(document, list) else document


def test_report_contains_all_parts_after_failures(
    machine: GpuMachine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    assert main(["--wheels", str(machine.wheels), "--output", str(output)]) == 1
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [str(output / "report.md"), "failed"]
    assert "8 x NVIDIA H100 80GB HBM3 (79.6 GiB), driver 570.124.06" in captured.err
    document = json.loads((output / "report.json").read_text())
    assert (output / "report.md").read_text() == markdown(document)
    assert_golden(GOLDEN / "gpu_day.md", plain(markdown(normalized(document)), machine))
    assert_golden(GOLDEN / "gpu_day.json", plain(json.dumps(normalized(document), indent=1) + "\n", machine))
    assert "tipcflow local down --force" in machine.calls
    for part in document["parts"]:
        for ran in part["commands"]:
            assert all((output / log).exists() for log in ran["logs"])


def test_parts_for_more_gpus_are_not_run(
    machine: GpuMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_GPUS", "1")
    assert main(["--output", str(tmp_path / "out")]) == 0
    seen = statuses(tmp_path / "out")
    missing = ("not_run", "the package index has no paddlepaddle-gpu 3.3.1: use --wheels")
    assert {seen[name] for name in ("paddle", "nodes", "chain", "fleet", "scaling_fp32", "clean")} == {missing}
    assert seen["torch"] == ("pass", "")
    assert seen["torch_toy"] == ("not_run", "2 GPUs needed, this machine has 1")
    assert seen["torch_chain"] == ("pass", "")
    started = [call.split(" --")[0] for call in machine.calls if call.startswith("tipcflow")]
    assert started == [
        "tipcflow local down",
        "tipcflow local up",
        "tipcflow doctor",
        "tipcflow run test_tipc/one_gpu/mnist.txt",
        "tipcflow show r-1",
        "tipcflow local down",
    ]


def test_existing_interpreter_replaces_the_environment_of_pytorch(
    machine: GpuMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_GPUS", "2")
    (machine.bin / "uv").unlink()
    monkeypatch.setenv("PATH", f"{machine.bin}:/usr/bin:/bin")
    python, output = machine.bin / "interpreter", tmp_path / "out"
    assert main(["--torch-python", str(python), "--output", str(output)]) == 0
    seen = statuses(output)
    assert {seen[name] for name in ("torch", "torch_chain", "torch_toy", "torch_torchrun")} == {("pass", "")}
    document = json.loads((output / "report.json").read_text())
    assert document["torch_python"] == str(python)
    commands = [ran["command"] for part in document["parts"] for ran in part["commands"]]
    assert not any(command.startswith("uv ") for command in commands)
    assert any(f"--python {python}" in command for command in commands)
    assert f"| PyTorch of | {python} |" in (output / "report.md").read_text()


def test_broken_environment_blocks_only_its_parts(
    machine: GpuMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_BROKEN_ENVIRONMENT", "node-gpu.txt")
    monkeypatch.setenv("STUB_TOY_FAILS", "1")
    assert main(["--wheels", str(machine.wheels), "--output", str(tmp_path / "out")]) == 1
    seen = statuses(tmp_path / "out")
    assert seen["paddle"] == ("failed", "exit code 1: error: hash mismatch")
    assert seen["fleet"] == ("blocked", "paddle is failed")
    assert seen["clean"] == ("not_run", "nodes was not started")
    assert seen["torch_toy"] == ("failed", "exit code 1: [rank 1] wrong value")
    assert seen["torch_mnist"] == ("pass", "")


def test_signal_ends_the_node_and_the_report(machine: GpuMachine, tmp_path: Path) -> None:
    output, started = tmp_path / "out", tmp_path / "started"
    process = subprocess.Popen(
        [sys.executable, "-m", MAIN, "--wheels", str(machine.wheels), "--output", str(output)],
        env={**os.environ, "STUB_SLOW": str(started)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not started.exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 3, stderr
    assert stdout.splitlines()[-1] == "cancelled"
    seen = statuses(output)
    assert seen["chain"] == seen["fleet"] == seen["torch_toy"] == ("cancelled", "stopped by SIGINT")
    assert seen["clean"] == ("pass", "")
    assert machine.calls[-1] == "tipcflow local down --force"


def test_dry_run_prints_all_commands(
    machine: GpuMachine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    machine.add_wheel(f"torch-2.13.0-{tag}-{tag}-manylinux_2_28_x86_64.whl")
    (machine.bin / "nvidia-smi").unlink()
    assert (
        main(["--dry-run", "--offline", "--wheels", str(machine.wheels), "--output", str(tmp_path / "out")]) == 0
    )
    captured = capsys.readouterr()
    assert captured.err == "note: this machine has no GPU: nvidia-smi is not installed; commands for 8 GPUs\n"
    assert_golden(GOLDEN / "gpu_day_dry_run.txt", plain(captured.out, machine))
    assert not (tmp_path / "out").exists()
    assert machine.calls == []


def test_dry_run_prints_the_commands_of_the_report(
    machine: GpuMachine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--wheels", str(machine.wheels), "--output", str(tmp_path / "out")]
    assert main([*words, "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    printed = [line for line in lines if line and not line.startswith(("#", "export ", "mkdir "))]
    main(words)
    document = json.loads((tmp_path / "out" / "report.json").read_text())
    started = {ran["command"] for part in document["parts"] for ran in part["commands"]}
    # The ID of a run is not known before.
    assert {re.sub(r"\br-\d\b", "{run}", command) for command in started} <= {
        line.replace("'{run}'", "{run}") for line in printed
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--offline"],
            "--offline: needs a folder with all wheels; found 'no --wheels'; expected",
        ),
        (["--offline", "--wheels", "https://x.invalid/w"], "--offline: needs a folder with all wheels"),
        (["--wheels", "/nonexistent"], "--wheels: no such folder; found '/nonexistent'"),
        (
            ["--wheels", "{empty}"],
            "the folder has no wheel of paddlepaddle-gpu 3.3.1 for this Python; found",
        ),
        (["--wheels", "{other}"], "for this Python; it has paddlepaddle_gpu-3.3.1-cp27-cp27mu-linux_x86_64.whl"),
        (
            ["--torch-python", "/nonexistent"],
            "--torch-python: no such interpreter; found '/nonexistent'; expected",
        ),
        (["--repeats", "0"], "--repeats: out of range; found '0'; expected 1 to 20"),
        (["--output", "{used}"], "--output: contains an earlier report"),
    ],
)
def test_wrong_option_is_reported_before_a_command_starts(
    machine: GpuMachine, tmp_path: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = {name: tmp_path / name for name in ("empty", "other", "used")}
    for folder in folders.values():
        folder.mkdir()
    (folders["other"] / "paddlepaddle_gpu-3.3.1-cp27-cp27mu-linux_x86_64.whl").touch()
    (folders["used"] / "report.json").write_text("{}")
    assert main([word.format(**folders) for word in words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("config_error: ")
    assert message in error
    assert machine.calls == []


def test_machine_without_gpus_or_programs_is_refused(
    machine: GpuMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--output", str(tmp_path / "out")]

    def message() -> str:
        assert main(words) == 5
        return capsys.readouterr().err

    (machine.bin / "uv").rename(machine.bin / "uv.gone")
    monkeypatch.setenv("PATH", f"{machine.bin}:/usr/bin:/bin")
    if subprocess.run(["bash", "-c", "command -v uv"], capture_output=True, check=False).returncode:
        assert message().startswith("infra_failure: missing on this machine: uv\n  hint: `make install` provides")
    (machine.bin / "uv.gone").rename(machine.bin / "uv")
    monkeypatch.setenv("STUB_GPUS", "0")
    assert message().startswith("infra_failure: this machine has no GPU: nvidia-smi lists none\n  hint: run")
    monkeypatch.setenv("STUB_SMI_FAILS", "yes")
    assert "the GPUs of this machine cannot be used: nvidia-smi failed: NVIDIA-SMI has failed" in message()
    (machine.bin / "nvidia-smi").unlink()
    assert "infra_failure: this machine has no GPU: nvidia-smi is not installed" in message()
    assert machine.calls == []


def test_script_starts_the_checks_from_any_folder(machine: GpuMachine, tmp_path: Path) -> None:
    (machine.bin / "nvidia-smi").unlink()
    command = [str(ROOT / "tools" / "gpu_day.sh"), "--dry-run", "--wheels", "wheels"]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"UV_FIND_LINKS={machine.wheels}" in done.stdout
