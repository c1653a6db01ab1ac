"""Lines of `legs.jsonl` that are no exit records are named by node, file and line."""

import json
from pathlib import Path

import pytest

from tipcflow.domain import EndReason, ExitRecord
from tipcflow.execute.job.exit_records import exit_record, garbled_legs

GOOD = ExitRecord(run="r", step="v/infer", leg="x", node="b", reason=EndReason.EXITED, exit_code=0)
LINE = GOOD.model_dump_json() + "\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ""),
        (LINE + "\n" + LINE, ""),
        (LINE + "rubbish\n", "node b: legs.jsonl line 2 is not an exit record: found 'rubbish'"),
        (LINE + '{"leg": 5}\n', "node b: legs.jsonl line 2 is not an exit record: found '{\"leg\": 5}'"),
        ("[]\n5\n" + LINE, "node b: legs.jsonl line 1 is not an exit record: found '[]' (2 such lines)"),
        ("x" * 500 + "\n", f"node b: legs.jsonl line 1 is not an exit record: found '{'x' * 60}…'"),
        (LINE + "torn", "node b: legs.jsonl line 2 is not an exit record: found 'torn'"),
    ],
)
def test_the_first_garbled_line_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "legs.jsonl").write_text(text)
    assert garbled_legs(tmp_path, "b", ended=True) == said


def test_a_killed_runner_may_leave_a_torn_last_line(tmp_path: Path) -> None:
    (tmp_path / "legs.jsonl").write_text(LINE + '{"run": "r", "st')
    assert garbled_legs(tmp_path, "b", ended=False) == ""


def test_a_job_without_the_file_has_no_garbled_line(tmp_path: Path) -> None:
    assert garbled_legs(tmp_path, "b", ended=True) == ""


@pytest.mark.parametrize("told", [None, 5, "x", [], {}, {"run": "r"}])
def test_only_an_exit_record_counts_as_one(told: object) -> None:
    assert exit_record(told) is None
    assert exit_record(json.loads(LINE)) == GOOD
