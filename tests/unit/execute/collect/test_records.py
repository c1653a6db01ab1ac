"""Lines of `legs.jsonl` that are no exit records are named by node, file and line."""

import json
from pathlib import Path

import pytest

from tipcflow.domain import EndReason, ExitRecord, JobCommand, JobSpec
from tipcflow.execute.job.exit_records import exit_record, invalid_exit_message, invalid_legs_message

SPEC = JobSpec(
    run="r", step="v/infer", attempt=2, node="b", fence=1, workspace="/w", root="/w",
    commands=(JobCommand(leg="x", text="true", cwd="."),),
)  # fmt: skip
GOOD = ExitRecord(run="r", step="v/infer", leg="x", attempt=2, node="b", reason=EndReason.EXITED, exit_code=0)
LINE = GOOD.model_dump_json() + "\n"


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("", ""),
        (LINE + "\n" + LINE, ""),
        (LINE + "rubbish\n", "node b: legs.jsonl line 2 is not an exit record: found 'rubbish'"),
        (LINE + '{"leg": 5}\n', "node b: legs.jsonl line 2 is not an exit record: found '{\"leg\": 5}'"),
        ("[]\n5\n" + LINE, "node b: legs.jsonl line 1 is not an exit record: found '[]' (2 such lines)"),
        ("x" * 500 + "\n", f"node b: legs.jsonl line 1 is not an exit record: found '{'x' * 60}…'"),
        (LINE + "torn", "node b: legs.jsonl line 2 is not an exit record: found 'torn'"),
        (
            LINE + LINE.replace('"r"', '"other"'),
            "node b: legs.jsonl line 2 is the exit record of another job: found run 'other', expected 'r'",
        ),
        (
            LINE.replace('"x"', '"y"'),
            "node b: legs.jsonl line 1 is the exit record of another job: "
            "found leg 'y', expected a leg of this job",
        ),
    ],
)
def test_the_first_garbled_line_is_named(tmp_path: Path, text: str, result: str) -> None:
    (tmp_path / "legs.jsonl").write_text(text)
    assert invalid_legs_message(tmp_path, SPEC, ended=True) == result


def test_a_killed_runner_may_leave_a_torn_last_line(tmp_path: Path) -> None:
    (tmp_path / "legs.jsonl").write_text(LINE + '{"run": "r", "st')
    assert invalid_legs_message(tmp_path, SPEC, ended=False) == ""


def test_a_job_without_the_file_has_no_garbled_line(tmp_path: Path) -> None:
    assert invalid_legs_message(tmp_path, SPEC, ended=True) == ""


@pytest.mark.parametrize("report", [None, 5, "x", [], {}, {"run": "r"}])
def test_only_an_exit_record_counts_as_one(report: object) -> None:
    assert exit_record(report) is None
    assert exit_record(json.loads(LINE)) == GOOD


@pytest.mark.parametrize(
    ("field", "value", "result"),
    [
        ("run", "other", "found run 'other', expected 'r'"),
        ("step", "v/train", "found step 'v/train', expected 'v/infer'"),
        ("attempt", 1, "found attempt '1', expected '2'"),
        ("node", "a", "found node 'a', expected 'b'"),
        ("leg", "x", "found leg 'x', expected no leg"),
    ],
)
def test_the_record_of_another_job_proves_nothing_about_this_one(field: str, value: object, result: str) -> None:
    own = GOOD.model_copy(update={"leg": ""})
    assert invalid_exit_message(SPEC, own, own.model_dump(mode="json")) == ""
    other = own.model_copy(update={field: value})
    message = invalid_exit_message(SPEC, other, other.model_dump(mode="json"))
    assert message == f"exit.json is the exit record of another job: {result}"
