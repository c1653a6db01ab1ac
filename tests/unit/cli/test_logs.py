import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.bad_day import record_failure
from tests.support.stories import INFER, TRAIN, record_run

from tipcflow.domain.keys import AttemptKey
from tipcflow.execute.collect.kept_files import record_kept
from tipcflow.execute.collect.log_archive import compress_logs
from tipcflow.execute.collect.store_files import store_files
from tipcflow.remote.runner.files import safe_name
from tipcflow.store import Store


@pytest.fixture
def failed(home: Path) -> str:
    with Store.open() as store:
        record_run(store)
        return record_failure(store, home).id


def test_the_folder_is_that_of_the_collector(failed: str, home: Path) -> None:
    assert [path.name for path in (home / "runs" / failed).iterdir()] == [safe_name(TRAIN)]


def test_without_a_step_the_files_are_listed(failed: str, tipcflow: Callable[..., Any], home: Path) -> None:
    result = tipcflow("logs", failed)
    assert (result.code, result.err) == (0, f"{home / 'runs' / failed}\n")
    assert [line.split() for line in result.out.splitlines()] == [
        ["SIZE", "STEP", "NODE", "FILE"],
        ["21", "B", TRAIN, "node-a", "logs/main.log"],
        ["4.9", "KiB", TRAIN, "node-b", "files/output/best.pdparams"],
        ["8", "B", TRAIN, "node-b", "logs/main.log"],
    ]


@pytest.mark.parametrize("step", [TRAIN, "train", "norm_train_cpu/t"])
def test_a_step_is_printed_with_a_line_before_each_file(
    failed: str, tipcflow: Callable[..., Any], step: str
) -> None:
    result = tipcflow("logs", "latest", step)
    assert result.code == 0
    assert result.out == (
        f"==> {TRAIN}/node-a/logs/main.log <==\nepoch 1\nValueError: \ufffd\n"
        f"==> {TRAIN}/node-b/logs/main.log <==\nepoch 1\n"
    )
    assert result.err.startswith("not printed: ")
    assert result.err.endswith(f"best.pdparams (4.9 KiB); `tipcflow logs {failed}` lists all files\n")


def test_other_files_of_a_step_are_one_line(failed: str, tipcflow: Callable[..., Any], home: Path) -> None:
    before = tipcflow("logs", failed, "train").out
    folder = home / "runs" / failed / safe_name(TRAIN) / "node-a"
    for name in ("opened.txt", "exit.json", "legs.jsonl"):
        (folder / name).write_text("x" * 100)
    result = tipcflow("logs", failed, "train")
    assert result.out == before
    assert result.err == f"not printed: 4 other files (5.2 KiB); `tipcflow logs {failed}` lists all files\n"


def test_steps_are_in_the_order_of_the_plan(failed: str, tipcflow: Callable[..., Any], home: Path) -> None:
    folder = home / "runs" / failed / safe_name(INFER) / "a" / "logs"
    folder.mkdir(parents=True)
    (folder / "main.log").write_text("x")
    assert safe_name(INFER) < safe_name(TRAIN)
    steps = [line.split()[2] for line in tipcflow("logs", failed).out.splitlines()[1:]]
    assert steps == [TRAIN, TRAIN, TRAIN, INFER]


def test_single_log_is_printed_unchanged(failed: str, tipcflow: Callable[..., Any]) -> None:
    assert tipcflow("logs", "latest", "train", "--node", "node-a").out == "epoch 1\nValueError: \ufffd\n"


def test_logs_prints_the_log_of_a_leg(failed: str, tipcflow: Callable[..., Any], home: Path) -> None:
    folder = home / "runs" / failed / safe_name(INFER) / "node-a" / "logs"
    folder.mkdir(parents=True)
    for leg in ("cpu_onednn_on", "cpu_onednn_off"):
        (folder / f"{leg}.log").write_text(f"{leg}\n")
    assert tipcflow("logs", "latest", "infer", "--leg", "cpu_onednn_on").out == "cpu_onednn_on\n"
    listed = json.loads(tipcflow("logs", "latest", "--leg", "cpu_onednn_off", "--json").out)
    assert [(one["step"], one["node"], one["bytes"]) for one in listed] == [(INFER, "node-a", 15)]
    result = tipcflow("logs", "latest", "infer", "--leg", "nothing")
    assert result.code == 2
    assert "has no logs of step norm_train_cpu/infer_cpu leg nothing" in result.err


def test_missing_logs_are_an_error(failed: str, tipcflow: Callable[..., Any]) -> None:
    result = tipcflow("logs", "latest", "infer")
    assert result.code == 2
    assert f"run {failed} has no logs of step {INFER}\n" in result.err
    result = tipcflow("logs", "latest", "nowhere")
    assert result.code == 2
    assert result.err == f"config_error: STEP: no such step; found 'nowhere'; expected one of {TRAIN}, {INFER}\n"
    result = tipcflow("logs", "latest", "trian")
    assert result.err.endswith("  hint: did you mean train?\n")
    result = tipcflow("logs", "latest", "norm")
    assert result.code == 2
    assert "2 steps match this prefix" in result.err
    result = tipcflow("logs", "20261121")
    assert result.code == 2
    assert "has no logs\n" in result.err


def test_a_compressed_log_is_printed_as_before(failed: str, tipcflow: Callable[..., Any], home: Path) -> None:
    before = tipcflow("logs", failed, TRAIN)
    assert compress_logs(home / "runs" / failed, least=0) > 0
    assert tipcflow("logs", failed, TRAIN).out == before.out
    assert "logs/main.log" in tipcflow("logs", failed).out


def test_a_partially_fetched_file_is_not_a_log(failed: str, tipcflow: Callable[..., Any], home: Path) -> None:
    before = tipcflow("logs", failed)
    (home / "runs" / failed / safe_name(TRAIN) / "node-a" / "logs" / ".main.log.part").write_text("epo")
    assert tipcflow("logs", failed).out == before.out
    assert "epo\n" not in tipcflow("logs", failed, TRAIN, "--node", "node-a").out


def test_secrets_are_masked_and_everything_else_is_kept(
    failed: str, tipcflow: Callable[..., Any], home: Path
) -> None:
    log = home / "runs" / failed / safe_name(TRAIN) / "node-a" / "logs" / "main.log"
    log.write_text("\u20ac\t100 %\nGET https://x/?token=SECRET123&a=1\npassword=hunter2", encoding="utf-8")
    result = tipcflow("logs", "latest", "train", "--node", "node-a").out
    assert result == "\u20ac\t100 %\nGET https://x/?token=***&a=1\npassword=***\n"


@pytest.fixture
def elsewhere(failed: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The run's files are in the object store; this machine has none."""
    (home / "store").mkdir()
    monkeypatch.setenv("TIPCFLOW_STORE", f"file://{home}/store")
    folder = home / "runs" / failed / safe_name(TRAIN)
    with Store.open() as store:
        record_kept(store, failed, TRAIN, 1, folder)
        assert store_files(store, failed, AttemptKey(TRAIN, 1), folder, home) == ""
    (home / "runs").rename(home / "other machine")
    return failed


def test_logs_of_the_object_store_are_listed_and_printed(
    elsewhere: str, tipcflow: Callable[..., Any], home: Path
) -> None:
    result = tipcflow("logs", elsewhere)
    assert (result.code, result.err) == (0, f"file://{home}/store/runs/{elsewhere}\n")
    assert [line.split() for line in result.out.splitlines()[1:]] == [
        ["21", "B", TRAIN, "node-a", "logs/main.log"],
        ["4.9", "KiB", TRAIN, "node-b", "files/output/best.pdparams"],
        ["8", "B", TRAIN, "node-b", "logs/main.log"],
    ]
    assert tipcflow("logs", elsewhere, "train", "--node", "node-a").out == "epoch 1\nValueError: \ufffd\n"
    listed = json.loads(tipcflow("logs", elsewhere, "--json").out)
    assert listed[0]["object"] == f"runs/{elsewhere}/{safe_name(TRAIN)}~1/node-a/logs/main.log"


def test_object_store_that_is_away_is_one_error(elsewhere: str, tipcflow: Callable[..., Any], home: Path) -> None:
    (home / "store").rename(home / "unmounted")
    result = tipcflow("logs", elsewhere, "train", "--node", "node-a")
    assert (result.code, result.out) == (5, "")
    assert result.err.startswith("infra_failure: the folder of the object store file://")
    assert "Traceback" not in result.err
