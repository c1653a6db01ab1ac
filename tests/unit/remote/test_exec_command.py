"""Commands that run in containers and pods: their text (golden), and what a shell makes of them."""

import subprocess
from pathlib import Path

import pytest
from tests.support.expected.golden import assert_golden

from tipcflow.domain import DockerExec, ExecTarget, KubernetesExec
from tipcflow.remote.exec_command import exec_command, skips_tls, split_end

GOLDEN = Path(__file__).parents[2] / "golden" / "remote"
DOCKER = DockerExec(kind="docker", container="tipcflow-a")
POD = KubernetesExec(kind="kubernetes", pod="tipcflow-0")
FULL = KubernetesExec(
    kind="kubernetes", pod="job/nodes-0", namespace="ci", container="node", context="ci@lab", program="oc"
)


@pytest.mark.parametrize(
    ("name", "target"),
    [("exec_docker", DOCKER), ("exec_pod", POD), ("exec_full", FULL)],
    ids=["docker", "pod", "all options"],
)
def test_commands_equal_golden_files(name: str, target: ExecTarget) -> None:
    assert_golden(GOLDEN / f"{name}.sh", exec_command(target, "echo 'a b' \"$HOME\"") + "\n")


def test_query_of_the_certificate_equals_the_golden_file() -> None:
    assert_golden(GOLDEN / "exec_tls.sh", skips_tls(FULL) + "\n")


@pytest.mark.parametrize("command", ["echo hello; exit 3", "kill -9 $$", "exec sh -c 'exit 3'", "echo $1"])
def test_end_of_every_command_is_reported(command: str, tmp_path: Path) -> None:
    stand_in = tmp_path / "docker"
    stand_in.write_text('#!/bin/sh\nshift 3\nexec "$@"\n')
    stand_in.chmod(0o755)
    target = DOCKER.model_copy(update={"program": str(stand_in)})
    done = subprocess.run(["/bin/sh", "-c", exec_command(target, command)], capture_output=True, check=False)
    own, has_ended = split_end(done.stderr)
    assert (own.replace(b"Killed\n", b""), has_ended) == (b"", True)
    assert done.returncode == {"kill -9 $$": 137, "echo $1": 0}.get(command, 3)
    assert done.stdout == {"echo hello; exit 3": b"hello\n", "echo $1": b"\n"}.get(command, b"")


@pytest.mark.parametrize(
    ("stderr", "expected"),
    [
        (b"No such container: a\n", (b"No such container: a\n", False)),
        (b"oops\n\ntipcflow: the command ended with 3\n", (b"oops\n", True)),
        (b"\ntipcflow: the command ended with 3\ncommand terminated with exit code 3\n", (b"", True)),
        (b"tipcflow: the command ended with 3\n", (b"tipcflow: the command ended with 3\n", False)),
        (b"", (b"", False)),
    ],
)  # fmt: skip
def test_the_last_report_of_an_end_is_removed(stderr: bytes, expected: tuple[bytes, bool]) -> None:
    assert split_end(stderr) == expected
