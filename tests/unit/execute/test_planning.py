"""A wish that a run would silently ignore is refused; an unseeded run is seeded where that is possible."""

from pathlib import Path
from typing import Any

import pytest

from tipcflow.config.suite import Suite
from tipcflow.domain import Compat, ConfigError, Plan
from tipcflow.execute.planning import DEFAULT_SEED, make_plan, start_port
from tipcflow.execute.request import RunRequest
from tipcflow.execute.source import take_snapshot

TOY = Path(__file__).parents[2] / "support" / "toy_suite"
PARAMS = "test_tipc/configs/toy/train_infer_python.txt"


def made(tmp_path: Path, *, seed_argument: str = "--seed={seed}", **wishes: Any) -> Plan:
    suite = Suite(name="toy", folder=str(TOY), dialects=("models/template",), seed_argument=seed_argument)
    request = RunRequest(
        params=PARAMS, suite="toy", mode="lite_train_lite_infer", cluster="", config_dir=tmp_path, **wishes
    )
    snapshot = take_snapshot(suite, PARAMS, None, cache=tmp_path)
    return make_plan(request, suite, None, snapshot, run="r")


def seeds_passed(plan: Plan) -> int:
    return sum("--seed=" in command.text for step in plan.steps for command in step.commands.values())


def test_a_run_without_a_wish_is_seeded(tmp_path: Path) -> None:
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
        ({"seed": 7, "seed_argument": ""}, "--seed: suite toy cannot be seeded"),
        ({"seed": 7, "compat": Compat.BASH}, "--seed: has no effect with --compat bash"),
        ({"diagnose": True, "compat": Compat.BASH}, "--diagnose: has no effect with --compat bash"),
    ],
)
def test_a_wish_without_effect_is_refused(tmp_path: Path, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        made(tmp_path, **settings)
    assert words in str(caught.value)


def test_ports_of_a_run_are_its_own_block() -> None:
    ports = {start_port(f"run-{number}") for number in range(200)}
    assert len(ports) > 100
    assert all(20000 <= port < 32768 - 32 and (port - 20000) % 32 == 0 for port in ports)
