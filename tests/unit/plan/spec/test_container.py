"""Commands of nodes with a container, as the engine gets them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tipcflow.domain import Cluster, Command, Compat, Container, Node, Plan
from tipcflow.plan.spec.container import JOB_VARIABLES, container_words, engine_words
from tipcflow.plan.view.diff import differences
from tipcflow.remote.runner.stack_signal import prepare

Make = Callable[..., Plan]
FLEET = "fleet_train_gpus_0,1_autocast_False_nodes_2"
BOX = Container(image="paddle:2.6", python="/opt/py/bin/python3", args=("--gpus", "all", "--shm-size=8g"))

# What the engine does with the words: the folder, the variables by name, the words behind the image.
ENGINE = f"""#!{sys.executable}
import json, os, sys
words = sys.argv[1:]
inner = words[words.index("image:1") + 1:]
names = [word for before, word in zip(words, words[1:]) if before == "-e"]
env = {{"PATH": "/image/bin:/usr/bin:/bin", "FROM_IMAGE": "1", "EMPTIED": "by the image"}}
for name in names:  # a name without a value takes the variable out of the image's
    env.pop(name, None)
    if name in os.environ:
        env[name] = os.environ[name]
print(json.dumps(words[: words.index("image:1")]), file=sys.stderr)
os.chdir(words[words.index("-w") + 1])
os.execvpe(inner[0], inner, env)
"""


def with_container(cluster: Cluster, *names: str) -> Cluster:
    nodes = [node.model_copy(update={"container": BOX}) if node.name in names else node for node in cluster.nodes]
    return cluster.model_copy(update={"nodes": tuple(nodes)})


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    path = tmp_path / "the engine"
    path.write_text(ENGINE)
    path.chmod(0o755)
    return path


def run(command: Command, tmp_path: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the node's shell, with the runner's variables; empty variables are unset."""
    (tmp_path / "src" / "deploy here").mkdir(parents=True)
    given = {
        "TIPCFLOW_ROOT": f"{tmp_path}/src",
        "TIPCFLOW_BIN": "/run/bin",
        "TIPCFLOW_CONTAINER": "name of it",
        "PATH": os.environ["PATH"],
        **env,
    }
    return subprocess.run(["bash", "-c", command.shell], env=given, capture_output=True, text=True, check=False)


def boxed(text: str, engine: Path, tmp_path: Path, **fields: object) -> Command:
    """A command of a node with the stand-in engine."""
    container = Container(image="image:1", python="/p", args=("-v", "/data set:/data")).model_copy(
        update={"engine": str(engine)}
    )
    node = Node(
        name="a", address="10.0.0.1", python="/usr/bin/python3", workspace=str(tmp_path), container=container,
        env={"FROM_NODE": "", "EMPTIED": "", "PATH": "/never"}, cpus="0-3,8",
    )  # fmt: skip
    command = Command(text=text, **fields)  # type: ignore[arg-type]
    return command.model_copy(update={"container": container_words(node, command)})


def test_plan_with_containers_equals_the_golden_file(
    plan: Make, short_text: str, cluster: Callable[..., Cluster]
) -> None:
    golden = Path(__file__).parents[3] / "golden" / "plan" / "container.txt"
    made = plan(short_text, cluster=with_container(cluster(), "a"))
    step = made.step(f"{FLEET}/train")
    leg = made.step(f"{FLEET}/infer_cpu").legs[0].command
    lines = [f"[a] {step.commands['a'].shell}", f"[b] {step.commands['b'].shell}", f"[a] {leg.shell}"]
    lines += [f"{each.what}: {each.found} -> {each.used} ({each.because})" for each in made.substitutions]
    assert "\n".join(lines) + "\n" == golden.read_text()


def test_words_reach_the_command_unchanged(engine: Path, tmp_path: Path) -> None:
    text = """printf '%s|' "it's" "$TIPCFLOW_JOB" 'a  b' "\\$x"; pwd; echo $PATH; exit 7"""
    done = run(boxed(text, engine, tmp_path, cwd="deploy here"), tmp_path, TIPCFLOW_JOB="r/s/1")
    assert done.returncode == 7
    assert done.stdout == f"it's|r/s/1|a  b|$x|{tmp_path}/src/deploy here\n/run/bin:/image/bin:/usr/bin:/bin\n"


def test_the_engine_gets_folder_name_network_cpus_and_arguments(engine: Path, tmp_path: Path) -> None:
    words = json.loads(run(boxed("true", engine, tmp_path), tmp_path).stderr)
    assert words[:4] == ["run", "--rm", "--init", "--net=host"]
    assert f"{tmp_path}:{tmp_path}" in words
    assert words[words.index("--name") + 1] == "name of it"
    assert words[words.index("-w") + 1] == f"{tmp_path}/src"
    assert "--cpuset-cpus=0-3,8" in words
    assert words[-2:] == ["-v", "/data set:/data"]


@pytest.mark.parametrize(("cache", "mounted"), [("/srv/cache", True), ("", False), ("{workspace}/c", False)])
def test_cache_outside_of_the_workspace_is_mounted(tmp_path: Path, cache: str, mounted: bool) -> None:
    folder = cache.format(workspace=tmp_path)
    node = Node(
        name="a", address="10.0.0.1", python="/usr/bin/python3", workspace=str(tmp_path), cache=folder,
        container=Container(image="image:1", python="/p"),
    )  # fmt: skip
    assert (f"{folder}:{folder}" in engine_words(node)) is mounted


def test_variables_are_passed_and_empty_ones_are_unset_in_the_image_too(engine: Path, tmp_path: Path) -> None:
    command = boxed("env", engine, tmp_path, env={"CUDA_VISIBLE_DEVICES": "0"})
    done = run(command, tmp_path, CUDA_VISIBLE_DEVICES="0", TIPCFLOW_NODE="a", FROM_LOGIN="1")
    report = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert (report["CUDA_VISIBLE_DEVICES"], report["TIPCFLOW_NODE"], report["FROM_IMAGE"]) == ("0", "a", "1")
    assert not {"EMPTIED", "FROM_NODE", "FROM_LOGIN"} & set(report)
    assert "/never" not in report["PATH"]


@pytest.mark.parametrize(
    ("python", "image", "seen"),
    [
        ("/job/python", "/image/lib", "/job/python:/image/lib"),
        ("/job/python", "", "/job/python"),
        ("", "/image/lib", "/image/lib"),
        ("", "", ""),
    ],
)
def test_the_module_that_shows_stacks_precedes_the_images_own(
    engine: Path, tmp_path: Path, python: str, image: str, seen: str
) -> None:
    if image:
        engine.write_text(engine.read_text().replace('"FROM_IMAGE": "1"', f'"PYTHONPATH": "{image}"'))
    given = {"TIPCFLOW_PYTHON": python, "PYTHONPATH": "/the/nodes"} if python else {}
    done = run(boxed("env", engine, tmp_path), tmp_path, **given)
    assert dict(line.split("=", 1) for line in done.stdout.splitlines())["PYTHONPATH"] == seen


def test_variables_added_by_the_runner_reach_the_container(tmp_path: Path) -> None:
    env: dict[str, str] = {}
    prepare(env, str(tmp_path))
    assert set(env) - {"PYTHONPATH"} <= {*JOB_VARIABLES}


def test_every_variable_of_a_job_is_passed(plan: Make, short_text: str, cluster: Callable[..., Cluster]) -> None:
    from tipcflow.execute.job.spec import job_env

    node = with_container(cluster("a"), "a").nodes[0]
    known = {*JOB_VARIABLES, "TIPCFLOW_ROOT"}  # which the words themselves name
    assert set(job_env(node, "r")) - {"PATH"} <= known


def test_only_nodes_with_a_container_have_one(
    plan: Make, short_text: str, cluster: Callable[..., Cluster]
) -> None:
    made = plan(short_text, cluster=with_container(cluster(), "b"))
    commands = made.step(f"{FLEET}/train").commands
    assert commands["a"].shell == commands["a"].text
    assert commands["b"].shell.startswith("docker run --rm")
    assert BOX.python in commands["b"].text
    assert not any(leg.command.container for step in made.steps for leg in step.legs)


def test_without_containers_nothing_is_added(plan: Make, short_text: str, cluster: Callable[..., Cluster]) -> None:
    made = plan(short_text, cluster=cluster())
    assert not any(command.container for step in made.steps for command in step.commands.values())


def test_script_and_file_are_compared_without_the_container(
    plan: Make, norm_text: str, cluster: Callable[..., Cluster]
) -> None:
    def found(nodes: Cluster) -> list[dict[str, object]]:
        plans = [plan(norm_text, cluster=nodes, compat=compat) for compat in (Compat.BASH, Compat.SPEC)]
        return [each.as_json() for each in differences(*plans)]

    plain = cluster()
    there = [node.model_copy(update={"python": BOX.python}) for node in plain.nodes]
    assert found(with_container(plain, "a", "b")) == found(plain.model_copy(update={"nodes": tuple(there)}))
