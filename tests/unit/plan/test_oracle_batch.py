"""`tipcflow plan --batch` on records as stored in the folder: some of every file, family, mode and variant.

test_oracle.py proves that each single record is planned as it ran; this file tests the command.
"""

import gzip
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.support.expected.oracle import Oracle, kind_of

pytestmark = pytest.mark.process
PER_KIND = 3


def chosen(oracle: Oracle) -> list[dict[str, Any]]:
    """The first records of each file's families, modes and variants."""
    seen: Counter[tuple[str, ...]] = Counter()
    records = []
    for name, every in oracle.files():
        for record in every:
            kind = (name, *kind_of(record))
            seen[kind] += 1
            if seen[kind] <= PER_KIND:
                records.append(record)
    return records


def collapse(text: str) -> str:
    return re.sub(r"[ \t\n]+", " ", text).strip(" ")


def rows(record: dict[str, Any]) -> list[tuple[str, str, str | None]]:
    three = zip(record["commands"], record["cwd"], record["cuda_visible_devices"], strict=True)
    return [(collapse(text), cwd, cuda) for text, cwd, cuda in three]


def batch(path: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", "from tipcflow.cli.main import main; main()", "plan", "--batch", str(path)]
    return subprocess.run([*command, "--compat", "bash"], capture_output=True, text=True, timeout=300, check=False)


def packed(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_bytes(gzip.compress("".join(json.dumps(record) + "\n" for record in records).encode()))
    return path


def test_batch_plans_of_records_equal_their_commands(oracle: Oracle, tmp_path: Path) -> None:
    records = chosen(oracle)
    result = batch(packed(tmp_path / "some.jsonl.gz", records))
    assert (result.returncode, result.stderr) == (0, "")
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [each["config"] for each in answers] == [each["config"] for each in records]
    wrong = [
        f"{record['dialect_name']} {record.get('family', '')} {record['mode']}: {record['config']}"
        for record, answer in zip(records, answers, strict=True)
        if "commands" in record and rows(answer) != rows(record)
    ]
    assert wrong == []
    assert len(records) > (200 if oracle.is_whole else 90)


def test_files_without_records_are_planned(oracle: Oracle, tmp_path: Path) -> None:
    records = [record for record in oracle.records() if "commands" not in record]
    result = batch(packed(tmp_path / "files.jsonl.gz", records))
    assert (result.returncode, result.stderr) == (0, "")
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(answers) == len(records) >= (38 if oracle.is_whole else 3)
    assert not any("error" in each for each in answers)
    assert all(each["commands"] for each in answers), [e["config"] for e in answers if not e["commands"]]
