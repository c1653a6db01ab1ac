"""Plans of the shipped PyTorch suite: how each chain starts on CPU and on GPU nodes."""

import shlex
from pathlib import Path

import pytest

from tipcflow.config.suite import load_suite
from tipcflow.domain import Cluster, ConfigError, Node, Plan, StepKind
from tipcflow.execute.request import RunRequest
from tipcflow.execute.resolve.planning import make_plan
from tipcflow.execute.source.snapshot import take_snapshot

ROOT = Path(__file__).resolve().parents[4]
MODE = "lite_train_lite_infer"


def made(tmp_path: Path, params: str, *, device: str = "cpu", slots: int = 2, nodes: int = 2) -> Plan:
    suite = load_suite("pytorch_multinode", ROOT / "configs")
    cluster = Cluster(
        name="c",
        nodes=tuple(
            Node(name=name, address=f"10.0.0.{at}", python="/p", workspace="/w", slots=slots, device=device)
            for at, name in enumerate("abcd"[:nodes], start=1)
        ),
    )
    params = f"test_tipc/configs/{params}.txt"
    request = RunRequest(params=params, suite=suite.name, mode=MODE, cluster="c", config_dir=ROOT / "configs")
    return make_plan(request, suite, cluster, take_snapshot(suite, params, None, cache=tmp_path), run="r")


def commands(plan: Plan) -> list[list[str]]:
    """The words of the training on each node."""
    step = next(step for step in plan.steps if step.kind is StepKind.TRAIN)
    return [shlex.split(command.text) for command in step.commands.values()]


@pytest.mark.parametrize("test", ["toy", "mnist", "data"])
def test_both_ways_to_start_are_planned(tmp_path: Path, test: str) -> None:
    for rank, words in enumerate(commands(made(tmp_path, f"{test}/train_init_method"))):
        assert words[1] == f"mmmg_{test}.py"
        assert words[-5].startswith("tcp://10.0.0.1:")
        assert words[-4:] == ["--rank", str(rank), "--world-size", "2"]
    for rank, words in enumerate(commands(made(tmp_path, f"{test}/train_torchrun"))):
        assert words[1:6] == [
            "-m",
            "torch.distributed.run",
            "--nnodes=2",
            "--nproc_per_node=2",
            f"--node_rank={rank}",
        ]
        assert "--rank" not in words
    assert [step.kind.value for step in made(tmp_path, f"{test}/train_torchrun").steps] == ["prepare", "train"]


def test_the_data_test_uses_nccl_on_gpus(tmp_path: Path) -> None:
    """The script's default is gloo, as documented; the last --backend counts."""
    for device, backend in (("cpu", "gloo"), ("gpu", "nccl")):
        for words in commands(made(tmp_path, "data/train_torchrun", device=device)):
            last = len(words) - words[::-1].index("--backend")
            assert words[last] == backend
    env = made(tmp_path, "mnist/train_torchrun", device="gpu").steps[-1].commands["a"].env
    assert env["CUDA_VISIBLE_DEVICES"] == "0,1"


@pytest.mark.parametrize(("slots", "nodes"), [(1, 2), (2, 1)])
def test_more_processes_than_the_cluster_has_are_one_error(tmp_path: Path, slots: int, nodes: int) -> None:
    with pytest.raises(ConfigError) as caught:
        made(tmp_path, "mnist/train_torchrun", slots=slots, nodes=nodes)
    assert caught.value.file == "test_tipc/configs/mnist/train_torchrun.txt"
    assert (caught.value.line, caught.value.key) == (4, "gpu_list")
