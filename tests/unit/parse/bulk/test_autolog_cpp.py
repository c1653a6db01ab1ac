"""AutoLog reports of programs in C++: other titles, another order, other prefixes or none."""

import json
from pathlib import Path

import pytest

from tipcflow.parse import engine_from_autolog, parse_autolog
from tipcflow.parse.bulk.summary import summarize_log
from tipcflow.parse.reports.autolog import AutologBlock
from tipcflow.parse.training.stream import samples_of

GOLDEN = Path(__file__).parents[3] / "golden" / "parse"
REPORT = """\
----------------------- {conf} info -----------------------
runtime_device: cpu
enable_tensorrt: False
enable_mkldnn: True
cpu_math_library_num_threads: 10
----------------------- Data info -----------------------
batch_size: 1
input_shape: dynamic
data_num: 5
----------------------- Model info -----------------------
model_name: rec
precision: fp32
----------------------- Perf info ------------------------
Total time spent(ms): 1234
preprocess_time(ms): 1.5, inference_time(ms): 2.5, postprocess_time(ms): 0.5
"""
LOGGED, GLOG, LITE = "[2022/03/22 06:15:51] root INFO: ", "I0322 06:15:51.123456  1234 autolog.h:60] ", ""


def log(prefix: str, conf: str = "Config") -> str:
    return "".join(f"{prefix}{line}\n" for line in REPORT.format(conf=conf).splitlines())


def times(blocks: tuple[AutologBlock, ...]) -> list[dict[str, tuple[float, str]]]:
    return [{one.metric: (one.value, one.unit) for one in block.samples} for block in blocks]


TIMES = {
    "data_num": (5.0, ""), "total_time": (1234.0, "ms"), "preprocess_time": (1.5, "ms"),
    "inference_time": (2.5, "ms"), "postprocess_time": (0.5, "ms"),
}  # fmt: skip


@pytest.mark.parametrize("conf", ["Config", "Conf"])
@pytest.mark.parametrize("prefix", [LOGGED, GLOG, LITE], ids=["logged", "glog", "lite"])
def test_cpp_report_is_parsed(prefix: str, conf: str) -> None:
    (block,) = parse_autolog(log(prefix, conf))
    assert block.complete
    assert times((block,)) == [TIMES]
    assert engine_from_autolog(block.fields) == {
        "device": "cpu", "onednn": "True", "tensorrt": "False", "threads": "10", "batch_size": "1",
    }  # fmt: skip


@pytest.mark.parametrize("prefix", [LOGGED, GLOG, LITE], ids=["logged", "glog", "lite"])
def test_bulk_and_single_lines_are_equal(prefix: str) -> None:
    text = f"loading\n{log(prefix)}key: value\n{log(prefix)}threads: 3\n".encode()
    account = summarize_log([text])
    assert (account.kinds["autolog"], account.unrecognised) == (30, 3)
    assert times(account.autolog) == [TIMES, TIMES]
    assert [one.value for form, one in samples_of([text], "auto") if form == "autolog"] == [
        value for _ in range(2) for value, _ in TIMES.values()
    ]


def test_reports_that_follow_each_other_keep_apart() -> None:
    half = log(LITE).split("Perf info")[0].rpartition("\n")[0] + "\n"
    python = (GOLDEN / "autolog_plain.log").read_text()
    blocks = parse_autolog(half + log(LITE) + python + log(GLOG) + log(LOGGED))
    assert [block.complete for block in blocks] == [False, True, True, True, True]
    assert blocks[2].fields == json.loads((GOLDEN / "autolog_plain.json").read_text())
    assert times(blocks[3:]) == [TIMES, TIMES]


def test_lines_after_a_report_are_not_part_of_the_report() -> None:
    (block,) = parse_autolog(log(LOGGED) + f"{LOGGED}The predicts: 3\n{LOGGED}det_time(ms): 4.5\nmodel_name: x\n")
    assert "The predicts" not in block.fields
    assert (block.fields["det_time(ms)"], block.fields["model_name"]) == ("4.5", "rec")


def test_identifiers_may_be_before_titles() -> None:
    text = "".join(f"[{name}]{line}\n" for name in ("det", "rec") for line in log(LITE).splitlines())
    assert times(parse_autolog(text)) == [TIMES, TIMES]


def test_settings_without_a_title_are_not_a_report() -> None:
    assert parse_autolog("batch_size: 3\nprecision: fp16\ninference_time(ms): 3\n") == ()
