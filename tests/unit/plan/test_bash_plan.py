"""Plans that run the suite's own commands, defects included, on a cluster."""

from collections.abc import Callable

from tipcflow.domain import Cluster, Compat, Plan, StepKind

Make = Callable[..., Plan]
FLEET = "fleet_train_gpus_0,1_autocast_False_nodes_2"


def test_the_clusters_addresses_and_interpreters_are_edited_in(
    plan: Make, short_text: str, cluster: Callable[..., Cluster]
) -> None:
    train = plan(short_text, compat=Compat.BASH, cluster=cluster()).step(f"{FLEET}/train")
    assert train.nodes == ("a", "b")
    assert train.commands["b"].text.split() == [
        "/envs/b/bin/python",
        "-m",
        "paddle.distributed.launch",
        "--ips=10.77.0.1,10.77.0.2",
        "--gpus=0,1",
        "train.py",
        f"--output-dir=./test_tipc/output/mobilenet_v3_small/lite_train_lite_infer/{FLEET}.log",
        "--epochs=5",
        "--batch-size=4",
    ]
    assert train.commands["a"].env == {"CUDA_VISIBLE_DEVICES": "0,1", "PADDLE_DISTRI_BACKEND": "gloo"}


def test_redirections_stay_and_name_the_log(plan: Make, short_text: str, cluster: Callable[..., Cluster]) -> None:
    made = plan(short_text, compat=Compat.BASH, cluster=cluster())
    log = f"./test_tipc/output/mobilenet_v3_small/lite_train_lite_infer/{FLEET}_eval.log"
    command = made.step(f"{FLEET}/eval").commands["a"]
    assert command.text.endswith(f"> {log} 2>&1 ")
    assert command.log == log


def test_short_addresses_lose_the_second_node(
    plan: Make, short_text: str, cluster: Callable[..., Cluster]
) -> None:
    made = plan(short_text, compat=Compat.BASH, cluster=cluster())
    assert "ips-by-length" not in {quirk.id for quirk in made.quirks}
    near = short_text.replace("192.168.0.1,192.168.0.2", "1.1.1.1,2.2.2.2")
    made = plan(near, compat=Compat.BASH)
    train = next(step for step in made.steps if step.kind is StepKind.TRAIN)
    assert all("--ips" not in command.text for command in train.commands.values())
    assert "ips-by-length" in {quirk.id for quirk in made.quirks}


def test_gpu_legs_are_not_run_without_a_gpu(plan: Make, norm_text: str, cluster: Callable[..., Cluster]) -> None:
    made = plan(norm_text, compat=Compat.BASH, cluster=cluster())
    legs = [leg for step in made.steps for leg in step.legs]
    assert {leg.not_run for leg in legs if leg.device == "gpu"} == {"node a has no GPU"}
    assert {leg.onednn for leg in legs if leg.device == "cpu"} == {True, False}
