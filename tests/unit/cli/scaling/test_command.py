"""`tipcflow scaling`: the seed's table from its lines, the same rules for logs, and clear refusals."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parents[3] / "golden" / "parse"
SEED = GOLDEN / "plsc_speeds.txt"
Command = Callable[..., Any]
B = ("--batch-size-per-device", "128")
# What the seed prints under its lines.
TABLE = {
    "1n1g": (397.98, 397.78, 1.0),
    "1n4g": (1541.03, 1539.66, 3.87),
    "1n8g": (2548.18, 2545.3, 6.4),
    "2n8g": (5956.61, 5953.84, 14.97),
    "4n8g": (11086.97, 11084.53, 27.87),
}


def report(result: Any) -> dict[str, Any]:
    return {name: dict(rows) for name, rows in json.loads(result.out)["models"].items()}


def test_the_seeds_table_is_made_from_its_lines(tipcflow: Command) -> None:
    result = tipcflow("scaling", str(SEED), *B, "--json")
    assert (result.code, result.err) == (0, "")
    rows = report(result)["r50"]
    assert {
        name: (row["average_speed"], row["median_speed"], row["speedup"]) for name, row in rows.items()
    } == TABLE
    assert {(row["batch_size_per_device"], row["repeats"]) for row in rows.values()} == {(128, 5)}
    assert rows["4n8g"]["efficiency"] == round(11084.53 / 397.78 / 32, 4), "of the speed-up before it is rounded"


def test_the_table_for_users_is_printed(tipcflow: Command) -> None:
    assert tipcflow("scaling", str(SEED), *B).out == (GOLDEN / "scaling.txt").read_text()


def test_lines_may_be_in_several_files_and_in_any_order(tipcflow: Command, tmp_path: Path) -> None:
    lines = SEED.read_text().splitlines()
    (tmp_path / "a").write_text("noise\n" + "\n".join(reversed(lines[:11])) + "\n")
    (tmp_path / "b").write_text("\r\n".join(lines[11:]))
    result = tipcflow("scaling", str(tmp_path / "b"), str(tmp_path / "a"), *B, "--json")
    assert {name: row["speedup"] for name, row in report(result)["r50"].items()} == {
        name: row[2] for name, row in TABLE.items()
    }


def test_table_without_a_single_device_has_no_speedup(tipcflow: Command, tmp_path: Path) -> None:
    lines = SEED.read_text().splitlines()
    (tmp_path / "some").write_text("\n".join(line for line in lines if "1n1g" not in line))
    result = tipcflow("scaling", str(tmp_path / "some"), *B, "--json")
    assert result.code == 0
    assert {(row["speedup"], row["efficiency"]) for row in report(result)["r50"].values()} == {(None, None)}
    assert json.loads(result.out)["notes"] == [
        "r50: no speed-up, because no run used 1n1g",
        "r50: 2n8g is 2.34 times as fast as 1n8g with 2 times the devices, more than linear: "
        "check the measurement of 1n8g",
    ]


def log(
    folder: Path, topology: str, *, ips: float, cost: float, repeat: int = 1, steps: int = 150, every: int = 1
) -> str:
    """A training log whose first 50 iterations are ten times as slow."""
    path = folder / topology / f"r50_b128_fp32_{repeat}.log"
    path.parent.mkdir(exist_ok=True)
    rows = []
    for step in range(0, steps, every):
        slow = 10 if step < 50 else 1
        rows.append(
            f"[Epoch 1, iter: {step}] loss: 1.0, avg_batch_cost: {cost * slow} sec, avg_ips: {ips / slow} images/s"
        )
    path.write_text("\n".join(rows) + "\n")
    return str(path)


@pytest.mark.parametrize("every", [1, 10])
def test_scaling_reads_training_logs(tipcflow: Command, tmp_path: Path, every: int) -> None:
    logs = [
        log(tmp_path, "1n1g", ips=100.0, cost=1.28, every=every),
        log(tmp_path, "2n4g", ips=700.0, cost=1.6, every=every),
        log(tmp_path, "2n4g", ips=702.0, cost=1.6, repeat=2, every=every),
    ]
    rows = report(tipcflow("scaling", *logs, *B, "--json"))["r50"]
    assert rows["1n1g"]["median_speed"] == 100.0
    assert (rows["2n4g"]["average_speed"], rows["2n4g"]["speedup"]) == (701.0, 7.01)
    rows = report(tipcflow("scaling", *logs, *B, "--rule", "time", "--json"))["r50"]
    assert (rows["1n1g"]["median_speed"], rows["2n4g"]["median_speed"]) == (100.0, 640.0)


def test_time_from_stamps(tipcflow: Command, tmp_path: Path) -> None:
    path = tmp_path / "1n1g.log"
    rows = [
        f"[2022/05/01 10:{step // 60:02}:{step % 60:02}] ppcls INFO: [Train][Epoch {1 + step // 100}/2]"
        f"[Iter: {step % 100}/100]loss: 1.0, top1: 0.1"
        for step in range(150)
    ]
    path.write_text("\n".join(rows))
    result = tipcflow("scaling", str(path), *B, "--rule", "time", "--json")
    assert report(result)[""]["1n1g"]["median_speed"] == 128.0


def test_a_log_that_is_too_short(tipcflow: Command, tmp_path: Path) -> None:
    result = tipcflow("scaling", log(tmp_path, "1n1g", ips=1, cost=1, steps=40), *B)
    assert result.code == 2
    assert "has 40 iterations, and the first 50 do not count" in result.err
    result = tipcflow("scaling", log(tmp_path, "1n1g", ips=1, cost=1, steps=40), *B, "--skip", "10")
    assert result.code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((str(SEED),), "Missing option"),
        (
            (str(SEED), "--batch-size-per-device", "0"),
            "--batch-size-per-device: invalid value; found '0'; expected at least 1",
        ),
        (("missing.log", *B), "missing.log: cannot be read: No such file or directory"),
        (("no-such-run", *B), "is neither a file nor a run; found 'no-such-run'"),
        ((str(SEED), *B, "--rule", "time"), "contains results but no times"),
        ((str(GOLDEN / "train_models.log"), *B), "has no topology in its path"),
        (
            (str(GOLDEN / "launch_failed.log"), *B, "--rule", "tea"),
            "--rule: invalid value; found 'tea'; expected one of printed, time",
        ),
    ],
)
def test_invalid_input_is_an_error(tipcflow: Command, arguments: tuple[str, ...], message: str) -> None:
    result = tipcflow("scaling", *arguments)
    assert result.code == 2
    assert message in result.err


def test_speeds_of_tipc_benchmarks_are_read(tipcflow: Command, tmp_path: Path) -> None:
    rows = [
        {
            "model_name": "ResNet50_bs128_fp32_DP",
            "ips": ips,
            "device_num": device,
            "batch_size": 128,
            "fp_item": "fp32",
        }
        for device, ips in (("N1C1", 100.0), ("N4C32", 2800.0))
    ]
    (tmp_path / "speeds").write_text("\n".join(map(json.dumps, rows)))
    result = tipcflow("scaling", str(tmp_path / "speeds"), *B, "--json")
    assert report(result)["ResNet50"]["4n8g"]["speedup"] == 28.0


def test_csv_has_a_row_per_topology(tipcflow: Command) -> None:
    rows = list(csv.DictReader(tipcflow("scaling", str(SEED), *B, "--csv").out.splitlines()))
    assert {
        row["topology"]: (float(row["average_speed"]), float(row["median_speed"]), float(row["speedup"]))
        for row in rows
    } == TABLE
    assert {len(row["speeds"].split("; ")) for row in rows} == {5}
