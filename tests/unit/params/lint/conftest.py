from collections.abc import Callable
from pathlib import Path

import pytest

from tipcflow.params import load_dialect
from tipcflow.params.lint.rules import lint_text
from tipcflow.params.lint.subject import Finding

INPUTS = Path(__file__).parents[3] / "golden" / "plan" / "inputs"


def clean_norm() -> str:
    """A 51-line file without findings of any rule."""
    text = (INPUTS / "norm_fleet.txt").read_text()
    for old, new in (
        ("gpu_list:192.168.0.1,192.168.0.2;0,1|0", "gpu_list:0|0,1"),
        ("--use-gpu:True\n", "--use-gpu:True|True\n"),
        ("lite_train_lite_infer=5|", "lite_train_lite_infer=5|lite_train_whole_infer=5|"),
        ("lite_train_lite_infer=4|", "lite_train_lite_infer=4|lite_train_whole_infer=4|"),
        ("--precision:fp32|int8", "--precision:fp32"),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def clean_short() -> str:
    """A 32-line file with nothing but notes."""
    text = (INPUTS / "short_fleet.txt").read_text()
    for word in ("--epochs", "--batch-size"):
        text = text.replace(
            f"{word}:lite_train_lite_infer", f"{word}:lite_train_whole_infer=1|lite_train_lite_infer"
        )
    return text


@pytest.fixture
def clean() -> str:
    return clean_norm()


@pytest.fixture
def found() -> Callable[..., list[Finding]]:
    """Findings of a text, read by the template's dialect unless another one is named."""

    def lint(text: str, dialect: str = "models/template", **more: object) -> list[Finding]:
        return lint_text(text, file="f.txt", dialect=load_dialect(dialect), **more)  # type: ignore[arg-type]

    return lint
