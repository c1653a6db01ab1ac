"""Ways to start a distributed training, as every node's interpreter gets them."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tipcflow.config.needs import Needs
from tipcflow.domain import Cluster, Compat, ConfigError, Launch, Plan
from tipcflow.plan.source.files import ListedFiles

Make = Callable[..., Plan]
FLEET = "fleet_train_gpus_0,1_autocast_False_nodes_2"
TOLD = ("CUDA_VISIBLE_DEVICES", "PADDLE_DISTRI_BACKEND")
STAND_IN = f"""#!{sys.executable}
import json, os, sys
print(json.dumps([sys.argv[1:], {{name: os.environ[name] for name in {TOLD!r} if name in os.environ}}]))
"""
SCRIPT = "train.py"


def started(made: Plan, step: str, tmp_path: Path) -> list[tuple[list[str], dict[str, str]]]:
    """What each node's interpreter was started with, without the script and its own arguments; and its env."""
    messages = []
    for node, command in made.step(step).commands.items():
        folder = tmp_path / node
        folder.mkdir(exist_ok=True)
        (folder / "python").write_text(STAND_IN)
        (folder / "python").chmod(0o755)
        text = command.text.replace(f"/envs/{node}/bin/python", str(folder / "python"), 1)
        env = {"PATH": os.environ["PATH"], **command.env}
        done = subprocess.run(["bash", "-c", text], env=env, capture_output=True, text=True, check=True)
        words, variables = json.loads(done.stdout)
        place = words.index(SCRIPT)
        rendezvous = [word for word in words[place:] if word.startswith(("--init", "--rank", "--world", "tcp:"))]
        tail = words[words.index(rendezvous[0]) :] if rendezvous else []
        messages.append((words[:place] + tail, variables))
    return messages


def test_every_node_is_launched_with_ips(
    plan: Make, short_text: str, cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    made = plan(short_text, cluster=cluster(), start_port=20032)
    common = ["-m", "paddle.distributed.launch", "--ips=10.77.0.1,10.77.0.2"]
    for place, (words, env) in enumerate(started(made, f"{FLEET}/train", tmp_path), start=1):
        assert words[:3] == common
        assert words[3:6] == [f"--host=10.77.0.{place}", "--start_port=20032", "--nproc_per_node=2"]
        assert env == {"PADDLE_DISTRI_BACKEND": "gloo"}


def test_every_node_is_launched_with_a_master(
    plan: Make, short_text: str, cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    made = plan(short_text, cluster=cluster(), start_port=20032, launch=Launch.MASTER)
    for rank, (words, env) in enumerate(started(made, f"{FLEET}/train", tmp_path)):
        assert words[:7] == [
            "-m", "paddle.distributed.launch", "--master=10.77.0.1:20032", "--nnodes=2", f"--rank={rank}",
            f"--host=10.77.0.{rank + 1}", "--nproc_per_node=2",
        ]  # fmt: skip
        assert env == {"PADDLE_DISTRI_BACKEND": "gloo"}


@pytest.mark.parametrize(("device", "env"), [("cpu", {}), ("gpu", {"CUDA_VISIBLE_DEVICES": "0,1"})])
def test_every_node_is_launched_with_torchrun(
    plan: Make,
    short_text: str,
    cluster: Callable[..., Cluster],
    tmp_path: Path,
    device: str,
    env: dict[str, str],
) -> None:
    made = plan(short_text, cluster=cluster(device=device), start_port=20032, launch=Launch.TORCHRUN)
    for rank, messages in enumerate(started(made, f"{FLEET}/train", tmp_path)):
        assert messages == (
            ["-m", "torch.distributed.run", "--nnodes=2", "--nproc_per_node=2", f"--node_rank={rank}",
             "--master_addr=10.77.0.1", "--master_port=20032"],
            env,
        )  # fmt: skip


def test_a_single_node_is_launched_with_torchrun(
    plan: Make, short_text: str, cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    text = short_text.replace("192.168.0.1,192.168.0.2;0,1", "0,1")
    made = plan(text, cluster=cluster("a"), start_port=20032, launch=Launch.TORCHRUN)
    step = next(step.id for step in made.steps if step.id.endswith("/train"))
    ((words, env),) = started(made, step, tmp_path)
    assert words[2:] == [
        "--nnodes=1", "--nproc_per_node=2", "--node_rank=0", "--master_addr=10.77.0.1", "--master_port=20032"
    ]  # fmt: skip
    assert env == {}


def test_scripts_with_an_init_method_get_rank_and_world_size(
    plan: Make, short_text: str, cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    text = short_text.replace(";0,1", ";0")
    made = plan(
        text, cluster=cluster(), start_port=20032, launch=Launch.INIT_METHOD, seed=3, seed_argument="-s {seed}"
    )
    step = next(step.id for step in made.steps if step.id.endswith("/train"))
    for rank, (words, env) in enumerate(started(made, step, tmp_path)):
        assert words == ["--init-method", "tcp://10.77.0.1:20032", "--rank", str(rank), "--world-size", "2"]
        assert env == {}
    # The node runner and the framework probe know ranks by these.
    result = [{"RANK": str(rank), "WORLD_SIZE": "2"} for rank in (0, 1)]
    assert [command.env for command in made.step(step).commands.values()] == result
    assert made.step(step).world_size == 2


def test_init_method_script_is_a_single_process_per_node(
    plan: Make, short_text: str, cluster: Callable[..., Cluster]
) -> None:
    with pytest.raises(ConfigError, match="one process per node") as caught:
        plan(short_text, cluster=cluster(), launch=Launch.INIT_METHOD)
    assert "one id per node, or launch: torchrun" in str(caught.value)


def test_replacements_are_reported(plan: Make, short_text: str, cluster: Callable[..., Cluster]) -> None:
    made = plan(short_text, cluster=cluster(), launch=Launch.MASTER)
    result = {each.what: (each.found, each.used) for each in made.substitutions}
    assert result["launch"] == ("ips", "master")
    assert "launch" not in {each.what for each in plan(short_text, cluster=cluster()).substitutions}


@pytest.mark.parametrize(
    ("arguments", "ends"),
    [
        ({}, ["10.77.0.1 10.77.0.2 {repeat}"] * 2),
        ({"script_arguments": "{model} {batch} {precision} {node} 1"}, ["10.77.0.1 1", "10.77.0.2 1"]),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_shell_script_is_called_with_model_and_nodes(
    plan: Make,
    short_text: str,
    cluster: Callable[..., Cluster],
    arguments: dict[str, str],
    ends: list[str],
    device: str,
) -> None:
    text = re.sub("^fleet_train:.*", "fleet_train:tools/run.sh", short_text, flags=re.M)
    files = ListedFiles(["tools/run.sh"])
    needs = Needs.model_validate(arguments)
    made = plan(
        text, cluster=cluster(device=device), start_port=20032, launch=Launch.SCRIPT, needs=needs, files=files,
        repeats=2,
    )  # fmt: skip
    steps = [step for step in made.steps if step.id.endswith("/train")]
    for repeat, step in enumerate(steps[:2], start=1):
        texts = [command.text for command in step.commands.values()]
        assert [text.partition(" fp32 ")[2] for text in texts] == [end.format(repeat=repeat) for end in ends]
        assert {text.split()[:2] == ["bash", "tools/run.sh"] for text in texts} == {True}
        assert step.artefacts == ("logs/**/2n2g/*.log", "log/workerlog.*")
        assert step.world_size == 4
    backend = {"PADDLE_DISTRI_BACKEND": "gloo"} if device == "cpu" else {"CUDA_VISIBLE_DEVICES": "0,1"}
    assert [command.env for command in steps[0].commands.values()] == [
        {"MASTER_ADDR": "10.77.0.1", "MASTER_PORT": "20032", "NNODES": "2", "NODE_RANK": str(rank),
         "NPROC_PER_NODE": "2", **backend}
        for rank in (0, 1)
    ]  # fmt: skip
    assert {each.what: each.used for each in made.substitutions}["launch"] == "script"


def test_missing_shell_script_is_refused(plan: Make, short_text: str, cluster: Callable[..., Cluster]) -> None:
    with pytest.raises(ConfigError, match="the suite does not have the script of launch: script"):
        plan(short_text, cluster=cluster(), launch=Launch.SCRIPT, files=ListedFiles(["tools/run.sh"]))


@pytest.mark.parametrize("launch", [Launch.MASTER, Launch.TORCHRUN, Launch.INIT_METHOD, Launch.SCRIPT])
def test_the_script_knows_its_own_way_only(
    plan: Make, short_text: str, cluster: Callable[..., Cluster], launch: Launch
) -> None:
    plans = [plan(short_text, cluster=cluster(), compat=Compat.BASH, launch=each) for each in (Launch.IPS, launch)]
    assert plans[0] == plans[1]
