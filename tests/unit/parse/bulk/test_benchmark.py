"""Benchmarks' objects: on one line or several, with the unit that they name."""

import json
from typing import Any

import pytest

from tipcflow.parse import Sample, lines_of, parse_training
from tipcflow.parse.bulk.summary import summarize_log
from tipcflow.parse.training.stream import samples_of

OBJECT: dict[str, Any] = {
    "model_name": "ResNet50_bs32_fp32_DP", "batch_size": 32, "convergence_value": "6.91",
    "convergence_key": "loss:", "ips": 1234.567, "speed_unit": "samples/s", "device_num": "N1C8",
    "model_run_time": "120",
}  # fmt: skip
SAID = [
    ("throughput", 1234.567, "samples/s"),
    ("convergence_value", 6.91, ""),
    ("model_run_time", 120.0, "s"),
]


def read(text: str) -> list[tuple[str, float, str]]:
    return [(one.metric, one.value, one.unit) for _, one in samples_of([text.encode()], "auto")]


@pytest.mark.parametrize("indent", [None, 4, 2, "\t"])
def test_values_of_a_json_object_are_read(indent: int | str | None) -> None:
    text = json.dumps(OBJECT, indent=indent)
    assert read(text) == SAID
    account = summarize_log([text.encode()])
    assert account.unrecognised == 0
    assert [(key.metric, one.first, key.unit) for key, one in account.series.items()] == SAID
    assert len(summarize_log([text.encode()], "dlperf").series) == 3


@pytest.mark.parametrize("piece", [1, 7, 10_000])
def test_pieces_may_have_any_size(piece: int) -> None:
    whole = json.dumps(OBJECT, indent=4)
    data = f"noise\n{whole}\n[\n{whole},\n{whole}\n]\nloss: 1.0, ips: 3 images/s\n".encode()
    account = summarize_log(data[at : at + piece] for at in range(0, len(data), piece))
    assert dict(account.kinds) == {"benchmark": 3 * len(whole.splitlines()), "nlp": 1}
    assert account.unrecognised == 3
    found = [one for form, one in samples_of([data], "auto") if form == "benchmark"]
    assert [one.offset for one in found] == [
        at for at, line in lines_of(data) if line.startswith("{") for _ in range(3)
    ]


def test_a_missing_unit_is_not_invented() -> None:
    report = {name: value for name, value in OBJECT.items() if name != "speed_unit"}
    assert read(json.dumps(report))[0] == read(json.dumps(report, indent=4))[0] == ("throughput", 1234.567, "")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"ips": 5.0, "other": "x"}, indent=4),
        json.dumps({**OBJECT, "more": {"ips": 5.0}}, indent=4),
        json.dumps({**OBJECT, **{f"x{number}": number for number in range(200)}}, indent=4),
        json.dumps(OBJECT, indent=4)[:-1],
        json.dumps(OBJECT, indent=4)[2:],
        '    "ips": 5.0,',
    ],
)
def test_objects_other_than_benchmarks_are_not_guessed(text: str) -> None:
    assert read(text) == []


def test_a_training_line_in_json_is_not_a_benchmark() -> None:
    line = '{"epoch": 1, "step": 10, "loss": 0.5, "ips": 100.0}'
    (loss, ips) = parse_training(lines_of(line), "auto")
    assert (loss.epoch, loss.iteration, loss.value) == (1, 10, 0.5)
    assert (ips.metric, ips.value) == ("ips", 100.0)


@pytest.mark.parametrize(
    "spelled", ["{1:200.5}", "{'1': 200.5}", '{"1": 200.5}', "{1: 3, 2: 200.5}", " { 1: 200.5 } "]
)
def test_spellings_of_a_result_are_read(spelled: str) -> None:
    (sample,) = parse_training(lines_of(f"logs/2n8g/r50_b128_fp32_1.log {spelled}"), "auto")
    assert isinstance(sample, Sample)
    assert (sample.metric, sample.value, sample.unit) == ("throughput.2n8g", 200.5, "samples/s")
