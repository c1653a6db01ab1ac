"""`tipcflow trigger` against an Airflow over real HTTP: its requests, its output, its exit codes."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.support.airflow.fake import FakeAirflow
from tests.support.airflow.trigger import (
    CHAIN,
    COMMIT,
    DAG,
    OTHER,
    Tipcflow,
    bad_day,
    facts,
    golden,
    passing,
    transcript,
)

from tipcflow.airflow_api.models import DagRun

pytestmark = pytest.mark.slow


def test_a_run_is_made_and_not_waited_for(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG)
    result = tipcflow("trigger", CHAIN, "--mode", "lite_train_lite_infer", "--suite-ref", COMMIT, "--seed", "7")
    golden("trigger.txt", transcript(result, airflow))
    ((_, run_id), run), *_ = airflow.runs.items()
    assert run["conf"] == {"mode": "lite_train_lite_infer", "suite_ref": COMMIT, "seed": 7}
    assert re.fullmatch(r"ci__[0-9a-f]{16}", run_id)


def test_text_of_failures_equals_the_golden_files(
    tipcflow: Tipcflow, airflow: FakeAirflow, tmp_path: Path
) -> None:
    airflow.add(DAG, ("queued", None), ("running", facts(None)), ("running", bad_day()), ("failed", bad_day()))
    airflow.add(OTHER, ("running", facts(None)), passing())
    outputs = [tmp_path / "out.xml", tmp_path / "out.md"]
    result = tipcflow(
        *("trigger", "sample/*/*", "--suite-ref", COMMIT, "--wait"),
        *("--junit", str(outputs[0]), "--markdown", str(outputs[1])),
    )
    golden("trigger-wait.txt", transcript(result, airflow))
    golden("trigger.xml", outputs[0].read_text())
    golden("trigger.md", outputs[1].read_text().replace(airflow.url, "AIRFLOW"))
    assert result.code == 1


def test_run_of_an_earlier_version_is_followed(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.is_earlier = True
    airflow.add(DAG, ("running", facts(None)), passing())
    result = tipcflow("trigger", CHAIN, "--suite-ref", COMMIT, "--wait", "--json")
    ((_, run),) = airflow.runs.items()
    (shown,) = json.loads(result.out)["runs"]
    assert (result.code, shown["run"]) == (0, DagRun.model_validate(run).runs[1]), result.err


def test_json_has_the_content_of_the_text(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG, ("failed", bad_day()))
    result = tipcflow("trigger", DAG, "--suite-ref", COMMIT, "--wait", "--json")
    shown = json.loads(result.out)
    (run,) = shown["runs"]
    assert (shown["status"], run["status"], run["reason"]) == ("failed", "failed", "training diverged")
    assert run["dag_run_id"] == airflow.run_id(DAG)
    assert [check["check"] for check in run["checks"]] == ["ran.steps", "speed.ips", "loss.finite"]


@pytest.mark.parametrize(
    ("status", "state", "code"),
    [
        ("pass", "success", 0),
        ("improvement", "success", 0),
        ("regression", "failed", 1),
        ("unconfirmed", "failed", 4),
        ("failed", "failed", 1),
        ("infra_failure", "failed", 5),
        ("config_error", "failed", 2),
        ("cancelled", "failed", 3),
    ],
)
def test_the_exit_code_is_that_of_the_status(
    tipcflow: Tipcflow, airflow: FakeAirflow, status: str, state: str, code: int
) -> None:
    airflow.add(DAG, (state, facts(status, "because")))
    result = tipcflow("trigger", CHAIN, "--suite-ref", COMMIT, "--wait")
    assert (result.code, result.out.splitlines()[-1]) == (code, status)


def test_a_neutral_unconfirmed_run_does_not_block(
    tipcflow: Tipcflow, airflow: FakeAirflow, tmp_path: Path
) -> None:
    doubt = {"check": "speed.ips", "status": "unconfirmed", "reason": "70 of 100, no confirm run"}
    neutral = facts("unconfirmed", "speed.ips: 70 of 100", checks=[doubt], neutral=True)
    airflow.add(DAG, ("success", neutral))
    result = tipcflow("trigger", DAG, "--wait", "--junit", str(tmp_path / "o.xml"))
    assert (result.code, result.out.splitlines()[-1]) == (0, "unconfirmed")
    root = ElementTree.fromstring((tmp_path / "o.xml").read_text())
    assert (root.get("failures"), root.get("errors"), root.get("skipped")) == ("0", "0", "2")


def test_a_neutral_unconfirmed_run_hides_no_other_run(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG, ("success", facts("unconfirmed", "slower", neutral=True)))
    airflow.add(OTHER, ("failed", facts("infra_failure", "node away")))
    assert tipcflow("trigger", DAG, OTHER, "--wait").code == 5


def test_of_several_runs_the_worst_counts(tipcflow: Tipcflow, airflow: FakeAirflow, tmp_path: Path) -> None:
    airflow.add(DAG, ("failed", facts("failed", "nan")))
    airflow.add(OTHER, ("failed", facts("infra_failure", "node away")))
    result = tipcflow("trigger", DAG, OTHER, "--wait", "--junit", str(tmp_path / "o.xml"))
    assert (result.code, result.out.splitlines()[-1]) == (1, "failed")
    root = ElementTree.fromstring((tmp_path / "o.xml").read_text())
    assert (root.get("failures"), root.get("errors")) == ("1", "1")


def test_a_commit_is_run_once_for_repeated_requests(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG, passing())
    for _ in range(3):
        assert tipcflow("trigger", CHAIN, "--suite-ref", COMMIT, "--wait").code == 0
    assert len(airflow.runs) == 1
    tipcflow("trigger", CHAIN, "--suite-ref", COMMIT, "--mode", "whole_infer")
    tipcflow("trigger", CHAIN, "--suite-ref", "b" * 40)
    assert len(airflow.runs) == 3
    tipcflow("trigger", CHAIN, "--suite-ref", COMMIT, "--again", "--run-id-prefix", "nightly")
    assert len(airflow.runs) == 4
    assert sum(run_id.startswith("nightly__") for _, run_id in airflow.runs) == 1


@pytest.mark.parametrize("status", ["infra_failure", "cancelled"])
def test_a_commit_whose_run_is_inconclusive_is_run_again(
    tipcflow: Tipcflow, airflow: FakeAirflow, status: str
) -> None:
    airflow.add(DAG, ("failed", facts(status, "node away")))
    requested = ("trigger", CHAIN, "--suite-ref", COMMIT, "--wait")
    first = tipcflow(*requested)
    assert (first.code, len(airflow.runs)) == ({"infra_failure": 5, "cancelled": 3}[status], 1)
    assert tipcflow(*requested).code == first.code
    airflow.add(DAG, ("running", facts(None)), passing())
    result = tipcflow(*requested)
    assert result.code == 0
    assert result.err.count(f"is {status}: starting a new run") == 2
    (own, *later) = [run_id for _, run_id in airflow.runs]
    assert later == [f"{own}-2", f"{own}-3"]
    assert tipcflow(*requested).code == 0
    assert len(airflow.runs) == 3, "the last one has a verdict"


@pytest.mark.parametrize("status", ["failed", "regression", "unconfirmed", "config_error", None])
def test_a_commit_whose_run_is_conclusive_is_joined(
    tipcflow: Tipcflow, airflow: FakeAirflow, status: str | None
) -> None:
    airflow.add(DAG, ("failed", facts(status, "because")))
    codes = {tipcflow("trigger", CHAIN, "--suite-ref", COMMIT, "--wait").code for _ in range(2)}
    assert (len(codes), len(airflow.runs)) == (1, 1)


def test_running_run_is_joined_also_without_the_page(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG, ("running", facts("infra_failure")), ("failed", facts("infra_failure")))
    for _ in range(2):
        tipcflow("trigger", CHAIN, "--suite-ref", COMMIT)
    airflow.has_page = False
    assert tipcflow("trigger", CHAIN, "--suite-ref", COMMIT).code == 0
    assert len(airflow.runs) == 1


@pytest.mark.parametrize("ref", [[], ["--suite-ref", "main"], ["--suite-ref", "abc1234"]])
def test_files_that_may_have_changed_are_run_again(
    tipcflow: Tipcflow, airflow: FakeAirflow, ref: list[str]
) -> None:
    airflow.add(DAG, passing())
    for _ in range(2):
        tipcflow("trigger", CHAIN, *ref)
    assert len(airflow.runs) == 2


def test_a_chain_named_twice_is_run_once(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG)
    airflow.add("weekly")
    result = tipcflow("trigger", CHAIN, DAG, "*", "*/mobilenet*/*", "sample/mobilenet_v3_small/*", "--json")
    (run,) = json.loads(result.out)["runs"]
    assert run["chain"] == CHAIN


def test_a_file_without_a_dag_goes_to_the_generic_one(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add("certify")
    result = tipcflow("trigger", "--suite", "sample", "--params-file", "t/new.txt", "--mode", "whole_infer")
    ((dag_id, _), run), *_ = airflow.runs.items()
    assert (result.code, dag_id) == (0, "certify")
    assert run["conf"] == {"suite": "sample", "params_file": "t/new.txt", "mode": "whole_infer"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "CHAIN: no chain"),
        (["sample/mobilenet_v3_smal/train_infer_python"], f"hint: near: {DAG}"),
        (["nothing/like*"], f"no chain matches; found 'nothing/like*'\n  hint: chains: {CHAIN}"),
        (["weekly"], "DAG weekly is not a chain"),
        (["paused.m.f"], "DAG paused.m.f is paused"),
        ([CHAIN, "--params-file", "f"], "--suite and --params-file: must be given together and without CHAIN"),
        (["--suite", "s"], "--suite and --params-file: must be given together"),
        ([CHAIN, "--run-id-prefix", "a__b"], "--run-id-prefix: is not a valid run ID prefix"),
        ([CHAIN, "--run-id-prefix", "a b"], "--run-id-prefix: is not a valid run ID prefix"),
        ([CHAIN, "--run-id-prefix", "confirm"], "--run-id-prefix: is reserved for DAG runs that tasks"),
        ([CHAIN, "--junit", "x.xml"], "has no effect without --wait"),
        ([CHAIN, "--wait", "--junit", "/no/such/folder/x.xml"], "/no/such/folder/x.xml: cannot be written"),
    ],
)
def test_errors_are_reported_and_nothing_is_started(
    tipcflow: Tipcflow, airflow: FakeAirflow, arguments: list[str], words: str
) -> None:
    airflow.add(DAG)
    airflow.add("weekly")
    airflow.add("paused.m.f", paused=True)
    result = tipcflow("trigger", *arguments)
    assert (result.code, result.out, airflow.runs) == (2, "", {})
    assert words in result.err


def test_a_paused_chain_is_unpaused_on_request(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG, passing(), paused=True)
    assert tipcflow("trigger", CHAIN, "--wait", "--unpause").code == 0
    assert airflow.dags[DAG]["is_paused"] is False


def test_refused_chain_does_not_stop_the_others(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG)
    airflow.add(OTHER, passing())
    airflow.refused[DAG] = "Invalid input for param mode: 'x'"
    result = tipcflow("trigger", DAG, OTHER, "--mode", "x", "--wait")
    assert result.code == 2
    assert result.out.startswith(f"config_error  {CHAIN}")
    assert "Invalid input for param mode: 'x'" in result.out
    assert f"pass  {OTHER.replace('.', '/')}" in result.out


def test_without_the_page_nothing_is_started(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG)
    airflow.has_page = False
    result = tipcflow("trigger", CHAIN, "--wait")
    assert (result.code, airflow.runs) == (2, {})
    assert "has no Certification page" in result.err
