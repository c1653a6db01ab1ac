"""Files that are recognised by their first line, and those kinds that are not run."""

import pytest

from tipcflow.domain import Compat, ConfigError
from tipcflow.params.kinds import recognise
from tipcflow.plan import build_plan

CPP = "# model load config\nuse_gpu 0\ngpu_id 0\ncls_model_path ./model\n"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("=====train_params=====\nmodel_name:m\n", "train"),
        ("=========================== base_train ===========================\nmodel_name:m\n", "dy2static"),
        ("===ptq_params===\nmodel_name:m\n", "ptq"),
        ("===kl_quant_params===\nmodel_name:m\n", "klquant"),
        ("===paddle2onnx_params===\nmodel_name:m\n", "paddle2onnx"),
        ("===pipeline_infer_python_params===\nmodel_name:m\n", "pipeline"),
        ("===serving_params===\nmodel_name:m\n", "serving"),
        ("===serving_infer_cpp_params===\nmodel_name:m\n", "serving"),
        ("===cpp_infer_params===\nmodel_name:m\n", "cpp"),
        (CPP, "cpp"),
        ("runtime_device:arm_cpu\nlite_arm_work_path:/data\n", "lite"),
        ("", ""),
        ("hello\n", ""),
    ],
)
def test_kinds_are_told_by_the_first_line(text: str, kind: str) -> None:
    assert recognise(text).kind == kind


def test_a_blank_separated_file_is_shown_with_its_values() -> None:
    entries = {entry.key: (entry.line, entry.value) for entry in recognise(CPP).entries}
    assert entries["cls_model_path"] == (4, "./model")


@pytest.mark.parametrize(
    "text", ["===serving_params===\nmodel_name:m\n", CPP, "runtime_device:arm_cpu\nlite_arm_work_path:/data\n"]
)
def test_what_cannot_be_run_is_refused_with_the_reason(text: str) -> None:
    with pytest.raises(ConfigError, match="are read but not run") as caught:
        build_plan(
            text,
            file="f.txt",
            suite="PaddleClas",
            chain="c",
            dialects=["PaddleClas"],
            mode="whole_infer",
            compat=Compat.SPEC,
        )
    assert caught.value.line == 1
