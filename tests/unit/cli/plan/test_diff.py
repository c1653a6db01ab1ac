"""`tipcflow plan --diff`: every difference that matters, none that does not, each with its reason."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.expected.golden import assert_golden
from tests.support.expected.oracle import Oracle

from tipcflow.domain import Compat, ConfigError, Plan
from tipcflow.plan import build_plan, differences

GOLDEN = Path(__file__).parents[3] / "golden"
INPUT = GOLDEN / "plan" / "inputs" / "norm_fleet.txt"
PER_DIALECT = 10


def two_plans(text: str, file: str, dialect: str, mode: str = "lite_train_lite_infer") -> tuple[Plan, Plan]:
    bash, spec = (
        build_plan(text, file=file, suite="s", chain="s/m/c", dialects=[dialect], mode=mode, compat=compat)
        for compat in (Compat.BASH, Compat.SPEC)
    )
    return bash, spec


def test_diff_page_equals_the_golden_file(tipcflow: Callable[..., Any]) -> None:
    result = tipcflow("plan", str(INPUT), "--suite", "mobilenet_v3_small", "--diff")
    assert (result.code, result.err) == (0, "")
    page = re.sub(r"^\S+/norm_fleet", "norm_fleet", result.out)
    assert_golden(GOLDEN / "cli" / "plan_diff.txt", page)


def test_json_has_the_same_differences(tipcflow: Callable[..., Any]) -> None:
    result = tipcflow("plan", str(INPUT), "--suite", "mobilenet_v3_small", "--diff", "--json")
    page = json.loads(result.out)
    bash, spec = two_plans(INPUT.read_text(), "f.txt", "models/template")
    assert len(page["differences"]) == len(differences(bash, spec))
    ips = [each for each in page["differences"] if each["quirks"] == ["ips-by-length"] and each["bash"] == ""]
    assert {each["spec"] for each in ips} == {"--ips=192.168.0.1,192.168.0.2"}


def test_equal_plans_do_not_differ() -> None:
    _, spec = two_plans(INPUT.read_text(), "f.txt", "models/template")
    assert differences(spec, spec) == []


def test_logs_and_folders_are_not_differences() -> None:
    text = INPUT.read_text()
    for old, new in (
        ("192.168.0.1,192.168.0.2;0,1|0", "0"),
        ("inference_dir:null", "inference_dir:"),
    ):
        text = text.replace(old, new)
    bash, spec = two_plans(text, "f.txt", "models/template")
    assert [step.commands for step in bash.steps] != [step.commands for step in spec.steps]
    assert differences(bash, spec) == []


def test_a_lost_mode_entry_is_the_reason() -> None:
    text = INPUT.read_text().replace("192.168.0.1,192.168.0.2;0,1|0", "0")
    bash, spec = two_plans(text, "f.txt", "models/template", "lite_train_whole_infer")
    train = next(each for each in differences(bash, spec) if each.step.endswith("/train"))
    assert (train.bash, train.spec) == ("", "--epochs=5 --batch-size=4")
    assert [quirk.id for quirk in train.reasons] == ["mode-entry", "mode-entry"]


def test_folder_and_gpu_are_part_of_a_command() -> None:
    text = INPUT.read_text().replace("192.168.0.1,192.168.0.2;0,1|0", "6")
    both = two_plans(text, "f.txt", "PaddleOCR")
    train = next(each for each in differences(*both) if each.step.endswith("/train"))
    assert (train.bash, train.spec) == ("", "CUDA_VISIBLE_DEVICES=6")
    assert [quirk.id for quirk in train.reasons] == ["gpu-unset"]


# Mode of a record of the suites' other scripts -> ours.
MODES = {"paddle2onnx": "paddle2onnx_infer", "pipeline": "pipeline_infer", "dy2static": "lite_train_lite_infer"}


def chosen(oracle: Oracle, *, whole: bool) -> Iterator[dict[str, Any]]:
    """Records of all scripts, or some of every file of records: a third of the mutated ones."""
    for name, every in oracle.files():
        records = [each for each in every if "commands" in each]
        few = [each for each in records if each["mode"] in ("lite_train_lite_infer", "benchmark_train")][
            :PER_DIALECT
        ]
        if whole or not oracle.is_whole or "other_families" in name:
            yield from records
        elif "synthetic" in name:
            yield from records[::3]
        else:
            yield from few


def unexplained(records: Iterator[dict[str, Any]]) -> tuple[list[str], int]:
    """Differences that no quirk explains, and how many files were planned."""
    wrong = []
    planned = 0
    for record in records:
        mode = MODES.get(record["mode"], record["mode"]) + (f":{record['params']}" if record.get("params") else "")
        try:
            both = two_plans(record["config_text"], record["config"], record["dialect_name"], mode)
        except ConfigError:
            continue
        planned += 1
        where = f"{record['dialect_name']} {record['config']} {mode}"
        wrong += [f"{where} {each.step}" for each in differences(*both) if not each.reasons]
    return wrong, planned


@pytest.mark.slow
def test_differences_of_the_suites_files_and_of_mangled_ones_have_reasons(oracle: Oracle) -> None:
    """No difference is left without a quirk that explains it."""
    wrong, planned = unexplained(chosen(oracle, whole=False))
    assert wrong == []
    assert planned > (300 if oracle.is_whole else 60)


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_all_differences_have_reasons(oracle: Oracle) -> None:
    wrong, planned = unexplained(chosen(oracle, whole=True))
    assert wrong == []
    assert planned > (2500 if oracle.is_whole else 60)
