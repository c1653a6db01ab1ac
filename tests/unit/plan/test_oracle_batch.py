"""`tipcflow plan --batch` on records as they lie in the folder: some of every file, family, mode and variant.

That each single record is planned as it ran is asked in test_oracle.py; here it is the command that is asked.
"""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PER_KIND = 3


def chosen(path: Path) -> list[str]:
    """The first lines of a file of each family, mode and variant."""
    seen: dict[tuple[str, ...], int] = {}
    lines = []
    with gzip.open(path, "rt", encoding="utf-8") as every:
        for line in every:
            record = json.loads(line)
            kind = tuple(str(record.get(name)) for name in ("dialect_name", "family", "mode", "variant"))
            seen[kind] = seen.get(kind, 0) + 1
            if seen[kind] <= PER_KIND:
                lines.append(line)
    return lines


def collapse(text: str) -> str:
    return re.sub(r"[ \t\n]+", " ", text).strip(" ")


def rows(record: dict[str, Any]) -> list[tuple[str, str, str | None]]:
    three = zip(record["commands"], record["cwd"], record["cuda_visible_devices"], strict=True)
    return [(collapse(text), cwd, cuda) for text, cwd, cuda in three]


def batch(path: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", "from tipcflow.cli.main import main; main()", "plan", "--batch", str(path)]
    return subprocess.run([*command, "--compat", "bash"], capture_output=True, text=True, timeout=300, check=False)


def test_the_command_answers_records_as_they_ran(oracle: Path, tmp_path: Path) -> None:
    lines = [line for path in sorted(oracle.glob("*.jsonl.gz")) for line in chosen(path)]
    packed = tmp_path / "some.jsonl.gz"
    packed.write_bytes(gzip.compress("".join(lines).encode()))
    said = batch(packed)
    assert (said.returncode, said.stderr) == (0, "")
    answers = [json.loads(line) for line in said.stdout.splitlines()]
    records = [json.loads(line) for line in lines]
    assert [each["config"] for each in answers] == [each["config"] for each in records]
    wrong = [
        f"{record['dialect_name']} {record.get('family', '')} {record['mode']}: {record['config']}"
        for record, answer in zip(records, answers, strict=True)
        if "commands" in record and rows(answer) != rows(record)
    ]
    assert wrong == []
    assert len(records) > 200


@pytest.mark.parametrize("name", ["PaddleOCR.more_files.jsonl.gz"])
def test_files_without_records_are_answered(oracle: Path, name: str) -> None:
    said = batch(oracle / name)
    assert (said.returncode, said.stderr) == (0, "")
    answers = [json.loads(line) for line in said.stdout.splitlines()]
    assert len(answers) > 30
    assert not any("error" in each for each in answers)
    assert all(each["commands"] for each in answers), [e["config"] for e in answers if not e["commands"]]
