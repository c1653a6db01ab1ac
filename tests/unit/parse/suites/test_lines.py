"""Every format's sample lines give exactly the values in tests/golden/parse/suites.tsv."""

import importlib
import math
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.bulk import quickly, same

from tipcflow.domain import Phase
from tipcflow.parse import FORMATS, lines_of, parse_training, strip_ansi
from tipcflow.parse.bulk.summary import summarize_log
from tipcflow.parse.training.formats import line_formats
from tipcflow.parse.training.scan import match_line

GOLDEN = Path(__file__).parents[3] / "golden" / "parse"
LOG = (GOLDEN / "suites.log").read_bytes()
LINES = strip_ansi(LOG.decode()).splitlines()


def report(data: bytes) -> str:
    """Each line's beginning, and what was read from it."""
    rows = []
    samples = list(parse_training(lines_of(data), "auto"))
    for offset, line in lines_of(data):
        rows.append(strip_ansi(line)[:100].rstrip())
        for one in samples:
            if one.offset == offset:
                where = f"epoch {one.epoch} iteration {one.iteration} rank {one.rank}"
                rows.append(
                    f"    {one.phase.value} {one.metric} = {one.value!r} {one.unit}".rstrip() + f"  {where}"
                )
    return "\n".join(rows) + "\n"


def test_sample_lines_of_all_suites_are_read() -> None:
    assert report(LOG) == (GOLDEN / "suites.txt").read_text()


def test_every_sample_line_but_titles_is_parsed() -> None:
    titles = ("metric in ckpt", "metric eval", "hmean:0.1", "area= small")
    result = {one.offset for one in parse_training(lines_of(LOG), "auto")}
    for offset, line in lines_of(LOG):
        assert (offset in result) is not any(title in line for title in titles), line


@pytest.mark.parametrize("name", FORMATS)
def test_a_line_fits_the_same_format_alone_and_among_all(name: str) -> None:
    """`auto` does not take a line away from the format that its suite declares."""
    mine = [line for line in LINES if (found := match_line(line, line_formats("auto"))) and found.form == name]
    assert mine, "there are sample lines of every format"
    for line in mine:
        alone, among = match_line(line, line_formats(name)), match_line(line, line_formats("auto"))
        assert alone == among, line


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_documented_with_sample_lines(name: str) -> None:
    module = importlib.import_module(f"tipcflow.parse.suites.{name}")
    samples = [line for line in re.split(r"\n(?=    \S)", module.__doc__ or "") if line.startswith("    ")]
    assert samples


@pytest.mark.parametrize(
    "line",
    [
        "W0104 17:59:19.018365 43338 device_context.cc:342] Please NOTE: device: 0, GPU Compute Capability: 7.0",
        "lr : 0.1",
        "paddle_version: 3.3.1",
        "2022-05-01 10:00:00 [INFO] config: {batch_size: 8, iters: 1000}",
        "[2022/05/01 10:00:00] ppcls INFO:     epochs : 120",
        "loss is going down: 3",
        "rank 1 of 2, backend gloo, device cpu, seed 2026",
        "64 bytes from 192.168.0.1: icmp_seq=0 ttl=64 time=0.090 ms",
    ],
)
def test_lines_without_measurements_are_not_recognized(line: str) -> None:
    assert list(parse_training(lines_of(line), "auto")) == []


@pytest.mark.parametrize(
    "prefix",
    [
        "[rank 3] ",
        "[Rank 3] ",
        "[rank3]: ",
        "[default3]:",
        "[1,3]<stdout>: ",
        "3: ",
        "log/workerlog.3:",
        "==> log/workerlog.3 <==\n",
    ],
)
def test_the_rank_before_a_line_is_read(prefix: str) -> None:
    for line in LINES:
        plain = list(parse_training(lines_of(line), "auto"))
        ranked = list(parse_training(lines_of(prefix + line), "auto"))
        assert [(one.metric, repr(one.value)) for one in plain] == [
            (one.metric, repr(one.value)) for one in ranked
        ], line
        own = "rank_id" in line
        assert {one.rank for one in ranked} <= ({0} if own else {3})


def test_nan_and_inf_are_values() -> None:
    for text in ("nan", "inf", "-inf", "NaN"):
        (loss, _) = parse_training(lines_of(f"[Epoch 1, iter: 2] loss: {text}, lr: 0.1"), "auto")
        assert repr(loss.value) == text.lower()
        assert loss.phase is Phase.TRAIN


@pytest.mark.parametrize(
    "line",
    [
        "[Train][Epoch 1/2][Iter: 1/12]loss: 1.5, ips: {} samples/s",
        "loss: 1.5, lr: 0.1, ips: {} samples/s",
        "loss: 1.5, lr: 0.1, ips: {}",
        "Epoch 1 | loss 1.5 | ips {} images/s",
        "Epoch 1, ips: {}, loss: 1.5",
    ],
)
def test_number_with_commas_is_not_cut(line: str) -> None:
    def read(number: str) -> dict[str, float]:
        return {one.metric: one.value for one in parse_training(lines_of(line.format(number)), "auto")}

    assert read("1234.5")["ips"] == 1234.5
    assert read("1,234.5")["loss"] == 1.5
    assert "ips" not in read("1,234.5")


@pytest.mark.parametrize(
    "line", ["ips: 1,234.5 samples/s", '{"model_name": "r", "ips": 1,234.5}', "Metric fid: 1,234"]
)
def test_nothing_is_read_of_a_cut_number(line: str) -> None:
    assert list(parse_training(lines_of(line), "auto")) == []


def test_of_several_numbers_in_brackets_the_first_is_read() -> None:
    for text in ("[0.1 0.2]", "[0.1, 0.2]", "[0.1,0.2]"):
        (acc, _) = parse_training(lines_of(f"[Epoch 1, iter: 2] acc: {text}, lr: 0.1"), "auto")
        assert acc.value == 0.1


def test_not_applicable_is_recognised_and_no_value() -> None:
    line = " Average Precision  (AP) @[ IoU=0.50:0.95 | area= small | maxDets=100 ] = -1.000"
    found = match_line(line, line_formats("auto"))
    assert found is not None
    assert (found.form, [reading.fields for reading in found.readings]) == ("det", [()])


@pytest.mark.parametrize(
    "line",
    [
        "Epoch 3: reducing learning rate of group 0 to 1.0000e-04.",
        "Epoch 1/20",
        "Epoch 1: 100 batches, 20 workers",
        "Epoch 1 | elapsed 3",
        "Testing 5 models",
        "Rank 0, Epoch 1",
    ],
)
def test_sentences_with_epochs_measure_nothing(line: str) -> None:
    assert list(parse_training(lines_of(line), "auto")) == []


def test_appended_log_continues_after_lines_repeated_by_the_launcher() -> None:
    line = "[Epoch 1, iter: 1] loss: 1.5\n"
    repeat = f"LAUNCH INFO x ---- ERROR LOG DETAIL ----\n{line}LAUNCH INFO x Exit code 1\n"
    assert [one.value for one in parse_training(lines_of(line + repeat + line))] == [1.5, 1.5]


@given(st.binary(max_size=300), st.sampled_from([*LINES, ""]))
@settings(max_examples=60, deadline=None)
def test_any_bytes_are_read_without_an_error(data: bytes, line: str) -> None:
    for glued in (data + line.encode(), line.encode() + data):
        for one in parse_training(lines_of(glued), "auto"):
            assert 0 <= one.offset < len(glued)


@pytest.mark.slow
@pytest.mark.timeout(100)
@pytest.mark.parametrize(
    "filler",
    [
        "a",
        "a:",
        "lr(",
        "1",
        " ",
        "loss: ",
        "epoch ",
        "1n1g/",
        "Epoch: 1/1, ",
        "INFO: a:",
        "[",
        "Test Acc ",
        "1: 1, ",
    ],
)
def test_hostile_lines_do_not_hold_the_reader_up(filler: str) -> None:
    """A second or so for 20,000 characters at the worst, not minutes."""
    for line in (
        "loss: 1, ips: 2 ",
        '{"x": "ips"',
        "Epoch 1 | loss 1 ",
        "[Train][Epoch 1/2][Iter: 0/1]",
        "test loss: .log {",
        "",
    ):
        list(parse_training(lines_of(line + filler * (19_000 // len(filler))), "auto"))


@pytest.mark.parametrize(
    "line",
    [
        "\x1b[33m Run {} with command - r50 - python a - b ! \x1b[0m",
        "[33m Run {} with command - r50 - python a - b ! [0m",
        "un {} with command - r50 - python a - b!",
    ],
)
def test_results_also_without_the_escapes_of_their_colors(line: str) -> None:
    for word, ok in (("successfully", True), ("failed", False)):
        (found,) = summarize_log([line.format(word).encode()]).results
        assert (found.ok, found.command) == (ok, "r50 - python a - b")


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("None", math.nan),
        ("", math.nan),
        ("Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=False,", math.nan),
        ("Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=False, [nan])", math.nan),
        ("Tensor(shape=[], dtype=float32, place=Place(gpu:0), stop_gradient=False, [0.53])", 0.53),
        ("tensor(0.25, grad_fn=<NllLossBackward0>)", 0.25),
        ("tensor(nan, device='cuda:0')", math.nan),
    ],
)
def test_loss_other_than_a_plain_number_is_read(printed: str, value: float) -> None:
    lines = [f"[Epoch 1, iter: {at}] lr: 0.10000, loss: {printed}" for at in range(40)]
    text = "\n".join(lines) + "\n"
    same(text.encode(), "models")
    for samples in (list(parse_training(lines_of(text))), quickly(text.encode(), "models", 1 << 19)):
        found = [one.value for one in samples if one.metric == "loss"]
        assert len(found) == 40
        assert all(one == value or (math.isnan(one) and math.isnan(value)) for one in found)


def test_only_training_lines_have_losses_without_a_number() -> None:
    config = "loss: None, lr: 0.1, batch: 4"
    assert "loss" not in {one.metric for one in parse_training(lines_of(config), "auto")}


def test_a_local_rank_is_not_the_rank() -> None:
    line = "[Epoch 1, iter: 0] local_rank: 0, loss: 2.5, lr: 0.1"
    samples = list(parse_training(lines_of(line)))
    assert {one.rank for one in samples} == {-1}
    assert {one.metric for one in samples} == {"loss", "lr"}
