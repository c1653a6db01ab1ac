"""The planner's bash semantics against records of what the suites' real scripts ran."""

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tipcflow.domain import Compat, ConfigError
from tipcflow.params import known_dialects, load_dialect
from tipcflow.plan import ListedFiles, benchmark_commands, build_plan, plan_commands

# Suites whose recorded training left what a successful one leaves (variant `files`).
LEAVES = ("PaddleClas", "PaddleSeg", "PaddleGAN")


def records(folder: Path) -> Iterator[dict]:
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines)


def text_of(record: dict) -> str:
    """The file as the script saw it: the records of Windows line endings have lost their carriage returns."""
    text = record["config_text"]
    return text.replace("\n", "\r\n") if record.get("mutation") == "crlf" else text


def collapse(text: str) -> str:
    return re.sub(r"[ \t\n]+", " ", text).strip(" ")


def planned(record: dict, dialect: str = "") -> list[tuple[str, str, str | None]]:
    leaves = record["variant"] == "files" and record["suite"] in LEAVES
    commands = plan_commands(
        text_of(record),
        file=record["config"],
        dialect=load_dialect(dialect or record["dialect_name"]),
        mode=record["mode"],
        files=ListedFiles(["test_tipc"], trainings_leave_files=leaves),
    )
    return [(collapse(each.text), each.cwd, each.env.get("CUDA_VISIBLE_DEVICES")) for each in commands]


def recorded(record: dict) -> list[tuple[str, str, str | None]]:
    rows = zip(record["commands"], record["cwd"], record["cuda_visible_devices"], strict=True)
    return [(collapse(text), cwd, cuda) for text, cwd, cuda in rows]


def test_every_record_of_the_train_and_infer_family_is_planned_as_it_ran(oracle: Path) -> None:
    wrong: list[str] = []
    seen: Counter[str] = Counter()
    for record in records(oracle):
        name = record["dialect_name"]
        if "family" in record or "commands" not in record or record["mode"] == "benchmark_train":
            continue
        seen[name] += 1
        if planned(record) != recorded(record):
            wrong.append(f"{name}: {record['config']} {record['mode']} {record['variant']}")
    assert set(seen) == {name for name in known_dialects() if not load_dialect(name).family}
    assert wrong == [], f"{len(wrong)} of {sum(seen.values())} differ"
    assert sum(seen.values()) > 3000


@pytest.mark.parametrize("change", ["--epochs", "norm_train", "gpu_list"])
def test_the_comparison_can_fail(oracle: Path, change: str) -> None:
    name = "models.jsonl.gz"
    with gzip.open(oracle / name, "rt", encoding="utf-8") as lines:
        record = json.loads(next(lines))
    record["config_text"] = re.sub(rf"(?m)^{change}:.*$", f"{change}:7", record["config_text"], count=1)
    assert planned(record) != recorded(record)


def test_nearly_every_recorded_file_can_be_run_as_it_is(oracle: Path) -> None:
    """Spec plans all but the files that declare nothing, or whose lines are shifted."""
    seen: dict[tuple[str, str], dict] = {}
    for record in records(oracle):
        if "mutation" not in record and "family" not in record:
            seen.setdefault((record["dialect_name"], record["config"]), record)
    planned_ones, refused = 0, []
    for (name, config), record in seen.items():
        try:
            plan = build_plan(
                record["config_text"],
                file=config,
                suite=record["suite"],
                chain="c",
                dialects=[name],
                mode="lite_train_lite_infer",
                compat=Compat.SPEC,
                cluster=None,
            )
        except ConfigError as error:
            refused.append(f"{config}: {error.message}")
            continue
        planned_ones += 1
        assert "{" not in "".join(c.text for s in plan.steps for c in s.commands.values()).replace("${", "")
    assert planned_ones > 500
    assert len(refused) <= 11, "\n".join(refused)


def test_every_benchmark_record_is_planned_as_it_ran(oracle: Path) -> None:
    wrong: list[str] = []
    seen: Counter[str] = Counter()
    for record in records(oracle):
        if record.get("mode") != "benchmark_train" or "commands" not in record:
            continue
        seen[record["dialect_name"]] += 1
        commands = benchmark_commands(
            record["config_text"],
            file=record["config"],
            dialect=load_dialect(record["dialect_name"]),
            word=record["params"] or "",
            files=ListedFiles(["test_tipc"], trainings_leave_files=record["suite"] in LEAVES),
        )
        ran = [(collapse(each.text), each.cwd, each.env.get("CUDA_VISIBLE_DEVICES")) for each in commands]
        if ran != recorded(record):
            wrong.append(f"{record['dialect_name']}: {record['config']} {record['params']}")
    assert sum(seen.values()) > 600
    assert wrong == [], f"{len(wrong)} of {sum(seen.values())} differ"


def test_every_record_of_the_other_scripts_is_planned_as_it_ran(oracle: Path) -> None:
    wrong: list[str] = []
    seen: Counter[str] = Counter()
    for record in records(oracle):
        if "family" not in record:
            continue
        name = f"{record['suite']}/{record['family']}"
        seen[name] += 1
        if planned(record, name) != recorded(record):
            wrong.append(f"{name}: {record['config']} {record['mode']}")
    assert set(seen) == {name for name in known_dialects() if load_dialect(name).family}
    assert wrong == [], f"{len(wrong)} of {sum(seen.values())} differ"
