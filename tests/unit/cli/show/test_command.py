import csv
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.bad_day import record_failure
from tests.support.expected.golden import assert_golden
from tests.support.stories import T0, a_plan, a_run, record_run

from tipcflow.cli.runs import run_lines
from tipcflow.cli.show.page import page
from tipcflow.config.settings import settings
from tipcflow.domain import CheckResult, Status
from tipcflow.domain.run.allocation_wait import AllocationWaitDocument
from tipcflow.execute.verdict.run_data import load_run
from tipcflow.report.run.data import RunData
from tipcflow.store import Store

GOLDEN = Path(__file__).parents[3] / "golden" / "cli"


@pytest.fixture
def failed(home: Path, database: Path) -> str:
    with Store.open() as store:
        record_run(store)
        return record_failure(store, home).id


def shown(wanted: str) -> tuple[RunData, Path]:
    """A run and the folder of its logs."""
    with Store.open() as store:
        data = load_run(store, store.runs.find(wanted))
    return data, settings().runs_dir / data.run.id


def _golden(name: str, text: str, home: Path) -> None:
    text = text.replace(str(home), "HOME")
    path = GOLDEN / name
    assert_golden(path, text)


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("which", ["20261121", "20261122"])
def test_show_pages_equal_golden_files(failed: str, home: Path, which: str, width: int) -> None:
    lines = page(*shown(which), width=width)
    _golden(f"show-{which}-{width}.txt", "\n".join(lines) + "\n", home)


def test_checks_without_data_share_a_row(failed: str) -> None:
    data, logs = shown(failed)
    checks = [
        CheckResult(check="speed.x", status=status, reason=reason, step="s", leg=str(leg), gating=False)
        for leg in range(4)
        for status, reason in ((Status.INSUFFICIENT_DATA, f"{leg} ms; 0 of 5 earlier runs"), (Status.PASS, "ok"))
    ]
    data = dataclasses.replace(data, checks=tuple(checks))

    def rows(**options: bool) -> list[str]:
        lines = page(data, logs, width=None, **options)
        return [" ".join(line.split()) for line in lines if "speed.x" in line]

    grouped = "insufficient_data speed.x × 4 4 steps and legs (not gating) first (0): 0 ms; 0 of 5 earlier runs"
    passed = [f"pass speed.x s {leg} (not gating) ok" for leg in range(4)]
    assert rows() == [f"{grouped} (all: --all)", *passed]
    assert rows(every=True)[3] == "insufficient_data speed.x s 3 (not gating) 3 ms; 0 of 5 earlier runs"
    assert len(rows(every=True)) == 8


def test_ids_and_commands_are_never_broken(failed: str, home: Path) -> None:
    lines = page(*shown(failed), width=80)
    assert any(line.endswith(failed) for line in lines)
    assert next(line for line in lines if line.startswith("tipcflow run ")).endswith(
        f"--suite-ref {'a' * 40} --seed 0"
    )
    others = [line for line in lines if not line.startswith(("tipcflow", "[node", str(home)))]
    assert max(len(line) for line in others) <= len(f"failed  {failed}")


@pytest.mark.parametrize("width", [80, 200, None])
def test_list_of_runs_equals_the_golden_files(failed: str, home: Path, width: int | None) -> None:
    with Store.open() as store:
        store.runs.create(a_run("20261123t093005-mobilenet-0000", created_at=T0 + 90000))
        lines = run_lines(store.runs.newest(), width=width)
    _golden(f"runs-{width}.txt", "\n".join(lines) + "\n", home)


def test_show_prints_the_page_on_stdout(failed: str, tipcflow: Callable[..., Any]) -> None:
    result = tipcflow("show", "20261122")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"failed  {failed}\nran.steps: train failed\n")
    assert "\x1b" not in result.out


def test_a_run_is_printed_as_json(failed: str, tipcflow: Callable[..., Any], home: Path) -> None:
    result = tipcflow("show", "20261122", "--json")

    def refuse(word: str) -> None:
        raise AssertionError(word)

    shown = json.loads(result.out, parse_constant=refuse)
    assert shown["run"]["id"] == failed
    assert shown["counts"]["checks"] == {"failed": 1, "insufficient_data": 1, "pass": 1}
    assert shown["steps"]["norm_train_cpu/infer_cpu"] == {"status": "blocked", "reason": "train failed"}
    assert shown["legs"]["norm_train_cpu/infer_cpu/cpu_onednn_off"]["status"] == "not_run"
    assert shown["checks"][1]["values"] == {"median": "NaN"}
    assert shown["attempts"][0]["records"][0]["exit_code"] == 1
    assert shown["nodes"][1]["unreachable"] == {"10.0.0.1": "refused"}
    assert shown["plan"]["chain"] == shown["run"]["chain"]
    assert shown["logs"] == str(home / "runs" / failed)


def test_latest_is_the_newest(failed: str, tipcflow: Callable[..., Any]) -> None:
    assert tipcflow("show", "latest").out.split()[1] == failed


def test_a_run_without_a_plan_is_shown(home: Path, tipcflow: Callable[..., Any]) -> None:
    with Store.open() as store:
        store.runs.create(a_run())
        store.runs.finish(a_run().id, Status.CONFIG_ERROR, "no such mode: lite", T0 + 1)
    result = tipcflow("show", "latest")
    assert result.code == 0
    assert result.out.startswith(f"config_error  {a_run().id}\nno such mode: lite\n")
    assert "STEPS" not in result.out
    assert "REPRODUCE" not in result.out


@pytest.mark.parametrize("command", [["show"], ["logs"], ["certificate", "show"]])
def test_an_unknown_run_is_a_config_error_with_the_latest_runs(
    failed: str, tipcflow: Callable[..., Any], command: list[str]
) -> None:
    result = tipcflow(*command, "unknown")
    assert (result.code, result.out) == (2, "")
    assert result.err == (
        "config_error: RUN: no such run; found 'unknown'; expected a run ID, its first characters, or latest\n"
        f"  hint: the latest runs:\n    {failed}\n    {a_run().id}\n"
    )


def test_runs_command_applies_filters(failed: str, tipcflow: Callable[..., Any]) -> None:
    assert [one["id"] for one in json.loads(tipcflow("runs", "--json").out)] == [failed, a_run().id]
    assert [one["id"] for one in json.loads(tipcflow("runs", "--json", "--status", "pass").out)] == [a_run().id]
    assert json.loads(tipcflow("runs", "--json", "-n", "1").out)[0]["status"] == "failed"
    result = tipcflow("runs", "--chain", "other")
    assert (result.code, result.out) == (2, "")
    assert "--chain: no run of a chain with this name; found 'other'; expected one of " in result.err
    result = tipcflow("runs", "--status", "improvement")
    assert (result.code, result.out) == (0, "")
    assert result.err.startswith("no matching runs in sqlite:///")
    result = tipcflow("runs", "--status", "blocked")
    assert result.err.startswith("config_error: --status: invalid value; found 'blocked'; expected one of pass, ")


def test_no_runs_yet(tipcflow: Callable[..., Any]) -> None:
    result = tipcflow("runs")
    assert (result.code, result.out) == (0, "")
    assert result.err.startswith("no runs in sqlite:///")
    assert "tipcflow demo" in result.err
    assert json.loads(tipcflow("runs", "--json").out) == []


def test_runs_by_model_and_as_csv(failed: str, tipcflow: Callable[..., Any]) -> None:
    with Store.open() as store:
        store.runs.create(a_run("20261123t093005-other-0000", chain="s/other/train", created_at=T0 + 90000))
    result = tipcflow("runs", "--chain", "OTHER", "--csv")
    rows = list(csv.DictReader(result.out.splitlines()))
    assert [(row["run"], row["status"], row["chain"]) for row in rows] == [
        ("20261123t093005-other-0000", "", "s/other/train")
    ]
    assert tipcflow("runs", "--csv", "--json").code == 2


def test_a_run_that_waits_for_slots_is_queued(database: Path) -> None:
    run = a_run("20261123t093005-other-0000", created_at=T0 + 90000)
    head, *rows = run_lines([run], width=None, queued={run.id})
    assert [line.split()[0] for line in (head, *rows)] == ["STATUS", "queued"]
    assert run_lines([run], width=None)[1].startswith("running ")


def test_a_run_that_waits_for_slurm_is_queued_or_waiting(tipcflow: Callable[..., Any]) -> None:
    with Store.open() as store:
        now = store.now()
        run = a_run("20261123t093005-other-0000", created_at=now - 100)
        store.runs.create(run)
        store.documents.put(run.id, AllocationWaitDocument(since=now - 90, until=now + 600))
    assert [line.split()[:2] for line in tipcflow("runs").out.splitlines()[1:]] == [["queued", run.id]]
    (line,) = (line for line in tipcflow("today").out.splitlines() if run.id in line)
    assert line.split()[:2] == [run.id, "waiting"]


def test_legs_that_were_skipped_for_one_reason_share_a_row(database: Path) -> None:
    plan = a_plan()
    train, infer = plan.steps
    gpu = tuple(
        infer.legs[0].model_copy(update={"id": f"gpu_{number}", "not_run": "node-a has no GPU"})
        for number in range(20)
    )
    steps = (train, infer.model_copy(update={"legs": (*infer.legs, *gpu)}))
    run = a_run()
    with Store.open() as store:
        store.runs.create(run, plan.model_copy(update={"steps": steps}))
        store.runs.finish(run.id, Status.FAILED, "training failed", T0 + 1)
    lines = page(*shown(run.id), width=200)
    about = [line for line in lines if "has no GPU" in line]
    assert [" ".join(line.split()) for line in about] == ["not_run 20 legs node-a has no GPU"]
    assert not any("gpu_1" in line for line in lines if line.startswith("not_run"))


def test_checks_as_csv_the_worst_first(failed: str, tipcflow: Callable[..., Any]) -> None:
    rows = list(csv.DictReader(tipcflow("show", failed, "--csv").out.splitlines()))
    checks = json.loads(tipcflow("show", failed, "--json").out)["checks"]
    assert sorted((row["check"], row["status"], row["step"]) for row in rows) == sorted(
        (check["check"], check["status"], check["step"]) for check in checks
    )
    severities = [Status(row["status"]).severity for row in rows]
    assert severities == sorted(severities, reverse=True)
    assert {row["run"] for row in rows} == {failed}
    both = tipcflow("show", failed, "--csv", "--json")
    assert (both.code, both.out) == (2, "")
