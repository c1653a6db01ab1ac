"""Batch planning: for each record of a suite's script, the commands that the planner expects."""

from collections.abc import Mapping
from typing import Any

from tipcflow.domain import Command, ConfigError
from tipcflow.params import load_dialect
from tipcflow.params.modes import BENCHMARK
from tipcflow.plan.bash.benchmark import benchmark_commands
from tipcflow.plan.bash.commands import plan_commands
from tipcflow.plan.source.files import FileView, ListedFiles

_FIELDS = ("suite", "dialect_name", "config", "mode", "variant", "config_text")
# In records of these suites, a training with variant `files` left its folder, logs and weights.
_LEAVING = ("PaddleClas", "PaddleSeg", "PaddleGAN")


def record_commands(record: Mapping[str, Any], *, where: str = "") -> list[Command]:
    """Return the commands of one record's run, by the suite's script.

    Args:
        record: suite, dialect_name, config, mode, variant and config_text; params for benchmarks, family for the
            suite's other scripts. A null field counts as absent.
        where: the record's location, for messages.

    Raises:
        ConfigError: a field is missing, or the dialect is unknown.
    """
    for name in _FIELDS:
        if not isinstance(record.get(name), str):
            raise ConfigError(
                "a record lacks a field",
                file=where,
                key=name,
                found=repr(record.get(name)),
                expected="a text; the fields are " + ", ".join(_FIELDS),
            )
    text, config, mode = record["config_text"], record["config"], record["mode"]
    if record.get("mutation") == "crlf":  # these records lost the carriage returns that the script read
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    name = f"{record['suite']}/{record['family']}" if record.get("family") else record["dialect_name"]
    dialect, files = load_dialect(name), _files(record)
    if mode == BENCHMARK:
        word = record.get("params") or ""
        return benchmark_commands(text, file=config, dialect=dialect, word=word, files=files)
    return plan_commands(text, file=config, dialect=dialect, mode=mode, files=files)


def plan_record(record: Mapping[str, Any], *, where: str = "") -> dict[str, Any]:
    """Return a record's `plan --batch` output: config, mode, variant, and commands with folder and GPU ids.

    Raises:
        ConfigError: as `record_commands`.
    """
    commands = record_commands(record, where=where)
    return {
        "config": record["config"],
        "mode": record["mode"],
        "variant": record["variant"],
        "commands": [command.text for command in commands],
        "cwd": [command.cwd for command in commands],
        "cuda_visible_devices": [command.env.get("CUDA_VISIBLE_DEVICES") for command in commands],
    }


def _files(record: Mapping[str, Any]) -> FileView:
    leaves = record["variant"] == "files" and record["suite"] in _LEAVING
    return ListedFiles(["test_tipc", record["config"]], trainings_leave_files=leaves)
