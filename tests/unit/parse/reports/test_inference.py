"""A leg's log: AutoLog in its shapes, the engine line, predictions, and who reported."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipcflow.domain import Phase
from tipcflow.domain.keys import PredictionKey
from tipcflow.parse import engine_from_autolog, parse_autolog, parse_engine, parse_inference
from tipcflow.parse.reports.predictions import parse_predictions

GOLDEN = Path(__file__).parents[3] / "golden" / "parse"
PLAIN = (GOLDEN / "autolog_plain.log").read_text()
DOUBLED = (GOLDEN / "autolog_doubled.log").read_text()
RECORDED = (GOLDEN / "autolog_recorded.log").read_text()
SAMPLE = (GOLDEN / "infer_sample.log").read_text()


def numbers(text: str) -> dict[str, tuple[float, str]]:
    return {one.metric: (one.value, one.unit) for one in parse_inference(text).samples}


def test_published_autolog_report_is_parsed() -> None:
    log = parse_inference(PLAIN)
    assert log.autolog == json.loads((GOLDEN / "autolog_plain.json").read_text())
    assert numbers(PLAIN) == {
        "preprocess_time": (18.6493, "ms"),
        "inference_time": (139.591, "ms"),
        "postprocess_time": (0.0875, "ms"),
        "total_time": (0.1583, "s"),
        "cpu_rss": (227.2812, "MB"),
        "data_num": (1.0, ""),
    }, "None gives no measurement"
    assert {one.phase for one in log.samples} == {Phase.INFER}
    assert log.reporter == "unknown"


def test_lines_may_be_doubled_and_values_divided() -> None:
    (block,) = parse_inference(DOUBLED).blocks
    assert block.complete
    assert block.fields["CUDA_version"] == "13.0.88\nBuild cuda_13.0.r13.0/compiler.36424714_0"
    assert block.fields["CUDNN_version"] == "None.None.None"
    assert block.fields["enable_mkldnn"] == "True"
    assert numbers(DOUBLED)["inference_time"] == (16.8019, "ms")
    assert parse_inference(DOUBLED).reporter == "auto_log", "the package names its source file in the second copy"


def test_recorded_output_of_autolog_is_read() -> None:
    """Output of AutoLog 1.2.0 itself, recorded on 2026-11-23 with CPU Paddle 3.3.1 and Python 3.11.7.

    Machine: 2 virtual cores of an Intel Xeon (AVX512), 24 GB, Debian 12, CUDA toolkit 13.0 without a GPU.
    Command, in examples/mobilenet_v3_small after a training of 3 epochs and its export: `python
    deploy/inference_python/infer.py --model-dir=output/m --enable-mkldnn=True --batch-size=4 --cpu-threads=1
    --benchmark=True`.
    """
    log = parse_inference(RECORDED)
    assert log.reporter == "auto_log 1.2.0"
    (block,) = log.blocks
    assert block.complete
    assert len(block.fields) == 25
    assert block.fields["OS_version"] == "Debian GNU/Linux 12"
    assert block.fields["CUDA_version"] == "13.0.88\nBuild cuda_13.0.r13.0/compiler.36424714_0"
    assert (block.fields["CUDNN_version"], block.fields["drivier_version"]) == ("None.None.None", "None")
    assert block.fields["paddle_commit"] == "7688495538f4d6c1893f084dd238a402e8f68ab6"
    assert (block.fields["runtime_device"], block.fields["enable_mkldnn"]) == ("cpu", "True")
    assert numbers(RECORDED) == {
        "preprocess_time": (10.2536, "ms"),
        "inference_time": (69.5535, "ms"),
        "postprocess_time": (0.0332, "ms"),
        "total_time": (1.1976, "s"),
        "cpu_rss": (333.8594, "MB"),
        "data_num": (17.0, ""),
    }
    assert log.engine["onednn"] == "True"
    assert len(log.predictions) == 20


def test_several_reports_in_one_log() -> None:
    log = parse_inference(PLAIN + DOUBLED + PLAIN.split("Data info")[0])
    assert [block.complete for block in log.blocks] == [True, True, False]
    assert [one.value for one in log.samples if one.metric == "inference_time"] == [139.591, 16.8019]


def test_gpu_values_and_identifiers() -> None:
    text = PLAIN.replace("gpu_rss(MB): None, gpu_util: None%", "gpu_rss(MB): 1201, gpu_util: 35%").replace(
        " model_name:", " [det] model_name:"
    )
    assert numbers(text)["gpu_rss"] == (1201.0, "MB")
    assert numbers(text)["gpu_util"] == (35.0, "%")
    assert parse_inference(text).autolog["model_name"] == "classification"


def test_the_sample_suites_log_is_read() -> None:
    log = parse_inference(SAMPLE)
    assert log.reporter == "tipcflow-sample"
    assert log.engine == {
        "device": "cpu", "onednn": "True", "tensorrt": "False", "precision": "fp32", "threads": "1",
        "batch_size": "2",
    }  # fmt: skip
    assert [str(key) for key in log.predictions] == ["0001.png", "0002.png", "0003.png"]
    assert log.predictions[PredictionKey("0001.png")] == (0.9, 0.1), "the last answer counts"
    assert all(math.isnan(score) for score in log.predictions[PredictionKey("0003.png")])


def test_report_names_its_reporter() -> None:
    assert parse_inference(PLAIN + "\nreporter: auto_log 1.2.0\n").reporter == "auto_log 1.2.0"
    assert parse_inference("reporter: auto_log 1.2.0\n").reporter == "", "no report, no reporter"


def test_the_engine_of_an_autolog_report_is_read() -> None:
    fields = parse_inference(PLAIN).autolog
    assert engine_from_autolog(fields) == {
        "device": "cpu", "onednn": "False", "tensorrt": "False", "threads": "1", "batch_size": "1",
    }  # fmt: skip
    assert engine_from_autolog({"enable_mkldnn": "None", "runtime_device": ""}) == {}


@pytest.mark.parametrize(
    "text", ["", "engine: started", "my engine: onednn=True", "engine:", "engine: onednn = True"]
)
def test_other_lines_are_not_engine_lines(text: str) -> None:
    assert parse_engine(text) == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a\t[1, 2]",
        'a {"scores": [1]}',
        'a\t{"scores": []}',
        'a\t{"scores": 1}',
        '\t{"scores": [1]}',
        "a\t{" * 3,
    ],
)
def test_text_without_predictions_gives_none(text: str) -> None:
    assert parse_predictions(text) == {}


@given(st.binary(max_size=400))
def test_any_bytes_are_read_without_an_error(data: bytes) -> None:
    text = data.decode(errors="replace")
    parse_inference(text)
    parse_inference(PLAIN[: len(data)] + text + PLAIN)
    parse_autolog(PLAIN.encode() + data)


@pytest.mark.slow
@given(
    st.dictionaries(
        st.from_regex(r"[a-z0-9]{1,8}\.png", fullmatch=True), st.lists(st.floats(allow_nan=False), min_size=1)
    )
)
def test_scores_come_back_bit_for_bit(scores: dict[str, list[float]]) -> None:
    text = "".join(f"{name}\t{json.dumps({'class_id': 0, 'scores': row})}\n" for name, row in scores.items())
    assert parse_predictions(text) == {PredictionKey(name): tuple(row) for name, row in scores.items()}
