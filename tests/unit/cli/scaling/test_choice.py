"""Which speeds `tipcflow scaling` counts, and that it lists the excluded ones."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
B = ("--batch-size-per-device", "128", "--json")


@pytest.fixture
def answer(tipcflow: Command, tmp_path: Path) -> Callable[..., tuple[dict[str, Any], list[str]]]:
    """(topology -> row of the only model, notes) for a text of results."""

    def read(text: str, *more: str) -> tuple[dict[str, Any], list[str]]:
        (tmp_path / "speeds").write_text(text)
        result = tipcflow("scaling", str(tmp_path / "speeds"), *B, *more)
        assert (result.code, result.err) == (0, "")
        report = json.loads(result.out)
        (rows,) = report["models"].values()
        return rows, report["notes"]

    return read


Answer = Callable[..., tuple[dict[str, Any], list[str]]]


def test_other_batch_sizes_are_left_out(answer: Answer) -> None:
    rows, notes = answer(
        "1n1g/r50_b128_fp32_1.log {1: 400.0}\n1n1g/r50_b64_fp32_1.log {1: 300.0}\n"
        "1n8g/r50_b64_fp32_1.log {1: 1500.0}\n1n8g/r50_b128_fp32_1.log {1: 2000.0}\n"
    )
    assert {name: row["speeds"] for name, row in rows.items()} == {"1n1g": {"1": 400.0}, "1n8g": {"1": 2000.0}}
    assert notes == ["2 files of another batch size per device (64) skipped"]


def test_without_a_batch_size_in_names_all_count(answer: Answer) -> None:
    rows, notes = answer("1n1g/r50_b64_fp32_1.log {1: 300.0}\n1n8g/r50_b64_fp32_1.log {1: 1500.0}\n")
    assert rows["1n8g"]["speedup"] == 5.0
    assert notes == ["file names give a batch size per device of 64; 128 was given"]


def test_logs_of_two_batch_sizes_do_not_take_each_others_place(tipcflow: Command, tmp_path: Path) -> None:
    paths = [tmp_path / "1n1g" / f"r50_b{batch}_fp32_1.log" for batch in (64, 128)]
    paths[0].parent.mkdir()
    for path, ips in zip(paths, (300.0, 400.0), strict=True):
        path.write_text("".join(f"[Epoch 1, iter: {step}] loss: 1, avg_ips: {ips}\n" for step in range(150)))
    for order in (paths, paths[::-1]):
        report = json.loads(tipcflow("scaling", *map(str, order), *B).out)
        assert report["models"]["r50"]["1n1g"]["speeds"] == {"1": 400.0}


def test_a_repeat_that_comes_again(answer: Answer) -> None:
    line = "1n1g/r50_b128_fp32_1.log {1: 400.0}\n"
    assert answer(line * 2) == answer(line), "DLPerf prints the same again and again"
    rows, notes = answer(line + line.replace("400", "410"))
    assert rows["1n1g"]["speeds"] == {"1": 410.0}
    assert notes == ["r50 fp32 1n1g: repeat 1 came as 400.0, 410.0; the last counts"]


@pytest.mark.parametrize("bad", ["nan", "inf", "-inf", "0.0"])
def test_invalid_speeds_are_skipped(answer: Answer, bad: str) -> None:
    rows, notes = answer(f"1n1g/r50_b128_fp32_1.log {{1: 198.0, 2: 202.0, 3: {bad}}}\n")
    assert (rows["1n1g"]["average_speed"], rows["1n1g"]["median_speed"]) == (200.0, 200.0)
    assert notes == [f"1n1g/r50_b128_fp32_1.log repeat 3: skipped: invalid speed {bad}"]


def test_many_notes_of_a_kind_are_counted(answer: Answer) -> None:
    text = "".join(f"1n1g/r50_b128_fp32_{at}.log {{{at}: nan}}\n" for at in range(1, 20))
    _, notes = answer(text + "1n1g/r50_b128_fp32_20.log {20: 5.0}\n")
    assert len(notes) == 6
    assert notes[-1] == "and 14 more"


@pytest.mark.parametrize(
    "speeds", ["{1:200.5}", "{'1': 200.5}", '{"1": 200.5}', "{ 1: 200.5 }", "{ '1' : 200.5, }"]
)
def test_spellings_of_a_result_are_read(answer: Answer, speeds: str) -> None:
    rows, notes = answer(f"1n1g/r50_b128_fp32_1.log {speeds}\n")
    assert (rows["1n1g"]["speeds"], notes) == ({"1": 200.5}, [])


def test_an_unparsable_result_is_reported(tipcflow: Command, tmp_path: Path) -> None:
    file = tmp_path / "speeds"
    file.write_text("1n1g/r50_b128_fp32_1.log {1: 100.0}\n" + "1n8g/r50_b128_fp32_1.log {one: 800.0}\n" * 3)
    result = tipcflow("scaling", str(file), "--batch-size-per-device", "128")
    assert result.out.splitlines()[-1] == (
        f"note: {file}: cannot parse a line that looks like a result: "
        "1n8g/r50_b128_fp32_1.log {one: 800.0} (and 2 more such lines)"
    )


def log(path: Path, speeds: list[str], every: int = 1) -> str:
    path.parent.mkdir(exist_ok=True)
    lines = [
        f"[Epoch 1, iter: {at * every}] loss: 1, avg_batch_cost: {ips}, avg_ips: {ips}"
        for at, ips in enumerate(speeds)
    ]
    path.write_text("\n".join(lines))
    return str(path)


@pytest.mark.parametrize("rule", ["printed", "time"])
def test_nan_in_a_log_is_left_out_of_the_mean(tipcflow: Command, tmp_path: Path, rule: str) -> None:
    name = log(tmp_path / "1n1g" / "r50_b128_fp32_1.log", ["2.0", "nan", "2.0", "inf"] * 50)
    report = json.loads(tipcflow("scaling", name, *B, "--rule", rule).out)
    (rows,) = report["models"].values()
    assert report["notes"] == [f"{name}: 50 lines with nan or inf excluded from the mean"]
    assert rows["1n1g"]["median_speed"] == (2.0 if rule == "printed" else 64.0)
    log(Path(name), ["nan"] * 200)
    result = tipcflow("scaling", name, "--batch-size-per-device", "128")
    assert result.code == 2
    assert "prints no ips that is a number" in result.err


@pytest.mark.parametrize(
    ("lines", "every", "note"),
    [(60, 1, "only 10 of 100 iterations"), (150, 1, ""), (15, 10, ""), (8, 10, "only 30 of 100 iterations")],
)
def test_a_log_that_ends_too_early(tipcflow: Command, tmp_path: Path, lines: int, every: int, note: str) -> None:
    name = log(tmp_path / "1n1g" / "r50_b128_fp32_1.log", ["2.0"] * lines, every)
    notes = json.loads(tipcflow("scaling", name, *B).out)["notes"]
    assert notes == ([f"{name}: {note}"] if note else [])


def test_a_benchmarks_object_may_have_several_lines(answer: Answer) -> None:
    several = [
        {"model_name": "ResNet50_bs128_fp32_DP", "ips": ips, "device_num": device, "batch_size": 128}
        for device, ips in (("N1C1", 100.0), ("N4C32", 2800.0))
    ]
    rows, notes = answer("some\n" + "\n".join(json.dumps(one, indent=4) for one in several))
    assert (rows["4n8g"]["speedup"], notes) == (28.0, [])
