"""Files that are recognized by their first line, and those kinds that are not run."""

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
        ("===infer_params===\nmodel_name:m\n", "infer_python"),
        ("===m===\nmodel_name:m\npython:python\ninfer_model:x\n", "infer_python"),
        ("gpu_list:0\n", "train"),
        ("", "other"),
        ("hello\n", "other"),
    ],
)
def test_kinds_are_detected_by_the_first_line(text: str, kind: str) -> None:
    assert recognise(text).kind == kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a/m_train_ptq_infer_python.txt", "ptq"),
        ("a/m_cpp_infer.txt", "cpp"),
        ("a/b_lite_arm.txt", "lite"),
        ("a/results/python_m.txt", "results"),
        ("python_m_results_fp32.txt", "results"),
        ("a/train_infer_python.txt", "train"),
    ],
)
def test_the_name_decides_if_the_title_does_not(name: str, kind: str) -> None:
    assert recognise("=====train_params=====\nmodel_name:m\n", name).kind == kind
    assert recognise("=====paddle2onnx_params=====\nmodel_name:m\n", "a/m_ptq_cpp.txt").kind == "paddle2onnx"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None),
        ("", None),
        ("True", True),
        ("false", False),
        ("6", 6),
        ("-1", -1),
        ("0.5", 0.5),
        ("1e3x", "1e3x"),
        ("1|6", (1, 6)),
        ("null|0", (None, 0)),
        ("./a/b", "./a/b"),
    ],
)
def test_values_of_unknown_slots_are_typed(text: str, value: object) -> None:
    (entry,) = recognise(f"=====serving_params=====\nkey:{text}\n").entries
    assert (entry.typed, type(entry.typed)) == (value, type(value))


def test_a_space_separated_file_is_shown_with_its_values() -> None:
    entries = {entry.key: (entry.line, entry.value) for entry in recognise(CPP).entries}
    assert entries["cls_model_path"] == (4, "./model")


@pytest.mark.parametrize(
    "text", ["===serving_params===\nmodel_name:m\n", CPP, "runtime_device:arm_cpu\nlite_arm_work_path:/data\n"]
)
def test_files_that_cannot_run_are_refused_with_a_reason(text: str) -> None:
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
