"""Conditions of scripts on a model's name, and the other scripts of the suite `models`."""

import pytest

from tipcflow.domain import Compat
from tipcflow.params import load_dialect
from tipcflow.plan import build_plan, record_commands

PTQ = """=====ptq_params=====
model_name:small
python:python3
--use_gpu:True
--model_path:small_infer/
--output_dir:./small_ptq/
--data_dir:./images/
--batch_num:1
--batch_size:1
##
trainer:PTQ
PTQ:deploy/quantize.py
##
=====infer_params=====
inference:deploy/infer.py
--use-gpu:True|False
--batch-size:1
--model-dir:./elsewhere/
--img-path:./demo.jpg
--benchmark:True
"""
ONNX = """=====paddle2onnx_params=====
model_name:small
python:python3
2onnx: paddle2onnx
--model_dir:./small_infer/
--model_filename:inference.pdmodel
--params_filename:inference.pdiparams
--save_file:./small_onnx/model.onnx
--opset_version:10
--enable_onnx_checker:True
inference:deploy/onnx.py
--onnx_file:./elsewhere/model.onnx
--img_path:./demo.jpg
"""


def commands(text: str, family: str, mode: str) -> list[str]:
    record = {"suite": "models", "dialect_name": f"models/{family}", "config": "f.txt", "mode": mode}
    made = record_commands({**record, "variant": "files", "config_text": text, "family": family})
    return [" ".join(each.text.split(" > ")[0].split()) for each in made]


@pytest.mark.parametrize(
    ("model", "scaled"),
    [
        ("hrnet_w32_256x192", True),
        ("dark_hrnet_w32_256x192", True),
        ("higherhrnet_hrnet_w32_512", True),
        ("tinypose_128x96", True),
        ("ppyoloe_r_crn_s_3x_spine_coco", True),
        ("ppyoloe_crn_s_300e_coco", False),
    ],
)
def test_epochs_of_detection_benchmarks_depend_on_a_part_of_the_name(model: str, scaled: bool) -> None:
    spec = load_dialect("PaddleDetection").benchmark
    assert spec is not None
    assert spec.scales(model) is scaled


def test_extra_of_one_model_is_not_that_of_its_namesakes() -> None:
    parts = [extra.model for extra in load_dialect("PaddleDetection").extras if extra.model]
    assert parts == ["dino_r50_4scale_1x_coco"]


def test_quantisation_of_models_runs_in_spec_alone() -> None:
    run = commands(PTQ, "ptq", "whole_infer")
    assert [each.split("--use-gpu=")[1].split()[0] for each in run] == ["True", "False"]
    assert all("--model-dir=./small_ptq/" in each for each in run)
    plan = build_plan(
        PTQ,
        file="f.txt",
        suite="models",
        chain="c",
        dialects=["models/mobilenetv3_prod"],
        mode="whole_infer",
        compat=Compat.SPEC,
    )
    export = next(iter(plan.step("infer/export").commands.values())).text
    assert export == (
        "python3 deploy/quantize.py --use_gpu=True --model_path=small_infer/ --batch_num=1 --batch_size=1 "
        "--data_dir=./images/ --output_dir=./small_ptq/"
    )
    assert [each.id for each in plan.quirks] == ["export-not-run"]


def test_conversion_of_models_infers_with_the_converted_file() -> None:
    assert commands(ONNX, "paddle2onnx", "paddle2onnx_infer") == [
        "paddle2onnx --model_dir=./small_infer/ --model_filename=inference.pdmodel "
        "--params_filename=inference.pdiparams --save_file=./small_onnx/model.onnx --opset_version=10 "
        "--enable_onnx_checker=True",
        "python3 deploy/onnx.py --img_path=./demo.jpg --onnx_file=./small_onnx/model.onnx",
    ]
