"""The table that is read before a run, and the minutes in it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.expected.golden import assert_golden

from tipcflow.domain import Plan, Run, Status
from tipcflow.store import Store

ROOT = Path(__file__).parents[4]
GOLDEN = ROOT / "tests" / "golden" / "cli"
PARAMS = "test_tipc/configs/mobilenet_v3_small/train_linux_gpu_fleet_normal_infer_python_linux_gpu_cpu.txt"
MODE = "lite_train_lite_infer"
TRAIN = "norm_train_gpus_0,1_autocast_null_nodes_2/train"
Tipcflow = Callable[..., Any]


@pytest.fixture
def table(tipcflow: Tipcflow, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.chdir(ROOT)
    return lambda *more: tipcflow("plan", PARAMS, "--suite", "mobilenet_v3_small", *more)


@pytest.fixture
def planned(table: Callable[..., Any]) -> Plan:
    return Plan.model_validate_json(table("--json").out)


def remember(plan: Plan, minutes: float, name: str, status: Status = Status.PASS, **fields: Any) -> None:
    """A past run whose steps took `minutes` each."""
    run = {
        "id": name,
        "chain": plan.chain,
        "suite": plan.suite,
        "model": plan.model,
        "mode": plan.mode,
        "cluster": "c",
        "created_at": 0.0,
    }
    with Store.open() as store:
        store.runs.create(Run.model_validate(run | fields), plan)
        for step in plan.steps:
            attempt = store.attempts.open(name, step.id, step.nodes, 100.0)
            store.attempts.close(name, step.id, attempt, status, "", (), 100.0 + 60 * minutes)
        store.runs.finish(name, status, "", 9999.0)


def golden(name: str, text: str) -> None:
    assert_golden(GOLDEN / name, text)


def test_without_history_the_table_has_no_minutes(table: Callable[..., Any], home: Path) -> None:
    result = table("--format", "table")
    assert (result.code, result.err) == (0, "")
    golden("plan_table.txt", result.out)
    assert not list(home.rglob("*.db")), "planning must not make a database"


def test_with_history_every_step_has_its_median(table: Callable[..., Any], planned: Plan) -> None:
    for number, minutes in enumerate((1.0, 2.0, 30.0)):
        remember(planned, minutes, f"run-{number}")
    result = table("--format", "table")
    golden("plan_table_minutes.txt", result.out)
    assert "predicted 12.0 minutes, the median of 3 past runs" in result.out


def test_only_good_runs_of_the_same_mode_and_chain_count(table: Callable[..., Any], planned: Plan) -> None:
    remember(planned, 7.0, "failed", Status.FAILED)
    remember(planned, 7.0, "whole", mode="whole_train_whole_infer")
    remember(planned, 7.0, "other", chain="s/m/other")
    assert "MINUTES" not in table("--format", "table").out


def test_new_steps_are_reported(table: Callable[..., Any], planned: Plan) -> None:
    remember(planned.model_copy(update={"steps": tuple(s for s in planned.steps if s.id == TRAIN)}), 3.0, "run")
    result = table("--format", "table")
    assert "predicted 3.0 minutes, the median of 1 past run; 5 of 6 steps have no history" in result.out


def test_unreadable_database_does_not_prevent_a_plan(
    table: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir()
    (home / "tipcflow.db").write_bytes(b"this is no database" * 99)
    result = table("--format", "table")
    assert result.code == 0
    assert "no predicted minutes: " in result.err
    assert (home / "tipcflow.db").read_bytes() == b"this is no database" * 99


@pytest.mark.parametrize("missing", [[PARAMS], ["--suite", "mobilenet_v3_small"]])
def test_missing_values_are_reported(tipcflow: Tipcflow, missing: list[str]) -> None:
    result = tipcflow("plan", *missing)
    assert (result.code, result.out) == (2, "")
    assert "is missing" in result.err


SERVING = """===========================serving_params===========================
model_name:net
python:python3.7
op.net.local_service_conf.devices:null|0
op.net.local_service_conf.use_mkldnn:True|False
port:9993
"""


def test_unsupported_file_is_shown_with_types_before_the_refusal(
    tipcflow: Tipcflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    path = tmp_path / "net_serving.txt"
    path.write_text(SERVING)
    result = tipcflow("plan", str(path), "--suite", "mobilenet_v3_small")
    assert result.code == 2
    assert "files of kind 'serving' are read but not run: a service is started in the background" in result.err
    name, *rows = result.out.splitlines()
    assert name.endswith("net_serving.txt: a service and its client, 5 lines; it is not run")
    assert [" ".join(row.split()) for row in rows] == [
        "LINE KEY TYPE VALUE",
        "2 model_name text net",
        "3 python text python3.7",
        "4 op.net.local_service_conf.devices list of nothing or number null|0",
        "5 op.net.local_service_conf.use_mkldnn list of flag True|False",
        "6 port number 9993",
    ]


def test_json_has_typed_values(tipcflow: Tipcflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    path = tmp_path / "net_serving.txt"
    path.write_text(SERVING)
    result = tipcflow("plan", str(path), "--suite", "mobilenet_v3_small", "--json")
    assert result.code == 2
    page = json.loads(result.out)
    assert (page["kind"], bool(page["refused"])) == ("serving", True)
    assert [entry["value"] for entry in page["entries"]] == ["net", "python3.7", [None, 0], [True, False], 9993]


def test_a_benchmark_is_selected_by_its_case(
    tipcflow: Tipcflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ocr.yaml").write_text(f"name: ocr\nfolder: {tmp_path}\ndialects: [PaddleOCR]\n")
    families = ROOT / "tests" / "golden" / "plan" / "families"
    monkeypatch.chdir(ROOT)
    case = "benchmark_train:dynamic_bs16_fp32_DP_N1C2"
    result = tipcflow(
        "plan", str(families / "benchmark.txt"), "--suite", str(tmp_path / "ocr.yaml"), "--mode", case,
        "--format", "commands",
    )  # fmt: skip
    assert (result.code, result.err) == (0, "")
    assert "# norm_train_bs16_fp32_DP_N1C2/train" in result.out
    assert result.out.count("tools/train.py") == 1
