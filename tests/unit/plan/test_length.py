"""The length of a training, by its command."""

from pathlib import Path

import pytest

from tipcflow.domain import Compat, Plan, StepKind
from tipcflow.plan import PlanOptions, build_plan

TOY = Path(__file__).parents[2] / "support/toy_suite/test_tipc/configs/toy/train_infer_python.txt"


def planned(mode: str, old: str = "", new: str = "", *, compat: Compat = Compat.SPEC) -> Plan:
    return build_plan(
        TOY.read_text().replace(old, new) if old else TOY.read_text(),
        file="train_infer_python.txt",
        suite="toy",
        chain="toy/toy/x",
        dialects=("models/template", "models/mobilenetv3_prod", "PaddleClas"),
        mode=mode,
        compat=compat,
        options=PlanOptions(),
    )


@pytest.mark.parametrize(
    ("mode", "old", "new", "length"),
    [
        ("lite_train_lite_infer", "", "", (2, 0)),
        ("whole_train_whole_infer", "", "", (4, 0)),
        ("lite_train_lite_infer", "--epochs:", "--iters:", (0, 2)),
        ("lite_train_lite_infer", "norm_train:train.py", "norm_train:train.py --max_iters=3", (0, 0)),
        ("lite_train_lite_infer", "norm_train:train.py", "norm_train:train.py --epochs=9", (2, 0)),
    ],
)
def test_length_is_taken_from_the_command(mode: str, old: str, new: str, length: tuple[int, int]) -> None:
    plan = planned(mode, old, new)
    trainings = [step for step in plan.steps if step.kind is StepKind.TRAIN]
    assert {(step.epochs, step.iterations) for step in trainings} == {length}
    assert all((step.epochs, step.iterations) == (0, 0) for step in plan.steps if step not in trainings)
