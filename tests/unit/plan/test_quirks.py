"""Named differences between a suite's script and its params file."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tipcflow.domain import Cluster, Plan
from tipcflow.params import known_dialects, load_dialect
from tipcflow.plan import quirks_markdown
from tipcflow.plan.quirks import catalogue

Make = Callable[..., Plan]
SOURCE = Path(__file__).parents[3] / "src" / "tipcflow" / "plan"


def edited(text: str, key: str, value: str) -> str:
    """The text with the value of the first line that has this key replaced."""
    return re.sub(rf"(?m)^{re.escape(key)}:.*$", lambda _: f"{key}:{value}", text, count=1)


@pytest.mark.parametrize(
    ("key", "value", "quirk", "line"),
    [
        ("gpu_list", "1.1.1.1,2.2.2.2;0,1", "ips-by-length", 4),
        ("gpu_list", "192.168.100.101,192.168.100.102;0", "launcher-by-length", 4),
        ("gpu_list", "0,1,2,3,4,5,6,7,8", "ids-by-length", 4),
        ("gpu_list", "10", "two-digit-id", 4),
        ("gpu_list", "0|0,1", "paired-missing", 5),
        ("--epochs", "7", "mode-entry-bare", 7),
        ("--epochs", "whole_train_whole_infer=7", "mode-entry-none", 7),
        ("--pretrained", "https://host/x.pdparams", "colon-cut", 10),
        ("train_infer_img_dir", "./lite_data ", "trailing-blank", 12),
    ],
)
def test_a_quirk_is_named_with_its_line(
    plan: Make, norm_text: str, key: str, value: str, quirk: str, line: int
) -> None:
    before = {each.id for each in plan(edited(norm_text, "gpu_list", "0")).quirks}
    found = [
        each for each in plan(edited(edited(norm_text, "gpu_list", "0"), key, value)).quirks if each.id == quirk
    ]
    assert quirk not in before
    assert [each.line for each in found] == [line]
    assert "{" not in found[0].bash + found[0].spec


def test_an_empty_line_costs_the_last_one(plan: Make, short_text: str) -> None:
    found = [each for each in plan(short_text.replace("\n##\n", "\n\n##\n", 1)).quirks if each.id == "cut"]
    assert [each.line for each in found] == [33]
    assert "--benchmark:True" in found[0].bash


def test_a_quantised_int8_leg_on_a_gpu_runs_in_spec_alone(plan: Make, norm_text: str) -> None:
    text = edited(edited(norm_text, "infer_quant", "True"), "--use-tensorrt", "True")
    made = plan(text, "whole_infer")
    assert "legs-skipped" in {each.id for each in made.quirks}
    assert "gpu_tensorrt_True_precision_int8_batch_1" in {leg.id for leg in made.step("infer/infer_gpu").legs}
    assert "legs-skipped" not in {each.id for each in plan(norm_text, "whole_infer").quirks}


def test_several_nodes_each_infer(plan: Make, short_text: str, cluster: Callable[..., Cluster]) -> None:
    assert "every-node-infers" in {each.id for each in plan(short_text, cluster=cluster()).quirks}


@pytest.mark.parametrize("name", known_dialects())
def test_dialects_name_known_quirks_only(name: str) -> None:
    assert set(load_dialect(name).quirks) <= set(catalogue())


def test_every_quirk_has_both_texts_and_someone_who_finds_it() -> None:
    code = "".join(path.read_text() for path in SOURCE.glob("quirk*.py"))
    for name, texts in catalogue().items():
        assert set(texts) == {"bash", "spec"}
        assert f'"{name}"' in code, f"nothing finds {name}"
        assert f"| `{name}` |" in quirks_markdown()
