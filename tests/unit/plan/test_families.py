"""Files of the suites' other scripts, and benchmarks: plans of their content, and of their scripts' behavior."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.expected.golden import assert_golden

from tipcflow.domain import Cluster, Compat, ConfigError, Plan, StepKind
from tipcflow.plan import differences, file_modes

from .conftest import GOLDEN
from .test_golden import written

Make = Callable[..., Plan]
FAMILIES = GOLDEN / "families"
# Name -> file, listed dialect, mode.
CASES = {
    "onnx": ("onnx", "PaddleClas", "paddle2onnx_infer"),
    "onnx_det": ("onnx_det", "PaddleDetection", "paddle2onnx_infer"),
    "pipeline": ("pipeline", "PaddleDetection", "pipeline_infer"),
    "blocks": ("blocks", "PaddleClas", "lite_train_lite_infer"),
    "benchmark": ("benchmark", "PaddleOCR", "benchmark_train"),
    "benchmark_one": ("benchmark", "PaddleOCR", "benchmark_train:dynamicTostatic_bs16_fp16_DP_N2C4"),
}


def text_of(name: str) -> str:
    return (FAMILIES / f"{CASES[name][0]}.txt").read_text()


@pytest.fixture
def case(plan: Make) -> Make:
    def make(name: str, compat: Compat = Compat.SPEC, *, text: str = "", **more: object) -> Plan:
        _, dialect, mode = CASES[name]
        return plan(text or text_of(name), mode, compat=compat, dialects=(dialect,), **more)

    return make


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("where", ["gpu", "nowhere"])
def test_plan_equals_the_golden_file(case: Make, cluster: Callable[..., Cluster], name: str, where: str) -> None:
    on = None if where == "nowhere" else cluster(device="gpu", slots=4)
    page = written(case(name, cluster=on))
    if where == "nowhere":
        page += "\n" + written(case(name, Compat.BASH))
    golden = GOLDEN / f"family_{name}_{where}.txt"
    assert_golden(golden, page)


@pytest.mark.parametrize("name", CASES)
def test_every_difference_from_the_script_has_a_name(case: Make, name: str) -> None:
    bash, spec = case(name, Compat.BASH), case(name)
    found = differences(bash, spec)
    assert [each.step for each in found if not each.reasons] == []
    assert spec.quirks


def test_file_of_another_script_needs_no_dialect_in_the_suite_file(case: Make) -> None:
    assert case("onnx").dialect == "PaddleClas/paddle2onnx"
    assert case("pipeline").dialect == "PaddleDetection/pipeline"
    assert case("blocks").dialect == "PaddleClas/dy2static"


@pytest.mark.parametrize(
    ("name", "mode", "report"),
    [
        ("onnx", "lite_train_lite_infer", "expected paddle2onnx_infer"),
        ("blocks", "whole_infer", "expected lite_train_lite_infer"),
        ("benchmark", "paddle2onnx_infer", "expected lite_train_lite_infer, "),
        ("benchmark", "benchmark_train:dynamic_bs8", "benchmark_train:dynamic_bs8_fp32_DP_N1C1"),
        ("benchmark", "lite_train_lite_infer:x", "unknown mode"),
        ("benchmark", "benchmark_train:", "unknown mode"),
    ],
)
def test_a_mode_missing_in_a_file_is_reported(plan: Make, name: str, mode: str, report: str) -> None:
    with pytest.raises(ConfigError) as error:
        plan(text_of(name), mode, dialects=(CASES[name][1],))
    assert report in str(error.value)


def test_a_suite_without_the_script_is_reported(plan: Make) -> None:
    with pytest.raises(ConfigError, match="no script for conversion to ONNX"):
        plan(text_of("onnx"), "paddle2onnx_infer", dialects=("PaddleRec",))


def test_modes_of_a_file_are_known_without_a_plan() -> None:
    assert file_modes(text_of("onnx"), file="f", dialects=["PaddleClas"]) == ("paddle2onnx_infer",)
    assert "benchmark_train" in file_modes(text_of("benchmark"), file="f", dialects=["PaddleOCR"])
    assert file_modes("=====serving_params=====\n", file="f", dialects=["PaddleOCR"]) == ()


@pytest.mark.parametrize(
    ("name", "old", "new", "line", "found"),
    [
        ("onnx_det", "infer_mode:norm|quant", "infer_mode:norm|best", 16, "best"),
        ("pipeline", "input_list:image|video", "input_list:image|sound", 7, "sound"),
        ("pipeline", "--device:cpu|gpu", "--device:cpu|xpu", 10, "xpu"),
        ("blocks", "amp_train ==", "base_train ==", 23, "base_train"),
        ("benchmark", "batch_size:16|64", "batch_size:many", 53, "batch_size:many"),
        ("benchmark", "===train_benchmark_params==", "===disable_train_benchmark==", 0, "no title"),
    ],
)
def test_lines_that_stop_a_script_are_an_error(
    case: Make, name: str, old: str, new: str, line: int, found: str
) -> None:
    assert old in text_of(name)
    with pytest.raises(ConfigError) as report:
        case(name, text=text_of(name).replace(old, new))
    assert report.value.file == "test_tipc/configs/m/params.txt"
    assert report.value.line == line
    assert found in report.value.found
    assert report.value.expected


def test_a_null_inference_is_left_out(case: Make) -> None:
    text = text_of("onnx").replace("inference:./python/predict.py", "inference:null")
    assert [step.id for step in case("onnx", text=text).steps] == ["prepare", "infer/export"]


def test_legs_of_a_pipeline_wait_for_nothing_and_name_their_input(
    case: Make, cluster: Callable[..., Cluster]
) -> None:
    made = case("pipeline", cluster=cluster(device="cpu"))
    legs = {leg.id: leg.not_run for step in made.steps for leg in step.legs}
    assert legs == {
        "cpu_input_image": "",
        "cpu_input_video": "",
        "gpu_input_image": "node a has no GPU",
        "gpu_input_video": "node a has no GPU",
    }


def test_benchmark_has_only_training_steps(case: Make) -> None:
    made = case("benchmark", repeats=2)
    kinds = [step.kind for step in made.steps]
    assert kinds == [StepKind.PREPARE, *[StepKind.TRAIN] * 8]
    assert len({step.id for step in made.steps}) == 9
    assert {variant.id for variant in made.variants} == {step.variant for step in made.steps[1:]}
    assert {step.slots for step in made.steps[1:]} == {4}


def test_a_benchmark_on_several_nodes_is_a_gang(case: Make, cluster: Callable[..., Cluster]) -> None:
    made = case("benchmark_one", cluster=cluster("a", "b", device="gpu"))
    (train,) = (step for step in made.steps if step.kind is StepKind.TRAIN)
    assert (train.nodes, train.slots, train.world_size) == (("a", "b"), 2, 4)
    assert train.commands["b"].env["FLAGS_conv_workspace_size_limit"] == "4096"
    words = train.commands["b"].text.split()
    for word in ("--ips=10.77.0.1,10.77.0.2", "Global.epoch_num=2", "Global.to_static=true", "Global.x=1"):
        assert word in words


TRAIN = """
import sys
loss = {losses!r}[int("Global.to_static=True" in sys.argv)]
for step, value in enumerate(loss):
    print(f"[Train][Epoch 1/2][Iter: {{step}}/9]lr: 0.1, CELoss: {{value}}, loss: {{value}}, batch_cost: 1s")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("losses", "code"),
    [
        ((["0.5", "1e-05", "nan"], ["0.5", "1e-05", "nan"]), 0),
        ((["0.5", "1e-05"], ["0.5", "2e-05"]), 1),
        ((["0.5"], ["0.5", "0.5"]), 1),
        (([], []), 1),
    ],
)
def test_losses_of_both_trainings_are_compared(
    case: Make, tmp_path: Path, losses: tuple[list[str], list[str]], code: int
) -> None:
    """The planned commands run: equal losses pass, whatever numbers they are; others, or none, do not."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "train.py").write_text(TRAIN.format(losses=losses))
    made = case("blocks")
    steps = [step for step in made.steps if step.id.startswith("base_train")]
    codes = []
    for step in steps:
        (command,) = step.commands.values()
        text = command.text.replace("python3.7", "python3")
        done = subprocess.run(["bash", "-c", text], cwd=tmp_path, capture_output=True, timeout=60, check=False)
        codes.append(done.returncode)
    assert [step.kind for step in steps] == [StepKind.TRAIN, StepKind.TRAIN, StepKind.EVAL]
    assert steps[2].after == (steps[0].id, steps[1].id)
    assert codes == [0, 0, code]


def test_a_training_that_fails_is_not_hidden_by_keeping_its_output(case: Make, tmp_path: Path) -> None:
    train = next(step for step in case("blocks").steps if step.kind is StepKind.TRAIN)
    (command,) = train.commands.values()
    done = subprocess.run(
        ["bash", "-c", command.text.replace("python3.7", "false")], cwd=tmp_path, timeout=60, check=False
    )
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("dialect", "old", "static"),
    [
        ("PaddleSeg", "", "--opts to_static_training=True"),
        ("PaddleVideo", "##\n", "-o to_static=True"),
    ],
)
def test_other_suites_make_a_training_static_in_their_own_way(
    plan: Make, dialect: str, old: str, static: str
) -> None:
    text = text_of("blocks")
    if old:  # the last line of a block is a command there
        text = (
            text.replace("null:null\n##\n=====", "null:null\necho ready\n=====").rstrip("#\n") + "\necho ready\n"
        )
    made = plan(text, dialects=(dialect,))
    trains = [step for step in made.steps if step.kind is StepKind.TRAIN]
    assert [static in next(iter(step.commands.values())).text for step in trains] == [False, True, False, True]
    assert all("FLAGS_cudnn_deterministic" in next(iter(step.commands.values())).env for step in trains)
    assert ("base_train/setup" in {step.id for step in made.steps}) == bool(old)
