"""Named differences between a suite's script and its params file."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tipcflow.domain import Cluster, Plan
from tipcflow.params import known_dialects, load_dialect
from tipcflow.plan import quirks_markdown
from tipcflow.plan.quirks.catalogue import catalogue

Make = Callable[..., Plan]
SOURCE = Path(__file__).parents[4] / "src" / "tipcflow" / "plan"


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
        ("model_name", "my model", "model-name-blank", 2),
        ("gpu_list", "6", "gpu-unset", 4),
        ("gpu_list", "-1", "cpu-entry-device", 5),
        ("train_infer_img_dir", "a|b", "pipe-in-value", 12),
        ("train_infer_img_dir", "lite_train_lite_infer=a|whole_train_whole_infer=b", "mode-table-unread", 12),
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


def test_inference_on_several_nodes_is_a_quirk(
    plan: Make, short_text: str, cluster: Callable[..., Cluster]
) -> None:
    assert "every-node-infers" in {each.id for each in plan(short_text, cluster=cluster()).quirks}


def quirks_of(plan: Plan) -> dict[str, str]:
    return {each.id: each.bash for each in plan.quirks}


def test_folder_called_null_is_a_quirk_of_the_script(plan: Make, norm_text: str) -> None:
    text = edited(norm_text, "inference_dir", "null")
    assert "infer-dir-null" in quirks_of(plan(text))
    assert "infer-dir-null" not in quirks_of(plan(edited(text, "norm_export", "null")))
    assert "infer-dir-null" not in quirks_of(plan(text, dialects=("PaddleOCR",)))
    assert "infer-dir-null" not in quirks_of(plan(edited(text, "inference_dir", "")))


def test_cuda_visible_devices_leaks_into_the_next_launch(plan: Make, norm_text: str) -> None:
    text = edited(edited(norm_text, "gpu_list", "3|0,1"), "norm_export", "null")
    assert "CUDA_VISIBLE_DEVICES=3" in quirks_of(plan(text, dialects=("PaddleVideo",)))["cuda-leak"]
    assert "cuda-leak" not in quirks_of(plan(text))  # the template unsets it before a training
    assert "cuda-leak" not in quirks_of(plan(edited(text, "gpu_list", "0,1|3"), dialects=("PaddleVideo",)))


def test_an_empty_line_before_the_to_static_section_is_a_quirk(plan: Make, norm_text: str) -> None:
    tail = "=====to_static_train_benchmark_params=====\nto_static_train:--static\n"
    text = norm_text.rstrip("\n") + "\n" + tail + "=====more=====\n"
    shifted = text.replace("\n##\n", "\n\n##\n", 1)
    assert "section-by-line" not in quirks_of(plan(text, dialects=("PaddleOCR",)))
    found = quirks_of(plan(shifted, dialects=("PaddleOCR",)))["section-by-line"]
    assert found == (
        "an empty line before the section: '=====more=====' is read instead of 'to_static_train:--static'"
    )


def test_a_detection_list_with_a_gap_shifts_its_quantisation_words(plan: Make, norm_text: str) -> None:
    text = edited(norm_text.replace("infer_export:", "infer_mode:"), "infer_mode", "null|norm|pact")
    text = edited(edited(text, "pact_export", "export.py"), "infer_quant", "False|True|False")
    made = plan(text, "whole_infer", dialects=("PaddleDetection",))
    assert "'norm' gets 'False'" in quirks_of(made)["quant-misaligned"]
    level = edited(text, "infer_quant", "True|True|True")
    assert "quant-misaligned" not in quirks_of(plan(level, "whole_infer", dialects=("PaddleDetection",)))


def test_a_listed_model_called_null_is_a_quirk(plan: Make, norm_text: str) -> None:
    text = edited(norm_text, "infer_model", "null|./m/best")
    assert "null-model" in quirks_of(plan(text, "whole_infer"))
    assert "null-model" not in quirks_of(plan(norm_text, "whole_infer"))


def test_int8_legs_that_only_gan_runs(plan: Make, norm_text: str) -> None:
    text = edited(edited(norm_text, "--use-tensorrt", "True"), "infer_quant", "False")
    assert "quant-unread" in quirks_of(plan(text, "whole_infer", dialects=("PaddleGAN",)))
    plain = text.replace("\n--precision:fp32|int8", "\n--precision:fp32")
    assert "quant-unread" not in quirks_of(plan(plain, "whole_infer", dialects=("PaddleGAN",)))


def test_every_group_has_a_device_argument(plan: Make, norm_text: str) -> None:
    text = edited(edited(norm_text, "gpu_list", "-1|0"), "--use-gpu", "cpu|gpu")
    made = plan(text, dialects=("PaddleClas",))
    assert "paired-unread" in quirks_of(made)
    words = [c.text for step in made.steps if step.id.endswith("/train") for c in step.commands.values()]
    assert ["--use-gpu=cpu" in text for text in words] == ["gpus_-1" in text for text in words]


def test_the_quantized_model_is_where_the_script_cannot_go(plan: Make, norm_text: str) -> None:
    text = norm_text.replace("export1:null", "kl_quant:q.py")
    away = quirks_of(plan(edited(text, "infer_model", "../inference/"), "whole_infer", dialects=("PaddleClas",)))
    near = quirks_of(plan(edited(text, "infer_model", "inference"), "whole_infer", dialects=("PaddleClas",)))
    assert "../inference/" in away["quant-folder"]
    assert "quant-folder" not in near


@pytest.mark.parametrize("name", known_dialects())
def test_dialects_name_known_quirks_only(name: str) -> None:
    assert set(load_dialect(name).quirks) <= set(catalogue())


def test_every_quirk_has_both_texts_and_a_detector() -> None:
    code = "".join(path.read_text() for path in SOURCE.rglob("*.py"))
    for name, entry in catalogue().items():
        assert entry.bash
        assert entry.spec
        assert set(entry.steps) <= {"prepare", "train", "eval", "export", "infer"}
        assert f'"{name}"' in code, f"nothing finds {name}"
        assert f"| `{name}` |" in quirks_markdown()
