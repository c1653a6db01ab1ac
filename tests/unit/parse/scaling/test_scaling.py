"""Topologies in names, the table of speed-ups, and the choice of the values that count."""

import math

import pytest

from tipcflow.parse.scaling.choice import chosen, short_log_messages
from tipcflow.parse.scaling.printed_speeds import PrintedSpeeds
from tipcflow.parse.scaling.scaling import Speed, Topology, named, scaled, topology_in


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("logs/1n8g/r50.log", "1n8g"),
        ("old_1n8g/new/4n8g", "4n8g"),
        ("N4C32", "4n8g"),
        ("N3C32", None),
        ("0n8g", None),
        ("a1n8g", None),
        ("", None),
    ],
)
def test_topology_is_the_last_of_a_path(text: str, name: str | None) -> None:
    found = topology_in(text)
    assert (found.name if found else None) == name


def test_name_of_a_log_has_model_precision_batch_size_and_repeat() -> None:
    assert named("bz128/4n8g/r50_b128_fp32_4.log") == ("r50", "fp32", 128, 4)
    assert named("r50_bs64_fp16.log.gz") == ("r50", "fp16", 64, 0)
    assert named("train_7.log.gz") == ("", "", 0, 7)
    assert named("train.log") == ("", "", 0, 0)


def speed(value: float, nodes: int = 1, gpus: int = 1, repeat: int = 1, **fields: object) -> Speed:
    topology = Topology(nodes=nodes, gpus=gpus)
    report = {"model": "r50", "topology": topology, "repeat": repeat, "speed": value, **fields}
    return Speed.model_validate(report)


def test_speed_up_is_relative_to_the_median_of_one_device() -> None:
    one = [speed(value, repeat=number) for number, value in enumerate((90.0, 100.0, 130.0))]
    alone, many = scaled([speed(1600.0, 4, 8), *one], 128)
    assert (alone.topology, alone.median_speed, alone.speedup, alone.efficiency) == ("1n1g", 100.0, 1.0, 1.0)
    assert (many.topology, many.devices, many.speedup, many.efficiency) == ("4n8g", 32, 16.0, 0.5)
    assert (alone.average_speed, alone.repeats, alone.speeds) == (106.67, 3, {0: 90.0, 1: 100.0, 2: 130.0})


def test_table_without_a_single_device_has_no_speedup() -> None:
    (row,) = scaled([speed(800.0, 1, 8)], 128)
    assert (row.speedup, row.efficiency) == (None, None)


def test_precisions_of_a_model_are_separate_models() -> None:
    rows = scaled([speed(100.0, precision="fp32"), speed(200.0, precision="amp")], 128)
    assert [(row.model, row.median_speed) for row in rows] == [("r50_amp", 200.0), ("r50_fp32", 100.0)]
    (row,) = scaled([speed(100.0, precision="fp32")], 128)
    assert row.model == "r50"


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0, -1.0])
def test_invalid_speed_is_excluded_with_a_message(bad: float) -> None:
    kept, messages = chosen([speed(100.0), speed(bad, repeat=2, source="a.log")], 128)
    assert [one.speed for one in kept] == [100.0]
    assert messages == [f"a.log repeat 2: skipped: invalid speed {bad}"]


def test_other_batch_sizes_are_excluded_only_if_the_given_size_exists() -> None:
    other = speed(50.0, repeat=2, batch=64, source="b64.log")
    kept, messages = chosen([speed(100.0, batch=128), other], 128)
    assert ([one.speed for one in kept], messages) == (
        [100.0],
        ["1 file of another batch size per device (64) skipped"],
    )
    kept, messages = chosen([other], 128)
    assert (kept, messages) == ([other], ["file names give a batch size per device of 64; 128 was given"])


def test_conflicting_repeats_are_named_and_equal_ones_are_not() -> None:
    assert chosen([speed(100.0), speed(100.0)], 128)[1] == []
    (message,) = chosen([speed(100.0), speed(110.0)], 128)[1]
    assert message == "r50 1n1g: repeat 1 came as 100.0, 110.0; the last counts"


def test_log_that_ended_early_is_named() -> None:
    speeds = [speed(1.0, source="a.log", iterations=30), speed(1.0, source="b.log", iterations=100), speed(1.0)]
    assert short_log_messages(speeds, 100) == ["a.log: only 30 of 100 iterations"]


def test_printed_speeds_of_both_forms_are_read() -> None:
    reader = PrintedSpeeds()
    for line in (
        "4n8g/r50_b128_fp32_4.log {1: 11165.17, '4': 11077.58}",
        '{"model_name": "ResNet50_bs256_fp32", "ips": 2564.1, "device_num": "N4C32", "batch_size": 256}',
        "4n8g/r50_b128_fp32_4.log {one: 1.0}",
        "any other line {}",
    ):
        reader.line(0, line)
    assert [(one.model, one.topology.name, one.repeat, one.speed, one.batch) for one in reader.speeds] == [
        ("r50", "4n8g", 1, 11165.17, 128),
        ("r50", "4n8g", 4, 11077.58, 128),
        ("ResNet50", "4n8g", 0, 2564.1, 256),
    ]
    assert reader.unparsed == ["4n8g/r50_b128_fp32_4.log {one: 1.0}"]
