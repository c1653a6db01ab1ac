"""`tipcflow plan --batch` as a process sees it: exit code, one JSON line per record, in order."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Tipcflow = Callable[..., Any]
INPUTS = Path(__file__).parents[3] / "golden" / "plan" / "inputs"


def record(**changes: object) -> dict[str, object]:
    return {
        "suite": "models",
        "dialect_name": "models/template",
        "config": "test_tipc/configs/m/train_infer_python.txt",
        "mode": "lite_train_lite_infer",
        "variant": "files",
        "config_text": (INPUTS / "norm_fleet.txt").read_text(),
    } | changes


@pytest.fixture
def batch(tipcflow: Tipcflow, tmp_path: Path) -> Tipcflow:
    def run(*lines: str, name: str = "r.jsonl") -> tuple[Any, list[dict[str, Any]]]:
        text = "".join(f"{line}\n" for line in lines).encode()
        path = tmp_path / name
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        result = tipcflow("plan", "--batch", str(path), "--compat", "bash")
        return result, [json.loads(line) for line in result.out.splitlines()]

    return run


@pytest.mark.parametrize("name", ["r.jsonl", "r.jsonl.gz", "named_wrongly.jsonl"])
def test_every_record_is_planned_in_order(batch: Tipcflow, name: str) -> None:
    modes = ["lite_train_lite_infer", "whole_infer", "whole_train_whole_infer"]
    result, answers = batch(*(json.dumps(record(mode=mode)) for mode in modes), name=name)
    assert result.code == 0
    assert result.err == ""
    assert [each["mode"] for each in answers] == modes
    assert {each["config"] for each in answers} == {record()["config"]}
    assert all(each["commands"] and each["variant"] == "files" for each in answers)
    assert all(len(each["commands"]) == len(each["cwd"]) == len(each["cuda_visible_devices"]) for each in answers)
    assert any("--ips" in command or "launch" in command for command in answers[0]["commands"])


def test_a_file_whose_script_does_nothing_has_a_result(batch: Tipcflow) -> None:
    text = str(record()["config_text"]).replace("trainer:", "trainer:\n:", 1)
    result, (answer,) = batch(json.dumps(record(mutation="crlf")))
    assert (result.code, answer["commands"]) == (0, [])
    assert "error" not in answer
    assert batch(json.dumps(record(config_text=text)))[0].code == 0


@pytest.mark.parametrize(
    ("line", "report"),
    [
        ("{", "not a JSON object"),
        ("[1]", "not a JSON object"),
        (json.dumps(record(dialect_name="nope")), "no such dialect"),
        (json.dumps(record(config_text=None)), "config_text"),
        (json.dumps(record(variant="some")), "no such variant"),
        (json.dumps(record(family="nope")), "models/nope"),
        (json.dumps(record(family=7)), "family"),
        (json.dumps(record(params=[7])), "params"),
        (json.dumps(record(variant=7)), "variant"),
        (json.dumps(record(config=7)), "config"),
    ],
)
def test_a_record_that_cannot_be_planned_does_not_stop_the_others(batch: Tipcflow, line: str, report: str) -> None:
    good = json.dumps(record())
    result, answers = batch(good, line, good)
    assert result.code == 2
    assert [bool(each["commands"]) for each in answers] == [True, False, True]
    assert report in answers[1]["error"]
    assert "1 records could not be planned" in result.err


def test_a_record_without_a_mode_gets_the_default_one(batch: Tipcflow) -> None:
    bare = {key: value for key, value in record().items() if key not in ("mode", "variant")}
    result, (answer,) = batch(json.dumps(bare))
    assert (result.code, answer["mode"], answer["variant"]) == (0, "lite_train_lite_infer", "files")


@pytest.mark.parametrize(
    "content", [None, b"\x1f\x8b\x00broken", b"\xff\xfe{}", gzip.compress(b"{}" * 9999, mtime=0)[:-9]]
)
def test_unreadable_records_are_bad_input(tipcflow: Tipcflow, tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "r.jsonl"
    if content is not None:
        path.write_bytes(content)
    result = tipcflow("plan", "--batch", str(path), "--compat", "bash")
    assert result.code == 2
    assert str(path) in result.err
    assert "expected JSON lines" in result.err


@pytest.mark.parametrize("more", [["--compat", "spec"], ["--compat", "bash", "f.txt"], []])
def test_batch_refuses_options_that_scripts_lack(tipcflow: Tipcflow, more: list[str]) -> None:
    result = tipcflow("plan", "--batch", "r.jsonl", *more)
    assert (result.code, result.out) == (2, "")
