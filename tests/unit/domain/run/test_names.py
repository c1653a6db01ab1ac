"""Names with parts are written and read by their types only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipcflow.domain.run.names import ChainName, DagId, DeviceWord, FrameworkVersion, JobId, ModeName, StepId

WORDS = st.text(st.characters(exclude_characters="/:", codec="utf-8"), min_size=1)


@given(WORDS, WORDS, WORDS)
def test_chain_name_survives_a_round_trip(suite: str, model: str, file: str) -> None:
    name = ChainName(suite, model, file)
    assert ChainName.parse(str(name)) == name


def test_chain_name_has_three_parts() -> None:
    name = ChainName.parse("clas/ResNet50/train_infer_python")
    assert name.parts == ("clas", "ResNet50", "train_infer_python")
    assert (name.in_suite, name.model_name) == ("ResNet50/train_infer_python", "clas/ResNet50")


@pytest.mark.parametrize("text", ["", "suite", "suite/model", "suite/model/", "/model/file", "a/b/c/d"])
def test_an_invalid_chain_is_named_with_the_expected_form(text: str) -> None:
    with pytest.raises(ValueError, match=f"'{text}' is not the name of a chain, '<suite>/<model>/<file>'"):
        ChainName.parse(text)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("test_tipc/configs/PPLCNet/train_infer_python.txt", "clas/PPLCNet/train_infer_python"),
        ("train.yaml", "clas/params/train"),
        ("/a/b.c/d.e.txt", "clas/b.c/d.e"),
    ],
)
def test_a_params_file_names_its_chain(file: str, name: str) -> None:
    assert str(ChainName.of_file("clas", file)) == name


@given(WORDS, st.lists(WORDS, min_size=1), st.integers(0, 1000))
def test_job_id_survives_a_round_trip(run: str, step: list[str], attempt: int) -> None:
    job = JobId(run, "/".join(step), attempt)
    assert JobId.parse(str(job)) == job


def test_the_step_of_a_job_may_have_parts() -> None:
    job = JobId.parse("run-1/norm_train_gpus_0,1/train/2")
    assert job == JobId("run-1", "norm_train_gpus_0,1/train", 2)
    assert job.in_run == "norm_train_gpus_0,1/train/2"


@pytest.mark.parametrize("text", ["", "run", "run/step", "run/step/", "run//1", "/step/1", "run/step/x", "run/1"])
def test_an_invalid_job_is_named_with_the_expected_form(text: str) -> None:
    with pytest.raises(ValueError, match=f"'{text}' is not the id of a job, '<run>/<step>/<attempt>'"):
        JobId.parse(text)


@pytest.mark.parametrize("text", ["whole_infer", "benchmark_train:N1C8_fp32"])
def test_mode_name_survives_a_round_trip(text: str) -> None:
    name = ModeName.parse(text)
    assert (str(name), name.mode, name.case) == (text, text.split(":")[0], "".join(text.split(":")[1:]))


@pytest.mark.parametrize(
    ("text", "step"),
    [("norm_train_gpus_0,1/train", StepId("norm_train_gpus_0,1", "train")), ("prepare", StepId("", "prepare"))],
)
def test_step_id_survives_a_round_trip(text: str, step: StepId) -> None:
    assert StepId.parse(text) == step
    assert str(step) == text


def test_the_dag_of_a_chain_has_the_parts_of_the_chain() -> None:
    named = DagId.of_chain("clas/a b/c.d")
    assert (str(named), named.is_of_chain) == ("clas.a_b.c_d", True)
    assert (named.suite, named.model, named.file) == ("clas", "a_b", "c_d")
    assert DagId.parse("clas.a_b.c_d") == named


@pytest.mark.parametrize("text", ["weekly", "", "team.etl", "a..b", "a.b.c.d"])
def test_other_dags_are_of_no_chain(text: str) -> None:
    named = DagId.parse(text)
    assert (str(named), named.is_of_chain, named.suite) == (text, False, "")


def test_a_glob_of_chains_is_a_glob_of_dag_ids() -> None:
    assert DagId.glob_of_chains("clas/Res*/train infer[0-9]") == "clas.Res*.train_infer[0-9]"
    assert DagId.glob_of_chains("clas.*.x") == "clas.*.x"


@given(st.integers(1, 999), st.integers(1, 999))
def test_device_word_survives_a_round_trip(nodes: int, devices: int) -> None:
    word = DeviceWord(nodes, devices)
    assert DeviceWord.parse(str(word)) == DeviceWord.find(f"x/N1C1_log/{word}_y.log") == word
    assert (word.per_node - 1) * nodes < devices <= word.per_node * nodes


@pytest.mark.parametrize("text", ["", "N4", "C4", "N0C4", "N1C0", "N1C4x", "4n8g", "N1C-4"])
def test_an_invalid_device_word_is_named_with_the_expected_form(text: str) -> None:
    assert DeviceWord.parse_or_none(text) is None
    expected = f"{text!r} is not a number of nodes and devices, 'N<nodes>C<devices on all nodes>'"
    with pytest.raises(ValueError, match=f"^{expected}$"):
        DeviceWord.parse(text)


@pytest.mark.parametrize(
    ("text", "name", "version", "requirement"),
    [
        ("paddle 3.3.1", "paddle", "3.3.1", "paddle==3.3.1"),
        ("torch 2.9.0+cpu", "torch", "2.9.0+cpu", "torch==2.9.0+cpu"),
        ("paddle", "paddle", "", "paddle"),
        ("", "", "", ""),
    ],
)
def test_a_framework_has_a_name_and_a_version(text: str, name: str, version: str, requirement: str) -> None:
    framework = FrameworkVersion.parse(text)
    assert framework == FrameworkVersion(name, version)
    assert (str(framework), framework.requirement) == (text, requirement)


@pytest.mark.parametrize(
    ("text", "kind", "is_before", "is_profiling"),
    [
        ("norm_train/train", "train", False, False),
        ("norm_train/before_export_1", "export", True, False),
        ("bs8_fp32_DP_N1C1_profiling/train", "train", False, True),
        ("v/infer_cpu", "infer", False, False),
        ("prepare", "prepare", False, False),
    ],
)
def test_step_id_tells_the_kind_of_its_commands(text: str, kind: str, is_before: bool, is_profiling: bool) -> None:
    step = StepId.parse(text)
    assert (step.kind_name, step.is_before, step.is_profiling) == (kind, is_before, is_profiling)


@pytest.mark.parametrize(
    ("text", "variant", "expected"),
    [
        ("norm_train/train", "norm_train", True),
        ("norm_train/N1C1_profiling/train", "norm_train", True),
        ("norm_train_2/train", "norm_train", False),
        ("norm_train", "norm_train", False),
        ("prepare", "norm_train", False),
    ],
)
def test_step_is_in_its_variant(text: str, variant: str, expected: bool) -> None:
    assert StepId.parse(text).is_in(variant) is expected


def test_name_of_an_extra_command_is_recognized() -> None:
    step = StepId("norm_train", StepId.before_name("train", 2))
    assert (str(step), step.is_before, step.kind_name) == ("norm_train/before_train_2", True, "train")


def test_a_stored_path_is_not_the_name_of_a_chain() -> None:
    assert ChainName.parse_or_none("/tmp/s.yaml/model/file") is None
    assert ChainName.suite_of("/tmp/s.yaml/model/file") == ""
    assert ChainName.suite_of("suite/model/file") == "suite"
