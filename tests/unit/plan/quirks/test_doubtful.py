"""Plans of real suites that do not do what the file's name promises."""

from collections.abc import Callable

import pytest

from tipcflow.domain import Compat, Plan

Make = Callable[..., Plan]


def text_of(plan: Plan, kind: str) -> str:
    return " ".join(command.text for step in plan.steps if step.kind == kind for command in step.commands.values())


@pytest.mark.parametrize(("script", "named"), [("train.py -o AMP.level=O2", True), ("train.py", False)])
def test_training_with_amp_arguments_and_without_a_precision_is_named(
    plan: Make, norm_text: str, script: str, named: bool
) -> None:
    lines = norm_text.split("\n")
    lines[5], lines[15] = "-o Global.auto_cast:null", f"norm_train:{script}"
    made = plan("\n".join(lines), dialects=("PaddleClas",))
    assert ("amp-off" in {each.id for each in made.quirks}) is named
    assert "-o AMP.use_amp=False" in text_of(made, "train")
    assert {variant.precision for variant in made.variants} == {""}


def test_null_argument_of_an_evaluation_is_passed_by_the_script_alone(plan: Make, norm_text: str) -> None:
    lines = norm_text.split("\n")
    lines[12], lines[23] = "-o DATASET.file:null", "eval:eval.py"
    text = "\n".join(lines)
    spec, bash = plan(text, dialects=("PaddleVideo",)), plan(text, dialects=("PaddleVideo",), compat=Compat.BASH)
    assert "DATASET.file=null" in text_of(bash, "eval")
    assert "DATASET.file" not in text_of(spec, "eval")
    assert [each.line for each in spec.quirks if each.id == "null-passed"] == [13]
    lines[12] = "-o DATASET.file:x"
    assert "DATASET.file=x" in text_of(plan("\n".join(lines), dialects=("PaddleVideo",)), "eval")


@pytest.mark.parametrize(
    ("dialect", "mode", "spec", "quirk"),
    [
        ("PaddleDetection", "lite_train_lite_infer", "LearningRate.base_lr=0.0001 log_iter=1", "argument-added"),
        ("PaddleDetection", "whole_train_whole_infer", "log_iter=1", "argument-not-added"),
        ("PaddleVideo", "lite_train_lite_infer", "--max_iters=30", "argument-added"),
        ("PaddleVideo", "whole_train_whole_infer", "", ""),
    ],
)
def test_constants_of_the_script_are_named(
    plan: Make, norm_text: str, dialect: str, mode: str, spec: str, quirk: str
) -> None:
    """A whole training has the learning rate of its configuration."""
    text = norm_text.replace("gpu_list:192.168.0.1,192.168.0.2;0,1|0", "gpu_list:0")
    text = text.replace("infer_export:", "infer_mode:") if dialect == "PaddleDetection" else text
    made = plan(text, mode, dialects=(dialect,))
    words = text_of(made, "train").split()
    constants = ("LearningRate.base_lr=0.0001", "log_iter=1", "--max_iters=30")
    assert [word for word in words if word in constants] == 2 * spec.split()
    named = {each.id for each in made.quirks if each.id.startswith("argument-")}
    assert quirk in named or (not quirk and not named)
    if quirk == "argument-not-added":
        script = plan(text, mode, dialects=(dialect,), compat=Compat.BASH)
        assert "LearningRate.base_lr=0.0001" in text_of(script, "train")


def test_a_constant_of_single_trainings_is_not_named_for_others(plan: Make, norm_text: str) -> None:
    text = norm_text.replace("infer_export:", "infer_mode:").replace("192.168.0.1,192.168.0.2;0,1|0", "0,1")
    made = plan(text, dialects=("PaddleDetection",))
    (added,) = [each for each in made.quirks if each.id == "argument-added"]
    assert "'log_iter=1'" in added.bash
