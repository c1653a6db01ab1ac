"""Plans of real suites that do not do what the name of the file says."""

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
