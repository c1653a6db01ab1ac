"""Trainings with parameter servers, as the interpreter of every node gets them."""

from collections.abc import Callable

import pytest

from tipcflow.domain import Cluster, ConfigError, Launch, Plan

Make = Callable[..., Plan]
FLEET = "fleet_train_gpus_0,1_autocast_False_nodes_2"


def words(made: Plan, step: str) -> dict[str, list[str]]:
    """Node -> words between interpreter and script."""
    return {
        node: command.text.split(" train.py")[0].split()[1:] for node, command in made.step(step).commands.items()
    }


def test_every_node_starts_a_server_and_its_trainers(
    plan: Make, short_text: str, cluster: Callable[..., Cluster]
) -> None:
    made = plan(short_text, cluster=cluster(), start_port=20032, launch=Launch.PS)
    step = made.step(f"{FLEET}/train")
    for place, found in enumerate(words(made, step.id).values(), start=1):
        assert found[:6] == [
            "-m", "paddle.distributed.launch",
            "--servers=10.77.0.1:20032,10.77.0.2:20032",
            "--trainers=10.77.0.1:20033,10.77.0.1:20034,10.77.0.2:20033,10.77.0.2:20034",
            "--gloo_port=20035", f"--host=10.77.0.{place}",
        ]  # fmt: skip
    assert (step.servers, step.world_size, step.slots) == (2, 4, 2)
    assert [pattern.rpartition("/")[2] for pattern in step.artefacts] == [
        "workerlog.*",
        "serverlog.*",
        "train.log",
    ]
    assert all("PADDLE_DISTRI_BACKEND" not in command.env for command in step.commands.values())


@pytest.mark.parametrize(("entry", "trainers"), [("0", 1), ("0,1", 2), ("-1", 1)])
def test_a_single_node_starts_a_server_and_its_trainers(
    plan: Make, short_text: str, cluster: Callable[..., Cluster], entry: str, trainers: int
) -> None:
    text = short_text.replace("192.168.0.1,192.168.0.2;0,1", entry)
    assert text != short_text
    made = plan(text, cluster=cluster(), launch=Launch.PS)
    step = next(step for step in made.steps if step.id.endswith("/train"))
    (found,) = words(made, step.id).values()
    assert found[:4] == ["-m", "paddle.distributed.launch", "--server_num=1", f"--trainer_num={trainers}"]
    assert (step.servers, step.world_size) == (1, trainers)


@pytest.mark.parametrize(
    ("addresses", "message"),
    [
        (("10.77.0.1", "10.77.0.12"), "would also start the processes of node"),
        (("10.77.0.1", "fd00::2"), "launch: ps needs IPv4 addresses or names"),
    ],
)
def test_addresses_that_the_launcher_misreads_are_refused(
    plan: Make, short_text: str, cluster: Callable[..., Cluster], addresses: tuple[str, str], message: str
) -> None:
    base = cluster()
    nodes = tuple(
        node.model_copy(update={"address": address}) for node, address in zip(base.nodes, addresses, strict=False)
    )
    with pytest.raises(ConfigError, match=message):
        plan(short_text, cluster=base.model_copy(update={"nodes": nodes}), launch=Launch.PS)
    plan(short_text, cluster=base.model_copy(update={"nodes": nodes}))
