"""`tipcflow trigger` against an Airflow over real HTTP: what is asked, what is said, how it ends."""

import json
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.support.fake_airflow import FakeAirflow, serve
from tests.support.stories import a_run

from tipcflow.cli.trigger import wait as trigger_wait
from tipcflow.domain import Status

GOLDEN = Path(__file__).parents[3] / "golden" / "cli"
CHAIN = "sample/mobilenet_v3_small/train_infer_python"
DAG = "sample.mobilenet_v3_small.train_infer_python"
OTHER = "sample.resnet50.train_infer_python"
COMMIT = "a" * 40
Tipcflow = Callable[..., Any]


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAirflow]:
    monkeypatch.setattr(trigger_wait, "POLL_S", 0.01)
    monkeypatch.setattr(trigger_wait, "GRACE_S", 0.2)
    monkeypatch.setattr(trigger_wait, "GRACE_WITHOUT_RUN_S", 0.1)
    monkeypatch.setattr(trigger_wait, "_LONGEST_CALL_S", 2.0)
    monkeypatch.delenv("TIPCFLOW_AIRFLOW_TOKEN", raising=False)
    with serve() as served:
        monkeypatch.setenv("TIPCFLOW_AIRFLOW_URL", f"{served.url}/")
        monkeypatch.setenv("TIPCFLOW_AIRFLOW_USER", "ci")
        monkeypatch.setenv("TIPCFLOW_AIRFLOW_PASSWORD", "s3cret-word")
        yield served


def facts(status: str | None, reason: str = "", **more: Any) -> dict[str, Any]:
    run = a_run(status=status and Status(status), reason=reason, chain=CHAIN)
    return {
        "run": {**run.model_dump(mode="json"), "a_field_of_tomorrow": 1},
        "checks": [],
        "steps": [],
        "legs": [],
        **more,
    }


def passing() -> tuple[str, dict[str, Any]]:
    return "success", facts("pass", "5 checks passed")


def bad_day() -> dict[str, Any]:
    steps = [
        {"id": "prepare", "status": "pass", "seconds": 2.5, "nodes": ["node-a", "node-b"]},
        {"id": "norm_train/train", "status": "failed", "reason": "node-b: loss is nan", "seconds": 31.0},
        {"id": "norm_train/export", "status": None},
    ]
    legs = [{"step": "norm_train/infer_cpu", "id": "cpu_onednn_on", "status": "blocked", "reason": "no model"}]
    checks = [
        {"check": "ran.steps", "status": "failed", "reason": "train ended with 1", "step": "norm_train/train"},
        {"check": "speed.ips", "status": "regression", "reason": "70 of 100", "gating": False},
        {"check": "loss.finite", "status": "failed", "reason": "nan at iteration 7", "step": "norm_train/train"},
    ]
    verdict = "## failed: mobilenet_v3_small\n\ntraining diverged\n"
    return facts("failed", "training diverged", steps=steps, legs=legs, checks=checks, verdict_markdown=verdict)


def told(said: Any, airflow: FakeAirflow) -> str:
    text = f"exit code {said.code}\n--- stdout\n{said.out}--- stderr\n{said.err}".replace(airflow.url, "AIRFLOW")
    return re.sub(r"(?m)^\d\d:\d\d:\d\d", "HH:MM:SS", text)


def golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


def test_a_run_is_made_and_not_waited_for(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG)
    said = tipcflow("trigger", CHAIN, "--mode", "lite_train_lite_infer", "--suite-ref", COMMIT, "--seed", "7")
    golden("trigger.txt", told(said, airflow))
    ((_, run_id), run), *_ = airflow.runs.items()
    assert run["conf"] == {"mode": "lite_train_lite_infer", "suite_ref": COMMIT, "seed": 7}
    assert re.fullmatch(r"ci__[0-9a-f]{16}", run_id)


def test_a_bad_day_as_a_person_reads_it(tipcflow: Tipcflow, airflow: FakeAirflow, tmp_path: Path) -> None:
    airflow.add(DAG, ("queued", None), ("running", facts(None)), ("running", bad_day()), ("failed", bad_day()))
    airflow.add(OTHER, ("running", facts(None)), passing())
    outputs = [tmp_path / "out.xml", tmp_path / "out.md"]
    said = tipcflow(
        *("trigger", "sample/*/*", "--suite-ref", COMMIT, "--wait"),
        *("--junit", str(outputs[0]), "--markdown", str(outputs[1])),
    )
    golden("trigger-wait.txt", told(said, airflow))
    golden("trigger.xml", outputs[0].read_text())
    golden("trigger.md", outputs[1].read_text().replace(airflow.url, "AIRFLOW"))
    assert said.code == 1


def test_json_has_what_the_text_has(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG, ("failed", bad_day()))
    said = tipcflow("trigger", DAG, "--suite-ref", COMMIT, "--wait", "--json")
    shown = json.loads(said.out)
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
        ("infra_failure", "failed", 2),
        ("config_error", "failed", 2),
        ("cancelled", "failed", 3),
    ],
)
def test_the_exit_code_is_that_of_the_status(
    tipcflow: Tipcflow, airflow: FakeAirflow, status: str, state: str, code: int
) -> None:
    airflow.add(DAG, (state, facts(status, "because")))
    said = tipcflow("trigger", CHAIN, "--suite-ref", COMMIT, "--wait")
    assert (said.code, said.out.splitlines()[-1]) == (code, status)


def test_a_neutral_doubt_does_not_block(tipcflow: Tipcflow, airflow: FakeAirflow, tmp_path: Path) -> None:
    doubt = {"check": "speed.ips", "status": "unconfirmed", "reason": "70 of 100, no confirm run"}
    neutral = facts("unconfirmed", "speed.ips: 70 of 100", checks=[doubt], neutral=True)
    airflow.add(DAG, ("success", neutral))
    said = tipcflow("trigger", DAG, "--wait", "--junit", str(tmp_path / "o.xml"))
    assert (said.code, said.out.splitlines()[-1]) == (0, "unconfirmed")
    root = ElementTree.fromstring((tmp_path / "o.xml").read_text())
    assert (root.get("failures"), root.get("errors"), root.get("skipped")) == ("0", "0", "2")


def test_a_neutral_doubt_hides_no_other_run(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG, ("success", facts("unconfirmed", "slower", neutral=True)))
    airflow.add(OTHER, ("failed", facts("infra_failure", "node away")))
    assert tipcflow("trigger", DAG, OTHER, "--wait").code == 2


def test_of_several_runs_the_worst_counts(tipcflow: Tipcflow, airflow: FakeAirflow, tmp_path: Path) -> None:
    airflow.add(DAG, ("failed", facts("failed", "nan")))
    airflow.add(OTHER, ("failed", facts("infra_failure", "node away")))
    said = tipcflow("trigger", DAG, OTHER, "--wait", "--junit", str(tmp_path / "o.xml"))
    assert (said.code, said.out.splitlines()[-1]) == (1, "failed")
    root = ElementTree.fromstring((tmp_path / "o.xml").read_text())
    assert (root.get("failures"), root.get("errors")) == ("1", "1")


def test_a_commit_is_run_once_however_often_ci_asks(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
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
def test_a_commit_whose_run_says_nothing_is_run_again(
    tipcflow: Tipcflow, airflow: FakeAirflow, status: str
) -> None:
    airflow.add(DAG, ("failed", facts(status, "node away")))
    asked = ("trigger", CHAIN, "--suite-ref", COMMIT, "--wait")
    first = tipcflow(*asked)
    assert (first.code, len(airflow.runs)) == ({"infra_failure": 2, "cancelled": 3}[status], 1)
    assert tipcflow(*asked).code == first.code
    airflow.add(DAG, ("running", facts(None)), passing())
    said = tipcflow(*asked)
    assert said.code == 0
    assert said.err.count(f"is {status}: starting a new run") == 2
    (own, *later) = [run_id for _, run_id in airflow.runs]
    assert later == [f"{own}-2", f"{own}-3"]
    assert tipcflow(*asked).code == 0
    assert len(airflow.runs) == 3, "the last one has a verdict"


@pytest.mark.parametrize("status", ["failed", "regression", "unconfirmed", "config_error", None])
def test_a_commit_whose_run_says_something_is_joined(
    tipcflow: Tipcflow, airflow: FakeAirflow, status: str | None
) -> None:
    airflow.add(DAG, ("failed", facts(status, "because")))
    codes = {tipcflow("trigger", CHAIN, "--suite-ref", COMMIT, "--wait").code for _ in range(2)}
    assert (len(codes), len(airflow.runs)) == (1, 1)


def test_a_run_is_joined_while_it_is_under_way_and_without_the_page(
    tipcflow: Tipcflow, airflow: FakeAirflow
) -> None:
    airflow.add(DAG, ("running", facts("infra_failure")), ("failed", facts("infra_failure")))
    for _ in range(2):
        tipcflow("trigger", CHAIN, "--suite-ref", COMMIT)
    airflow.has_page = False
    assert tipcflow("trigger", CHAIN, "--suite-ref", COMMIT).code == 0
    assert len(airflow.runs) == 1


@pytest.mark.parametrize("ref", [[], ["--suite-ref", "main"], ["--suite-ref", "abc1234"]])
def test_files_that_may_have_changed_are_run_anew(
    tipcflow: Tipcflow, airflow: FakeAirflow, ref: list[str]
) -> None:
    airflow.add(DAG, passing())
    for _ in range(2):
        tipcflow("trigger", CHAIN, *ref)
    assert len(airflow.runs) == 2


def test_a_chain_named_twice_is_run_once(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG)
    airflow.add("weekly")
    said = tipcflow("trigger", CHAIN, DAG, "*", "*/mobilenet*/*", "sample/mobilenet_v3_small/*", "--json")
    (run,) = json.loads(said.out)["runs"]
    assert run["chain"] == CHAIN


def test_a_file_without_a_dag_goes_to_the_generic_one(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add("certify")
    said = tipcflow("trigger", "--suite", "sample", "--params-file", "t/new.txt", "--mode", "whole_infer")
    ((dag_id, _), run), *_ = airflow.runs.items()
    assert (said.code, dag_id) == (0, "certify")
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
        ([CHAIN, "--run-id-prefix", "a__b"], "--run-id-prefix: is not a valid run id prefix"),
        ([CHAIN, "--run-id-prefix", "a b"], "--run-id-prefix: is not a valid run id prefix"),
        ([CHAIN, "--junit", "x.xml"], "has no effect without --wait"),
        ([CHAIN, "--wait", "--junit", "/no/such/folder/x.xml"], "/no/such/folder/x.xml: cannot be written"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_started(
    tipcflow: Tipcflow, airflow: FakeAirflow, arguments: list[str], words: str
) -> None:
    airflow.add(DAG)
    airflow.add("weekly")
    airflow.add("paused.m.f", paused=True)
    said = tipcflow("trigger", *arguments)
    assert (said.code, said.out, airflow.runs) == (2, "", {})
    assert words in said.err


def test_a_paused_chain_is_unpaused_when_asked(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG, passing(), paused=True)
    assert tipcflow("trigger", CHAIN, "--wait", "--unpause").code == 0
    assert airflow.dags[DAG]["is_paused"] is False


def test_one_refused_chain_does_not_stop_the_others(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG)
    airflow.add(OTHER, passing())
    airflow.refused[DAG] = "Invalid input for param mode: 'x'"
    said = tipcflow("trigger", DAG, OTHER, "--mode", "x", "--wait")
    assert said.code == 2
    assert said.out.startswith(f"config_error  {CHAIN}")
    assert "Invalid input for param mode: 'x'" in said.out
    assert f"pass  {OTHER.replace('.', '/')}" in said.out


def test_without_the_page_nothing_is_started(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG)
    airflow.has_page = False
    said = tipcflow("trigger", CHAIN, "--wait")
    assert (said.code, airflow.runs) == (2, {})
    assert "has no Certification page" in said.err


def test_a_green_dag_run_without_a_run_of_ours_is_not_green(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG, ("success", None))
    said = tipcflow("trigger", CHAIN, "--wait")
    assert (said.code, said.out.splitlines()[-1]) == (2, "infra_failure")
    assert "no run in the metrics database: see the log of resolve" in said.out


def test_a_red_dag_run_after_a_pass_is_not_green(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG, ("failed", facts("pass")))
    said = tipcflow("trigger", CHAIN, "--wait")
    assert (said.code, said.out.splitlines()[-1]) == (2, "infra_failure")


def test_a_red_dag_run_after_a_neutral_doubt_is_not_green(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG, ("failed", facts("unconfirmed", "slower", neutral=True)))
    said = tipcflow("trigger", CHAIN, "--wait")
    assert (said.code, said.out.splitlines()[-1]) == (2, "infra_failure")


def test_a_verdict_that_is_being_confirmed_is_waited_for(
    tipcflow: Tipcflow, airflow: FakeAirflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trigger_wait, "GRACE_S", 30.0)
    airflow.add(DAG, *[("success", facts(None))] * 5, passing())
    assert tipcflow("trigger", CHAIN, "--wait").code == 0


def test_who_waits_is_told_that_it_is_measured_once_more(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    asked = {"run": "again", "keys": ["norm_train/train"], "until": 9e9, "refused": "", "a_field_of_tomorrow": 1}
    airflow.add(
        DAG, *[("running", facts(None, confirming=asked))] * 3, ("success", facts("pass", confirming=None))
    )
    said = tipcflow("trigger", CHAIN, "--wait")
    assert said.code == 0
    assert said.err.count("no verdict yet: measuring once more: norm_train/train (confirm run again)") == 1


def test_who_stops_a_run_stops_its_confirm_run_too(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    asked = {"run": "again", "dag_run_id": "confirm__x"}
    airflow.add(DAG, ("running", facts(None, confirming=asked)))
    airflow.add("confirm", ("running", None))
    airflow._trigger("confirm", {"dag_run_id": "confirm__x", "conf": {}})
    tipcflow("trigger", CHAIN, "--wait", "--timeout", "0.005", "--stop")
    patched = [path for method, path in airflow.asked if method == "PATCH"]
    assert [path.split("/")[-3] for path in patched] == [DAG, "confirm"]


def test_a_change_says_what_branch_it_is_for(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG)
    tipcflow("trigger", CHAIN, "--suite-ref", COMMIT, "--base", "b" * 40)
    ((_, run),) = airflow.runs.items()
    assert run["conf"] == {"suite_ref": COMMIT, "base": "b" * 40}


def test_a_verdict_that_never_comes_ends_the_waiting(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG, ("success", facts(None)))
    said = tipcflow("trigger", CHAIN, "--wait")
    assert said.code == 2
    assert "left the run without a status" in said.out


@pytest.mark.parametrize("stop", [[], ["--stop"]])
def test_out_of_time(tipcflow: Tipcflow, airflow: FakeAirflow, stop: list[str]) -> None:
    airflow.add(DAG, ("running", facts(None)))
    said = tipcflow("trigger", CHAIN, "--wait", "--timeout", "0.005", *stop)
    assert said.code == 2
    assert "not finished after 0.005 min; the DAG run is" in said.out
    assert next(iter(airflow.runs.values()))["state"] == ("failed" if stop else "running")
    assert ("stop requested" if stop else "the run continues in Airflow") in said.err
    assert ("; stop requested" in said.out) == bool(stop)


def test_an_airflow_that_is_away_for_a_while_is_asked_again(
    tipcflow: Tipcflow, airflow: FakeAirflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trigger_wait, "_LONGEST_CALL_S", 0.3)
    airflow.add(DAG, ("running", facts(None)), passing())
    trigger = airflow._trigger

    def go_away(*arguments: Any) -> Any:
        airflow.down = 3
        return trigger(*arguments)

    monkeypatch.setattr(airflow, "_trigger", go_away)
    said = tipcflow("trigger", CHAIN, "--wait")
    assert said.code == 0
    assert said.err.count("retrying") == 1


@pytest.mark.parametrize("stop", [[], ["--stop"]])
def test_cancelled_by_a_signal(
    tipcflow: Tipcflow, airflow: FakeAirflow, monkeypatch: pytest.MonkeyPatch, stop: list[str]
) -> None:
    airflow.add(DAG, ("running", facts(None)))
    advance, looks = airflow._advance, iter(range(99))

    def then_term(*arguments: Any) -> None:
        advance(*arguments)
        if next(looks) == 2:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    monkeypatch.setattr(airflow, "_advance", then_term)
    before = signal.getsignal(signal.SIGTERM)
    said = tipcflow("trigger", CHAIN, "--wait", *stop)
    assert (said.code, said.out.splitlines()[-1]) == (3, "cancelled")
    assert next(iter(airflow.runs.values()))["state"] == ("failed" if stop else "running")
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("URL", "", "TIPCFLOW_AIRFLOW_URL: is not set"),
        ("URL", "airflow", "not the address of Airflow"),
        ("USER", "", "TIPCFLOW_AIRFLOW_USER: is not set"),
        ("PASSWORD", "", "TIPCFLOW_AIRFLOW_PASSWORD: is not set"),
        ("PASSWORD", "an0ther-word", "refuses the login of 'ci'"),
        ("TOKEN", "an0ther-word", "refuses the token"),
    ],
)
def test_a_login_that_is_wrong(
    tipcflow: Tipcflow, airflow: FakeAirflow, monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    airflow.add(DAG)
    monkeypatch.setenv(f"TIPCFLOW_AIRFLOW_{name}", value)
    said = tipcflow("trigger", CHAIN)
    assert (said.code, airflow.runs) == (2, {})
    assert words in said.err
    assert "word" not in said.err.replace("PASSWORD", "").replace("a password", "")


def test_a_token_is_enough(tipcflow: Tipcflow, airflow: FakeAirflow, monkeypatch: pytest.MonkeyPatch) -> None:
    airflow.add(DAG)
    monkeypatch.setenv("TIPCFLOW_AIRFLOW_TOKEN", "t2")
    monkeypatch.delenv("TIPCFLOW_AIRFLOW_USER")
    assert tipcflow("trigger", CHAIN).code == 0
    assert ("POST", "/auth/token") not in airflow.asked
