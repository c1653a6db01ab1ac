"""Training and evaluation lines become samples: exactly, in order; anything else is skipped."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipcflow.domain import ConfigError, Phase
from tipcflow.parse import Sample, last_training_line, lines_of, parse_ranks, parse_training, to_measurements

GOLDEN = Path(__file__).parents[3] / "golden" / "parse"
LOG = (GOLDEN / "train_models.log").read_bytes()
LINE = (
    "[Epoch 1, iter: 4780] top1: 0.10312, top5: 0.27344, lr: 0.01000, loss: 5.34719, "
    "avg_reader_cost: 0.03644 sec, avg_batch_cost: 0.05536 sec, avg_samples: 64.0, avg_ips: 1156.08863 images/sec."
)


def read(text: str | bytes) -> list[Sample]:
    return list(parse_training(lines_of(text)))


def test_every_field_of_the_line_of_the_models_dialect() -> None:
    expected = [
        ("top1", 0.10312, ""),
        ("top5", 0.27344, ""),
        ("lr", 0.01, ""),
        ("loss", 5.34719, ""),
        ("reader_cost", 0.03644, "s"),
        ("batch_cost", 0.05536, "s"),
        ("samples", 64.0, ""),
        ("ips", 1156.08863, "images/s"),
    ]
    assert read(LINE) == [Sample(name, value, unit, Phase.TRAIN, 1, 4780, 0) for name, value, unit in expected]


def test_colors_bad_bytes_and_foreign_lines_are_skipped() -> None:
    found = read(LOG)
    losses = [(one.epoch, one.iteration, one.value) for one in found if one.metric == "loss"]
    assert [loss[:2] for loss in losses] == [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]
    assert [loss[2] for loss in losses if not math.isnan(loss[2])] == [2.54719, -0.0015, 1.25, 1.2]
    assert math.isnan(losses[1][2])
    assert [one.value for one in found if one.metric == "grad_norm"] == [math.inf], "unknown pairs are kept"
    assert {one.metric for one in found} == {
        "top1", "top5", "lr", "loss", "reader_cost", "batch_cost", "samples", "ips", "grad_norm", "metric",
    }  # fmt: skip
    for one in found:
        assert LOG[one.offset :].lstrip(b"\x1b[3m").startswith((b"[Epoch", b"Epoch", b" * Acc"))


def test_evaluation_is_in_per_cent() -> None:
    found = read(" * Acc@1 0.833 Acc@5 4.167\n")
    assert found == [
        Sample("top1", 0.833, "%", Phase.EVAL, offset=0),
        Sample("top5", 4.167, "%", Phase.EVAL, offset=0),
    ]


def test_lines_repeated_by_the_launcher_count_once() -> None:
    text = (GOLDEN / "launch_failed.log").read_text()
    assert text.count("[Epoch 1, iter: 1]") == 2
    assert [one.metric for one in read(text)].count("loss") == 1


@pytest.mark.parametrize(
    "text",
    [
        "epochs: 5, batch size: 4, lr: 0.1",
        "[Epoch 1/2][Iter: 0/12] loss: 7.05",
        "=> loss: 3",
        "the step failed: 12",
        "[Epoch one, iter: 2] loss: 1",
        "Acc@1 0.833",
        "",
    ],
)
def test_lines_of_other_formats_are_skipped(text: str) -> None:
    assert read(text) == []


def test_ordinals_count_within_metric_and_phase() -> None:
    text = f"{LINE}\n * Acc@1 1.0 Acc@5 2.0\n{LINE}\n * Acc@1 3.0 Acc@5 4.0\n"
    made = to_measurements(read(text), run="r", step="s", node="a", rank=1, attempt=2, source="workerlog.1")
    keys = [(one.metric, one.phase, one.ordinal) for one in made]
    assert len(set(keys)) == len(keys)
    assert [(one.ordinal, one.value) for one in made if one.metric == "top1" and one.phase is Phase.EVAL] == [
        (0, 1.0),
        (1, 3.0),
    ]
    assert {(one.rank, one.attempt, one.source, one.node) for one in made} == {(1, 2, "workerlog.1", "a")}


def test_last_training_line_is_a_whole_one() -> None:
    assert last_training_line(LOG.decode(errors="replace")) == (
        "[Epoch 2, iter: 0] loss: -1.5E-3, eta: 0:01:40, when: 2026-11-21, "
        "custom metric: 7, avg_ips: 3.0 images/sec."
        "[Epoch 2, iter: 1] loss: 1.25"
    )
    assert last_training_line("nothing yet\n") == ""
    assert last_training_line(LINE) == "", "a line without its end is still being written"
    assert last_training_line("x" * 100_000 + "\n" + LINE + "\n") == LINE


def test_rank_line_describes_the_rank() -> None:
    (report,) = parse_ranks(LOG, node="beta")
    assert (report.node, report.rank, report.world_size, report.backend, report.device, report.seed) == (
        "beta", 1, 2, "gloo", "cpu", 2026,
    )  # fmt: skip
    assert parse_ranks("see rank 1 of 2, it failed\nrank x of 2") == ()


def test_rank_lines_of_an_appended_log_keep_the_last_one_last() -> None:
    text = "rank 0 of 2, backend gloo\nrank 0 of 1, backend gloo\nrank 0 of 2, backend gloo\n"
    assert [report.world_size for report in parse_ranks(text)] == [1, 2]


@given(st.binary(max_size=400))
def test_any_bytes_are_read_without_an_error(data: bytes) -> None:
    for glued in (data, b"[Epoch 1, iter: 1] " + data, b" * Acc@1 " + data):
        for one in read(glued):
            assert 0 <= one.offset < len(glued)


@given(st.floats(), st.integers(0, 10**6), st.integers(0, 10**9 - 1))
def test_every_number_survives_a_round_trip(value: float, epoch: int, iteration: int) -> None:
    found = read(f"[Epoch {epoch}, iter: {iteration}] loss: {value!r}, avg_batch_cost: {value!r} sec\n")
    assert [(one.metric, one.unit, one.epoch, one.iteration) for one in found] == [
        ("loss", "", epoch, iteration),
        ("batch_cost", "s", epoch, iteration),
    ]
    for one in found:
        assert one.value == value or (math.isnan(one.value) and math.isnan(value))


@given(st.lists(st.binary(max_size=30).filter(lambda piece: b"\n" not in piece), max_size=8))
def test_offsets_are_byte_offsets(pieces: list[bytes]) -> None:
    data = b"\n".join(pieces)
    assert [offset for offset, _ in lines_of(data)] == [
        offset
        for number in range(len(pieces))
        if (offset := sum(len(piece) + 1 for piece in pieces[:number])) < len(data)
    ]


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "filler", ["a" * 19_000, "a:" * 9_000, "lr(" * 6_000, "[" * 19_000, "1" * 19_000, " " * 19_000]
)
def test_hostile_lines_take_linear_time(filler: str) -> None:
    line = f"[Epoch 1, iter: 1] {filler}, loss: 1.5\n"
    assert [one.value for one in read(line * 20) if one.metric == "loss"] in ([1.5] * 20, [])


def test_lines_that_are_longer_than_any_log_line_are_skipped() -> None:
    assert read("[Epoch 1, iter: 1] loss: 1.5, x: " + "9" * 30_000) == []


def test_an_unknown_format_is_reported() -> None:
    with pytest.raises(
        ConfigError, match="log_format: is not a format of training logs; found 'tea'; expected one of clas"
    ):
        list(parse_training(lines_of(LINE), "tea"))
    assert len(list(parse_training(lines_of(LINE), "models"))) == 8


@pytest.mark.parametrize(
    ("line", "unit"),
    [
        ("loss: 2.3, ips: 10.5", ""),
        ("loss: 2.3, ips: 10.5 sequences/sec", "sequences/s"),
        ("throughput: 400.5", ""),
        ("[Epoch 1, iter: 2] loss: 1, avg_ips: 3.0", ""),
        ("[2021/08/08 16:28:28] root INFO: epoch: [1/200], iter: 10, 'loss': 4.1, ips: 224.79344", "samples/s"),
    ],
)
def test_the_unit_of_a_speed_is_the_logs_own(line: str, unit: str) -> None:
    (speed,) = [one for one in parse_training(lines_of(line), "auto") if one.metric in ("ips", "throughput")]
    assert speed.unit == unit
