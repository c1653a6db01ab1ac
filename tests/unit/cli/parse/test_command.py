"""`tipcflow parse`: one document or table on stdout, one clear error for what cannot be read."""

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parents[3] / "golden" / "parse"
CLAS = (
    "[2022/05/01 10:00:00] ppcls INFO: [Train][Epoch 1/2][Iter: {step}/12]lr(Cosine): 0.10000000, top1: 0.5, "
    "CELoss: 7.05123, loss: {loss}, batch_cost: 1.23456s, ips: 6.48012 samples/s, eta: 0:00:29\n"
)
Command = Callable[..., Any]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "workerlog.3"
    losses = ("2.0", "nan", "4.0", "inf", "3.0")
    lines = [CLAS.format(step=step, loss=loss) for step, loss in enumerate(losses)]
    path.write_text("".join(lines) + "\nsomething else\n")
    return path


def metrics(result: Any) -> dict[str, Any]:
    (file,) = json.loads(result.out)["files"]
    return {one["metric"]: one for one in file["metrics"]}


def test_parse_prints_a_json_document(tipcflow: Command, log: Path) -> None:
    result = tipcflow("parse", str(log), "--json")
    assert (result.code, result.err) == (0, "")
    (file,) = json.loads(result.out)["files"]
    assert {key: file[key] for key in ("file", "format", "lines", "blank", "recognised", "unrecognised")} == {
        "file": str(log), "format": "clas", "lines": 7, "blank": 1, "recognised": {"clas": 5}, "unrecognised": 1,
    }  # fmt: skip
    assert metrics(result)["loss"] == {
        "metric": "loss", "phase": "train", "rank": 3, "unit": "", "n": 5, "first": 2.0, "last": 3.0,
        "mean": 3.0, "median": 3.0, "median_exact": True, "min": 2.0, "max": 4.0, "not_finite": 2,
    }  # fmt: skip
    assert metrics(result)["ips"]["unit"] == "samples/s"


def test_parse_page_equals_the_golden_file(tipcflow: Command) -> None:
    result = tipcflow("parse", *(str(GOLDEN / name) for name in ("train_models.log", "launch_failed.log")))
    assert result.code == 0
    assert result.out.replace(str(GOLDEN), "GOLDEN") == (GOLDEN / "page.txt").read_text()


def test_the_seeds_autolog_block_is_read(tipcflow: Command) -> None:
    result = tipcflow("parse", str(GOLDEN / "autolog_plain.log"), "--json")
    (file,) = json.loads(result.out)["files"]
    (block,) = file["autolog"]
    assert block["fields"] == json.loads((GOLDEN / "autolog_plain.json").read_text())
    assert block["complete"]
    assert (file["recognised"], file["unrecognised"]) == ({"autolog": file["lines"]}, 0)
    values = {name: one["first"] for name, one in metrics(result).items()}
    assert (values["inference_time"], values["total_time"], values["cpu_rss"]) == (139.591, 0.1583, 227.2812)
    assert "gpu_rss" not in values, "None is no number"


def test_csv_has_one_row_per_sample(tipcflow: Command, log: Path) -> None:
    result = tipcflow("parse", str(log), "--csv")
    rows = list(csv.DictReader(io.StringIO(result.out)))
    assert [row["value"] for row in rows if row["metric"] == "loss"] == ["2.0", "NaN", "4.0", "inf", "3.0"]
    assert len(rows) == 5 * 6
    assert {(row["rank"], row["format"], row["epoch"]) for row in rows} == {("3", "clas", "1")}


def test_parse_reads_gzipped_files(tipcflow: Command, log: Path, tmp_path: Path) -> None:
    zipped = tmp_path / "log.gz"
    zipped.write_bytes(gzip.compress(log.read_bytes()))
    assert metrics(tipcflow("parse", str(zipped), "--json"))["loss"]["n"] == 5
    zipped.write_bytes(zipped.read_bytes()[:-9])
    result = tipcflow("parse", str(zipped), str(log), "--json")
    broken, whole = json.loads(result.out)["files"]
    assert result.code == 2
    assert "is broken gzip" in broken["error"]
    assert whole["lines"] == 7


def test_bad_inputs_are_named_and_others_parsed(tipcflow: Command, log: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing.log"
    for flags in ((), ("--json",), ("--csv",)):
        result = tipcflow("parse", str(missing), str(tmp_path), str(log), *flags)
        assert result.code == 2
        assert [line.split(": ")[0] for line in result.err.splitlines()] == ["config_error"] * 2
        assert f"{missing}: cannot be read: No such file or directory" in result.err
        assert f"{tmp_path}: is a folder; expected files, like {tmp_path}/*" in result.err
        assert "loss" in result.out


def test_parse_refuses_an_unknown_format(tipcflow: Command, log: Path) -> None:
    result = tipcflow("parse", str(log), "--format", "tea")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(
        "config_error: --format: is not a log format; found 'tea'; expected one of auto, clas"
    )


def test_parse_with_a_format_skips_other_lines(tipcflow: Command, log: Path) -> None:
    result = tipcflow("parse", str(log), "--format", "seg", "--json")
    (file,) = json.loads(result.out)["files"]
    assert (file["recognised"], file["unrecognised"], result.code) == ({}, 6, 0)


def test_empty_and_binary_files_are_parsed_without_an_error(tipcflow: Command, tmp_path: Path) -> None:
    for content in (b"", bytes(range(256)) * 50):
        (tmp_path / "x").write_bytes(content)
        result = tipcflow("parse", str(tmp_path / "x"), "--json")
        assert result.code == 0
        assert json.loads(result.out)["files"][0]["bytes"] == len(content)
