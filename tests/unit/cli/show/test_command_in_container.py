"""A command of a step that ran in a container, as a user pastes it in the suite's root."""

import os
import subprocess
from pathlib import Path

from tipcflow.domain import Command, Container, Node
from tipcflow.plan.spec.container import container_words
from tipcflow.report.text.jobs import command_line


def test_container_command_runs_without_a_job(tmp_path: Path) -> None:
    engine = tmp_path / "docker"
    engine.write_text('#!/bin/sh\nprintf "%s\\n" "$GPU" "$@"\n')
    engine.chmod(0o755)
    root = tmp_path / "runs" / "r" / "src"
    root.mkdir(parents=True)
    container = Container(image="i:1", python="/p", engine="docker")
    node = Node(name="a", address="h", python="/p", workspace=str(tmp_path), container=container)
    command = Command(text="make it", cwd="deploy", env={"GPU": "0"})
    line = command_line(command.model_copy(update={"container": container_words(node, command)}))
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    result = subprocess.run(
        ["bash", "-c", f"{line}; echo $TIPCFLOW_BIN"], cwd=root, env=env, capture_output=True, text=True
    )
    words = result.stdout.splitlines()
    assert words[0] == "0"
    assert words[words.index("-w") + 1] == f"{root}/deploy"
    assert words[words.index("--name") + 1]
    assert words[-4:-2] == ["bash", "-c"]
    assert words[-2].startswith("PATH=$TIPCFLOW_BIN:$PATH; export PYTHONPATH=")
    assert words[-2].endswith("; make it")
    assert words[-1] == f"{root.parent}/bin"
