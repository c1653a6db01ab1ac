"""The planner's bash semantics against records of what the suites' real scripts ran."""

import json
import re
from collections import Counter

import pytest
from tests.support.expected.oracle import SHIPPED, Oracle, find_oracle, kind_of

from tipcflow.domain import Compat, ConfigError
from tipcflow.params import known_dialects, load_dialect
from tipcflow.params.kinds import recognise
from tipcflow.plan import build_plan, record_commands

KEYS = (
    "dialect_name",
    "family",
    "mode",
    "variant",
    "params",
    "mutation",
    "config",
    "config_text",
    "commands",
    "cwd",
)
# Scripts that no record is of.
WITHOUT_RECORDS = {
    *("models/paddle2onnx", "models/ptq", "PaddleSeg/dy2static", "PaddleVideo/dy2static", "PASSL", "PaddleRS"),
    *("PaddleNLP", "PaddleSpeech", "Paddle3D", "Paddle3D/training", "pytorch", "mobilenet_v3_small"),
    *("parameter_server", "mobilenet_v3_small/ptq"),
}


def collapse(text: str) -> str:
    return re.sub(r"[ \t\n]+", " ", text).strip(" ")


def planned(record: dict) -> list[tuple[str, str, str | None]]:
    commands = record_commands(record)
    return [(collapse(each.text), each.cwd, each.env.get("CUDA_VISIBLE_DEVICES")) for each in commands]


def recorded(record: dict) -> list[tuple[str, str, str | None]]:
    rows = zip(record["commands"], record["cwd"], record["cuda_visible_devices"], strict=True)
    return [(collapse(text), cwd, cuda) for text, cwd, cuda in rows]


def script_of(record: dict) -> str:
    """Which script the record is of: a dialect's name, with `benchmark` for its benchmark script."""
    if record.get("family"):
        return f"{record['suite']}/{record['family']}"
    return record["dialect_name"] + (" benchmark" if record["mode"] == "benchmark_train" else "")


def test_plan_of_every_record_equals_its_commands(oracle: Oracle) -> None:
    """All scripts, modes, variants and mutations: texts, folders and CUDA_VISIBLE_DEVICES, command by command."""
    wrong: list[str] = []
    seen: Counter[str] = Counter()
    for record in oracle.records():
        if "commands" not in record:
            continue
        seen[script_of(record)] += 1
        if planned(record) != recorded(record):
            where = (record["config"], record["mode"], record["variant"], record.get("params") or "")
            wrong.append(f"{script_of(record)}: {' '.join(where)}")
    dialects = [load_dialect(name) for name in known_dialects()]
    recorded_ones = [each for each in dialects if each.name not in WITHOUT_RECORDS]
    with_benchmark = {f"{each.name} benchmark" for each in recorded_ones if each.benchmark}
    assert set(seen) == {each.name for each in recorded_ones} | with_benchmark
    assert sum(seen.values()) > (4000 if oracle.is_whole else 96)
    assert wrong == [], f"{len(wrong)} of {sum(seen.values())} differ: {Counter(w.split(':')[0] for w in wrong)}"


def test_files_without_records_are_recognised(oracle: Oracle) -> None:
    others = [record for record in oracle.records() if "commands" not in record]
    assert others
    assert [record["config"] for record in others if not recognise(record["config_text"]).kind] == []


@pytest.mark.parametrize("change", ["--epochs", "norm_train", "gpu_list"])
def test_the_comparison_can_fail(oracle: Oracle, change: str) -> None:
    records = (
        each for each in oracle.records() if each.get("mode") == "lite_train_lite_infer" and "mutation" not in each
    )
    record = next(each for each in records if each["dialect_name"] == "models/mobilenetv3_prod")
    assert planned(record) == recorded(record)
    record["config_text"] = re.sub(rf"(?m)^{change}:.*$", f"{change}:7", record["config_text"], count=1)
    assert planned(record) != recorded(record)


def test_nearly_every_recorded_file_has_a_spec_plan(oracle: Oracle) -> None:
    """Spec plans all but the files that declare nothing, or whose lines are shifted."""
    seen: dict[tuple[str, str], dict] = {}
    for record in oracle.records():
        if "mutation" not in record and "family" not in record:
            seen.setdefault((record["dialect_name"], record["config"]), record)
    good, refused = 0, []
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
        good += 1
        assert "{" not in "".join(c.text for s in plan.steps for c in s.commands.values()).replace("${", "")
    assert good > (500 if oracle.is_whole else 30)
    assert len(refused) <= 11, "\n".join(refused)


@pytest.mark.skipif(not find_oracle().is_whole, reason="compares the repository's records with all records")
def test_the_repository_has_a_record_of_each_kind(oracle: Oracle) -> None:
    """Each one as recorded; no dialect, family, mode or variant is missing."""
    shipped = list(Oracle(SHIPPED, is_whole=False).records())
    every = {json.dumps({key: record.get(key) for key in KEYS}) for record in oracle.records()}
    assert [r["config"] for r in shipped if json.dumps({key: r.get(key) for key in KEYS}) not in every] == []
    assert {kind_of(record) for record in shipped} == {kind_of(record) for record in oracle.records()}
    assert len(shipped) == 100
