"""Sections behind the head, typed."""

import pytest
from tests.support.expected.oracle import Oracle

from tipcflow.domain import ConfigError
from tipcflow.params.lines import read_lines
from tipcflow.params.sections import RandomInput, benchmark_section, find_section, infer_inputs

IMAGE = RandomInput(dtype="float32", dims=(3, 224, 224))


def inputs(line: str) -> object:
    return infer_inputs(read_lines(f"=====infer_benchmark_params=====\n{line}\n"), file="f.txt")


def benchmark(*lines: str) -> object:
    return benchmark_section(read_lines("\n".join(["===train_benchmark_params===", *lines])), file="f.txt")


@pytest.mark.parametrize(
    ("text", "alternatives"),
    [
        ("[{float32,[3,224,224]}]", ((IMAGE,),)),
        ("[{float32, [3, 224, 224]}]", ((IMAGE,),)),
        ("[{float32,[3,224,224]}];[{float32,[3,224,224]}]", ((IMAGE,), (IMAGE,))),
        ("[{float32,[3,224,224]}, {int64,[1]}]", ((IMAGE, RandomInput(dtype="int64", dims=(1,))),)),
    ],
)
def test_random_inputs_have_types_and_shapes(text: str, alternatives: object) -> None:
    found = inputs(f"random_infer_input:{text}")
    assert (found.line, found.alternatives, found.file) == (2, alternatives, "")  # type: ignore[attr-defined]


@pytest.mark.parametrize(("name", "dims"), [("3x608x608.npy", (3, 608, 608)), ("3x640x640_2.npy", (3, 640, 640))])
def test_a_numpy_input_has_the_shape_of_its_name(name: str, dims: tuple[int, ...]) -> None:
    found = inputs(f"numpy_infer_input:{name}")
    assert found.file == name  # type: ignore[attr-defined]
    assert found.alternatives == ((RandomInput(dtype="", dims=dims),),)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "line",
    [
        "random_infer_input:",
        "random_infer_input:[]",
        "random_infer_input:[{float32,[3,224,224]}",
        "random_infer_input:[{float31,[3,224,224]}]",
        "random_infer_input:[{float32,[]}]",
        "random_infer_input:[{float32,[3,,4]}]",
        "random_infer_input:[{float32,[3]}{float32,[3]}]",
        "random_infer_input:[{float32,[3]}];",
        "numpy_infer_input:image.npy",
    ],
)
def test_another_form_is_one_error(line: str) -> None:
    with pytest.raises(ConfigError) as report:
        inputs(line)
    error = report.value
    assert (error.file, error.line, error.key, error.found) == ("f.txt", 2, line.partition(":")[0], line)
    assert error.expected


def test_a_file_without_the_section_has_no_result() -> None:
    assert inputs("other:1") is None
    assert infer_inputs(read_lines("a:b\n"), file="f") is None
    assert benchmark_section(read_lines("=====disable_train_benchmark=====\nbatch_size:8\n"), file="f") is None


def test_the_benchmark_section_is_known_by_its_keys() -> None:
    found = benchmark(
        "batch_size:8|16",
        "fp_items:fp32|fp16",
        "epoch:2",
        "--profiler_options:batch_range=[10,20];state=GPU",
        "flags:FLAGS_a=1;FLAGS_b=0.5 ",
        "log_iters:5;repeats:500",
    )
    assert found is not None
    assert found.model_dump() == {  # type: ignore[attr-defined]
        "line": 1,
        "batch": (8, 16),
        "fp": ("fp32", "fp16"),
        "epochs": 2,
        "models": (),
        "workers": None,
        "repeat": None,
        "iters": None,
        "profiler": "batch_range=[10,20];state=GPU",
        "flags": {"FLAGS_a": "1", "FLAGS_b": "0.5"},
        "options": {"log_iters": "5", "repeats": "500"},
    }


@pytest.mark.parametrize(
    ("lines", "line", "key"),
    [
        (["batch_size:8", "epochs:2"], 3, "epochs"),
        (["batch_size:x"], 2, "batch_size"),
        (["batch_size:8", "epoch:1|2"], 3, "epoch"),
        (["batch_size:8", "flags:a"], 3, "flags"),
        (["batch_size:8", "fp_items:fp32|"], 3, "fp_items"),
        (["epoch:2"], 1, "train_benchmark_params"),
    ],
)
def test_invalid_line_of_the_section_is_an_error(lines: list[str], line: int, key: str) -> None:
    with pytest.raises(ConfigError) as report:
        benchmark(*lines)
    assert (report.value.file, report.value.line, report.value.key) == ("f.txt", line, key)
    assert report.value.expected


def test_a_section_ends_at_the_next_title() -> None:
    section = find_section(read_lines("x:1\n\n==a==\nb:1\n===c===\nd:1\n"), "a")
    assert section is not None
    assert (section.line, [line.text for line in section.lines]) == (3, ["b:1"])


def test_all_sections_of_the_suites_files_are_read(oracle: Oracle) -> None:
    seen: set[tuple[str, str]] = set()
    random = measured = 0
    for name, records in oracle.files():
        for record in records:
            if "mutation" in record or (name, record["config"]) in seen:
                continue
            seen.add((name, record["config"]))
            text = read_lines(record["config_text"])
            random += infer_inputs(text, file=record["config"]) is not None
            measured += benchmark_section(text, file=record["config"]) is not None
    assert random > (400 if oracle.is_whole else 10)
    assert measured > (200 if oracle.is_whole else 10)
