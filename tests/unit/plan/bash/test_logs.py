"""Logs of a script in the folder of a training, which the training makes."""

from pathlib import Path

import pytest

from tipcflow.params import load_dialect
from tipcflow.plan import plan_commands

INPUT = Path(__file__).parents[3] / "golden" / "plan" / "inputs" / "short_fleet.txt"


@pytest.mark.parametrize(("log", "evaluations"), [("{S}/eval.log", 1), ("./missing/eval.log", 0)])
def test_redirection_fails_only_in_missing_folders(log: str, evaluations: int) -> None:
    dialect = load_dialect("models/mobilenetv3_prod")
    step = dialect.eval.model_copy(update={"log": log})
    changed = dialect.model_copy(update={"eval": step})
    commands = plan_commands(INPUT.read_text(), file="f", dialect=changed, mode="lite_train_lite_infer")
    assert sum("--test-only" in command.text for command in commands) == evaluations
