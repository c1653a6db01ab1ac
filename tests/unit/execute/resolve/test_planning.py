"""A request that a run would silently ignore is refused; an unseeded run is seeded where that is possible."""

from pathlib import Path
from typing import Any

import pytest

from tipcflow.config.needs import Needs
from tipcflow.config.suite import Suite
from tipcflow.domain import Cluster, Compat, ConfigError, InfraError, Launch, Node, Plan, StepKind
from tipcflow.domain.build import FrameworkBuild
from tipcflow.execute.request import RunRequest
from tipcflow.execute.resolve.planning import DEFAULT_SEED, launch_of, make_plan, start_port
from tipcflow.execute.source.snapshot import take_snapshot

TOY = Path(__file__).parents[3] / "support" / "toy_suite"
PARAMS = "test_tipc/configs/toy/train_infer_python.txt"

IGNORED = "node a has no GPU: on CPUs, Paddle ignores mixed precision (amp) and trains in fp32"


def made(tmp_path: Path, *, seed_argument: str = "--seed={seed}", **fields: Any) -> Plan:
    suite = Suite(name="toy", folder=str(TOY), dialects=("models/template",), seed_argument=seed_argument)
    request = RunRequest(
        params=PARAMS, suite="toy", mode="lite_train_lite_infer", cluster="", config_dir=tmp_path, **fields
    )
    snapshot = take_snapshot(suite, PARAMS, None, cache=tmp_path)
    return make_plan(request, suite, None, snapshot, run="r")


def seeds_passed(plan: Plan) -> int:
    return sum("--seed=" in command.text for step in plan.steps for command in step.commands.values())


def test_a_run_without_a_requested_seed_is_seeded(tmp_path: Path) -> None:
    plan = made(tmp_path)
    assert plan.seed == DEFAULT_SEED
    assert seeds_passed(plan) > 0


@pytest.mark.parametrize("settings", [{"seed_argument": ""}, {"compat": Compat.BASH}])
def test_a_seed_that_no_command_carries_is_not_declared(tmp_path: Path, settings: dict[str, Any]) -> None:
    plan = made(tmp_path, **settings)
    assert plan.seed is None
    assert seeds_passed(plan) == 0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"seed": 7, "seed_argument": ""}, "--seed: suite toy does not support seeds"),
        ({"seed": 7, "compat": Compat.BASH}, "--seed: has no effect with --compat bash"),
        ({"diagnose": True, "compat": Compat.BASH}, "--diagnose: has no effect with --compat bash"),
    ],
)
def test_a_request_without_effect_is_rejected(tmp_path: Path, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        made(tmp_path, **settings)
    assert words in str(caught.value)


def test_ports_of_a_run_are_its_own_block() -> None:
    ports = {start_port(f"run-{number}") for number in range(200)}
    assert len(ports) > 100
    assert all(20000 <= port < 32768 - 32 and (port - 20000) % 32 == 0 for port in ports)


def test_runs_with_equal_ports_get_other_ports_in_lease_order() -> None:
    start = start_port("run-0")
    twins = [run for run in (f"run-{number}" for number in range(5000)) if start_port(run) == start][:4]
    assert len(twins) == 4
    ports = [start_port(run, before=twins[:place]) for place, run in enumerate(twins)]
    assert ports == [20000 + (start - 20000 + 32 * place) % 12000 for place in range(4)]


def test_ports_that_a_node_uses_are_passed_over() -> None:
    start = start_port("run-0")
    assert start_port("run-0", taken={start + 31}) != start
    assert start_port("run-0", taken={start - 1, start + 32, 80, 40000}) == start
    with pytest.raises(InfraError, match="no 32 consecutive ports are free"):
        start_port("run-0", taken=set(range(20000, 32000, 32)))


def test_the_suite_sets_how_its_trainings_start_otherwise_the_cluster() -> None:
    own, torch = Needs(), Needs(launch=Launch.TORCHRUN)
    node = Node(name="a", address="10.0.0.1", python="/p", workspace="/w")
    plain, newer = Cluster(name="c", nodes=(node,)), Cluster(name="c", nodes=(node,), launch=Launch.MASTER)
    assert [launch_of(own, None), launch_of(own, plain), launch_of(own, newer)] == ["ips", "ips", "master"]
    assert [launch_of(torch, None), launch_of(torch, newer)] == ["torchrun", "torchrun"]


@pytest.mark.parametrize(
    ("framework", "compat", "reasons"),
    [
        ("paddlepaddle", Compat.SPEC, ["", IGNORED]),
        ("paddlepaddle", Compat.BASH, ["", ""]),
        ("torch", Compat.SPEC, ["", ""]),
    ],
)  # fmt: skip
def test_mixed_precision_on_a_cpu_is_a_matter_of_the_framework(
    tmp_path: Path, framework: str, compat: Compat, reasons: list[str]
) -> None:
    folder = TOY.parents[2] / "examples" / "mobilenet_v3_small"
    params = "test_tipc/configs/mobilenet_v3_small/train_linux_gpu_fleet_amp_infer_python_linux_gpu_cpu.txt"
    suite = Suite(name="sample", folder=str(folder), dialects=("models/template",), framework=framework)
    request = RunRequest(
        params=params,
        suite="sample",
        mode="lite_train_lite_infer",
        cluster="c",
        config_dir=tmp_path,
        compat=compat,
    )
    nodes = tuple(
        Node(name=name, address=f"10.0.0.{place}", slots=2, python="/env/bin/python", workspace="/w")
        for place, name in enumerate("ab", start=1)
    )
    snapshot = take_snapshot(suite, params, None, cache=tmp_path)
    plan = make_plan(request, suite, Cluster(name="c", nodes=nodes), snapshot, run="r")
    assert [step.not_run for step in plan.steps if step.kind is StepKind.TRAIN] == reasons


@pytest.mark.parametrize(("framework", "wheel"), [("2.6.2", ""), ("", ""), ("3.4.0", "paddlepaddle-3.4.0.whl")])
def test_parameter_servers_are_planned_for_suitable_frameworks(tmp_path: Path, framework: str, wheel: str) -> None:
    assert with_servers(tmp_path, framework, wheel).steps


def test_parameter_servers_are_refused_on_paddle_3(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        with_servers(tmp_path, "3.3.1")
    assert str(caught.value) == (
        "launch: ps needs parameter servers, which this release of Paddle is built without; "
        "found 'Paddle 3.3.1'; expected Paddle 2, such as the environment of requirements/node-ps.txt"
    )
    with_servers(tmp_path, "3.3.1", launch=Launch.IPS)


def with_servers(tmp_path: Path, framework: str, wheel: str = "", launch: Launch = Launch.PS) -> Plan:
    suite = Suite(name="toy", folder=str(TOY), dialects=("models/template",), launch=launch)
    request = RunRequest(params=PARAMS, suite="toy", mode="lite_train_lite_infer", cluster="", config_dir=tmp_path)
    build = FrameworkBuild(name="paddlepaddle", version=framework, wheel=wheel, sha256="0" * 64) if wheel else None
    snapshot = take_snapshot(suite, PARAMS, None, cache=tmp_path)
    return make_plan(request, suite, None, snapshot, run="r", framework=framework, build=build)
