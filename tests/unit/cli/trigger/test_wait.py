"""How `tipcflow trigger --wait` ends: what it waits for, and what stops it."""

import signal
import threading
from importlib.util import find_spec
from typing import Any

import pytest
from tests.support.airflow.fake import FakeAirflow
from tests.support.airflow.trigger import CHAIN, COMMIT, DAG, Tipcflow, facts, passing

from tipcflow.cli.local import running
from tipcflow.cli.trigger import wait as trigger_wait

pytestmark = pytest.mark.slow


def test_green_dag_run_without_a_stored_run_is_an_infra_failure(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG, ("success", None))
    result = tipcflow("trigger", CHAIN, "--wait")
    assert (result.code, result.out.splitlines()[-1]) == (5, "infra_failure")
    assert "no run in the metrics database: see the log of resolve" in result.out


def test_a_red_dag_run_after_a_pass_is_not_green(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG, ("failed", facts("pass")))
    result = tipcflow("trigger", CHAIN, "--wait")
    assert (result.code, result.out.splitlines()[-1]) == (5, "infra_failure")


def test_a_red_dag_run_after_a_neutral_unconfirmed_run_is_not_green(
    tipcflow: Tipcflow, airflow: FakeAirflow
) -> None:
    airflow.add(DAG, ("failed", facts("unconfirmed", "slower", neutral=True)))
    result = tipcflow("trigger", CHAIN, "--wait")
    assert (result.code, result.out.splitlines()[-1]) == (5, "infra_failure")


def test_a_verdict_that_is_being_confirmed_is_waited_for(
    tipcflow: Tipcflow, airflow: FakeAirflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trigger_wait, "GRACE_S", 30.0)
    airflow.add(DAG, *[("success", facts(None))] * 5, passing())
    assert tipcflow("trigger", CHAIN, "--wait").code == 0


def test_a_waiting_user_is_notified_of_the_confirm_run(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    requested = {
        "run": "again",
        "keys": ["norm_train/train"],
        "until": 9e9,
        "refused": "",
        "a_field_of_tomorrow": 1,
    }
    airflow.add(
        DAG, *[("running", facts(None, confirming=requested))] * 3, ("success", facts("pass", confirming=None))
    )
    result = tipcflow("trigger", CHAIN, "--wait")
    assert result.code == 0
    assert result.err.count("no verdict yet: re-measuring: norm_train/train (confirm run again)") == 1


def test_waiting_user_is_notified_of_each_confirm_run(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    first = {"run": "again", "keys": ["norm_train/train"]}
    second = {"run": "again-2", "keys": ["norm_train/train"], "earlier": ["again"]}
    airflow.add(DAG, *[("running", facts(None, confirming=each)) for each in (first, second)], passing())
    err = tipcflow("trigger", CHAIN, "--wait").err
    assert err.count("re-measuring: norm_train/train (confirm run again)") == 1
    assert err.count("re-measuring: norm_train/train (confirm run 2: again-2)") == 1


def test_stopping_a_run_stops_its_confirm_run(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    requested = {"run": "again", "dag_run_id": "confirm__x"}
    airflow.add(DAG, ("running", facts(None, confirming=requested)))
    airflow.add("confirm", ("running", None))
    airflow._trigger("confirm", {"dag_run_id": "confirm__x", "conf": {}})
    tipcflow("trigger", CHAIN, "--wait", "--timeout", "0.005", "--stop")
    patched = [path for method, path in airflow.requests if method == "PATCH"]
    assert [path.split("/")[-3] for path in patched] == [DAG, "confirm"]


def test_a_change_names_its_branch(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG)
    tipcflow("trigger", CHAIN, "--suite-ref", COMMIT, "--base", "b" * 40)
    ((_, run),) = airflow.runs.items()
    assert run["conf"] == {"suite_ref": COMMIT, "base": "b" * 40}


def test_a_verdict_that_never_comes_ends_the_waiting(tipcflow: Tipcflow, airflow: FakeAirflow) -> None:
    airflow.add(DAG, ("success", facts(None)))
    result = tipcflow("trigger", CHAIN, "--wait")
    assert result.code == 5
    assert "left the run without a status" in result.out


@pytest.mark.parametrize("stop", [[], ["--stop"]])
def test_timeout_of_wait_is_an_infra_failure(tipcflow: Tipcflow, airflow: FakeAirflow, stop: list[str]) -> None:
    airflow.add(DAG, ("running", facts(None)))
    result = tipcflow("trigger", CHAIN, "--wait", "--timeout", "0.005", *stop)
    assert result.code == 5
    assert "not finished after 0.3 s; the DAG run is" in result.out
    assert next(iter(airflow.runs.values()))["state"] == ("failed" if stop else "running")
    assert ("stop requested" if stop else "the run continues in Airflow") in result.err
    assert ("; stop requested" in result.out) == bool(stop)


def test_an_unavailable_airflow_is_polled_again(
    tipcflow: Tipcflow, airflow: FakeAirflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trigger_wait, "_LONGEST_CALL_S", 0.3)
    airflow.add(DAG, ("running", facts(None)), passing())
    trigger = airflow._trigger

    def go_away(*arguments: Any) -> Any:
        airflow.down = 3
        return trigger(*arguments)

    monkeypatch.setattr(airflow, "_trigger", go_away)
    result = tipcflow("trigger", CHAIN, "--wait")
    assert result.code == 0
    assert result.err.count("retrying") == 1


@pytest.mark.parametrize("stop", [[], ["--stop"]])
def test_runs_are_cancelled_by_a_signal(
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
    result = tipcflow("trigger", CHAIN, "--wait", *stop)
    assert (result.code, result.out.splitlines()[-1]) == (3, "cancelled")
    assert next(iter(airflow.runs.values()))["state"] == ("failed" if stop else "running")
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("URL", "", "TIPCFLOW_AIRFLOW_URL: is not set"),
        ("URL", "airflow", "not an Airflow URL"),
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
    result = tipcflow("trigger", CHAIN)
    assert (result.code, airflow.runs) == (2, {})
    assert words in result.err
    assert "word" not in result.err.replace("PASSWORD", "").replace("a password", "")


@pytest.mark.parametrize("module", ["", "airflow", "devcluster"])
def test_missing_address_names_the_local_airflow_if_installed(
    tipcflow: Tipcflow, airflow: FakeAirflow, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    monkeypatch.setenv("TIPCFLOW_AIRFLOW_URL", "")
    if module:
        monkeypatch.setattr(running, "find_spec", lambda name: None if name == module else find_spec(name))
    result = tipcflow("trigger", CHAIN)
    assert result.code == 2
    assert ("hint: `tipcflow airflow up` starts an Airflow on this machine" in result.err) == (not module)


def test_a_token_is_enough(tipcflow: Tipcflow, airflow: FakeAirflow, monkeypatch: pytest.MonkeyPatch) -> None:
    airflow.add(DAG)
    monkeypatch.setenv("TIPCFLOW_AIRFLOW_TOKEN", "t2")
    monkeypatch.delenv("TIPCFLOW_AIRFLOW_USER")
    assert tipcflow("trigger", CHAIN).code == 0
    assert ("POST", "/auth/token") not in airflow.requests


@pytest.mark.parametrize(
    ("chains", "labels"),
    [
        (["s/a/train"], [""]),
        (["s/a/train", "s/a/train"], [""]),
        (["s/a/train", "s/b/train"], ["a: ", "b: "]),
        (["s/a/train", "t/a/train", "s/b/train"], ["s/a/train: ", "t/a/train: ", "b: "]),
    ],
)
def test_messages_begin_with_the_shortest_name_that_is_clear(chains: list[str], labels: list[str]) -> None:
    assert list(trigger_wait._labels(chains).values()) == labels
