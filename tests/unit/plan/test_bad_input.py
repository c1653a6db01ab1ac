"""Each wrong input is one error that names file, line, slot, what was found and what was expected."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.expected.golden import assert_golden

from tipcflow.domain import Cluster, ConfigError, Plan

Make = Callable[..., Plan]
GOLDEN = Path(__file__).parents[2] / "golden" / "plan" / "errors.txt"


def edited(text: str, line: int, *new: str) -> str:
    """The text with a 1-based line replaced by other lines, or by none."""
    lines = text.split("\n")
    return "\n".join([*lines[: line - 1], *new, *lines[line:]])


CASES: dict[str, tuple[str, Callable[[str], str], str]] = {
    "missing line 10 of 32": ("short", lambda text: edited(text, 10), "lite_train_lite_infer"),
    "missing line 10 of 51": ("norm", lambda text: edited(text, 10), "lite_train_lite_infer"),
    "missing line 43 of 51": ("norm", lambda text: edited(text, 43), "lite_train_lite_infer"),
    "extra line": ("short", lambda text: edited(text, 8, "--batch-size:4", "--x:1"), "lite_train_lite_infer"),
    "line of blanks": ("norm", lambda text: edited(text, 6, "  ", "null:null"), "lite_train_lite_infer"),
    "windows": ("short", lambda text: text.replace("\n", "\r\n"), "lite_train_lite_infer"),
    "empty file": ("short", lambda text: "", "lite_train_lite_infer"),
    "half a file": ("norm", lambda text: text[: len(text) // 2], "lite_train_lite_infer"),
    "unknown mode": ("norm", lambda text: text, "lite_train_infer"),
    "unknown trainer": ("norm", lambda text: edited(text, 15, "trainer:foo_train"), "lite_train_lite_infer"),
    "no trainer": ("norm", lambda text: edited(text, 15, "trainer:"), "lite_train_lite_infer"),
    "trainer without script": (
        "norm",
        lambda text: edited(text, 15, "trainer:pact_train"),
        "lite_train_lite_infer",
    ),
    "trainer twice": (
        "norm",
        lambda text: edited(text, 15, "trainer:norm_train|norm_train"),
        "lite_train_lite_infer",
    ),
    "no precision": ("norm", lambda text: edited(text, 6, "--precision:"), "lite_train_lite_infer"),
    "no devices": ("norm", lambda text: edited(text, 4, "gpu_list:"), "lite_train_lite_infer"),
    "strange devices": ("norm", lambda text: edited(text, 4, "gpu_list:0;1"), "lite_train_lite_infer"),
    "device twice": ("norm", lambda text: edited(text, 4, "gpu_list:0,0"), "lite_train_lite_infer"),
    "no interpreter": ("norm", lambda text: edited(text, 3, "python:bash"), "lite_train_lite_infer"),
    "strange device": ("norm", lambda text: edited(text, 41, "--use-gpu:xpu|False"), "lite_train_lite_infer"),
    "too many nodes": (
        "norm",
        lambda text: edited(text, 4, "gpu_list:10.0.0.1,10.0.0.2,10.0.0.3;0"),
        "lite_train_lite_infer",
    ),
    "too many ids": ("norm", lambda text: edited(text, 4, "gpu_list:0,1,2"), "lite_train_lite_infer"),
    "only GPU legs": ("norm", lambda text: edited(text, 41, "--use-gpu:True"), "whole_infer"),
    "nothing to infer": ("norm", lambda text: edited(text, 37, "infer_model:null"), "whole_infer"),
}


def message(plan: Make, text: str, mode: str, cluster: Cluster) -> str:
    with pytest.raises(ConfigError) as caught:
        plan(text, mode, cluster=cluster)
    return str(caught.value)


def test_messages_equal_the_golden_file(
    plan: Make, short_text: str, norm_text: str, cluster: Callable[..., Cluster]
) -> None:
    texts = {"short": short_text, "norm": norm_text}
    result = [
        f"[{name}]\n{message(plan, change(texts[which]), mode, cluster())}\n"
        for name, (which, change, mode) in CASES.items()
    ]
    assert_golden(GOLDEN, "\n".join(result))


def test_the_error_carries_its_place(plan: Make, short_text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(edited(short_text, 10))
    error = caught.value
    assert (error.file, error.line, error.key) == ("test_tipc/configs/m/params.txt", 10, "weights_name")
    assert error.found == "--data-path:./lite_data"


@pytest.mark.parametrize("line", range(1, 52))
def test_no_line_of_51_can_be_missing(plan: Make, norm_text: str, line: int) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(edited(norm_text, line))
    assert caught.value.file
    assert caught.value.found
    assert caught.value.expected


@pytest.mark.parametrize("line", range(1, 33))
def test_no_line_of_32_can_be_missing_or_doubled(plan: Make, short_text: str, line: int) -> None:
    kept = short_text.split("\n")[line - 1]
    for text in (edited(short_text, line), edited(short_text, line, kept, kept)):
        with pytest.raises(ConfigError) as caught:
            plan(text)
        assert caught.value.line
        assert caught.value.expected
