"""`tipcflow quarantine`: add, list, show, release, and one clear error for each wrong input."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import T0, a_run, database_of

from tipcflow.domain import CheckResult, Status
from tipcflow.store import Store

CHAIN, DAY = a_run().chain, 86_400.0
BEGIN = T0 - 365 * DAY
ADD = (
    "quarantine",
    "add",
    CHAIN,
    "parity.onednn",
    "--owner",
    "kernels",
    "--because",
    "oneDNN bug",
    "--who",
    "mia",
)


def put(store: Store, number: int, status: Status, **fields: Any) -> None:
    known = {"environment": "cpu", "suite_commit": f"c{number}", "created_at": BEGIN + number * DAY}
    ended = {"status": Status.PASS, "ended_at": BEGIN + number * DAY + 60}
    store.runs.create(a_run(f"run-{number}", **(known | ended | fields)))
    common: dict[str, Any] = {
        "step": "v/infer_cpu",
        "leg": "cpu",
        "values": {"max_abs": 0.5, "code": "other_class"},
    }
    results = [
        CheckResult(check="parity.onednn", status=status, reason="class 3 instead of 5", **common),
        CheckResult(check="ran.steps", status=Status.FAILED, reason="nothing ran"),
    ]
    store.checks.replace(f"run-{number}", results)


def nine_runs(store: Store) -> None:
    """The last one fails."""
    for number in range(9):
        put(store, number, Status.FAILED if number == 8 else Status.PASS)


@pytest.fixture
def runs(database: Path) -> None:
    database.write_bytes(database_of(nine_runs))


@pytest.mark.usefixtures("runs")
def test_quarantines_are_added_shown_listed_and_released(tipcflow: Callable[..., Any]) -> None:
    result = tipcflow(*ADD, "--json")
    assert result.code == 0, result.err
    made = json.loads(result.out)
    assert (made["number"], made["who"], made["owner"], made["run"]) == (1, "mia", "kernels", "run-8")
    assert (made["state"], made["clean_runs"], made["clean_runs_needed"]) == ("active", 0, 29)
    shown = tipcflow("quarantine", "show", "1").out
    assert shown.startswith("quarantine 1: active\n")
    assert f"chain        {CHAIN} in {a_run().mode} on cpu\n" in shown
    assert "check        parity.onednn (v/infer_cpu cpu)\nsignature    other_class\n" in shown
    assert "by mia: oneDNN bug\n" in shown
    assert "evidence     1 of 9 runs failed: run-8\n" in shown
    assert "since then   0 of 29 clean runs on newer commits; failed: none\n" in shown
    listed = json.loads(tipcflow("quarantine", "list", "--json").out)["quarantines"]
    assert listed == [made]
    row = tipcflow("quarantine", "list").out.splitlines()[1]
    assert row.split()[:2] == ["1", "active"]
    assert "0 of 29     kernels  parity.onednn (v/infer_cpu cpu)" in row
    result = tipcflow("quarantine", "release", "1", "--because", "fixed", "--who", "tom")
    assert result.out == f"released: quarantine 1, parity.onednn (v/infer_cpu cpu) of {CHAIN} in {a_run().mode}\n"
    assert tipcflow("quarantine", "list").out == "no active quarantines\n"
    assert "1       released" in tipcflow("quarantine", "list", "--all").out
    assert tipcflow("quarantine", "show", "1").out.endswith(" by tom: fixed\n")


@pytest.mark.usefixtures("runs")
def test_quarantine_add_prints_scope_and_failure_rate(tipcflow: Callable[..., Any]) -> None:
    first, second = tipcflow(*ADD).out.splitlines()
    assert first.startswith("quarantine 1 of kernels, until 20")
    assert first.endswith(f"UTC: parity.onednn (v/infer_cpu cpu) of {CHAIN} in {a_run().mode}")
    assert second == "failed in 1 of 9 runs; 29 consecutive clean runs on newer commits end it"


@pytest.mark.usefixtures("runs")
def test_list_releases_quarantines_after_enough_clean_runs(tipcflow: Callable[..., Any]) -> None:
    tipcflow(*ADD)
    with Store.open() as store:
        now = store.now()
        for number in range(29):
            put(store, 100 + number, Status.PASS, created_at=now + number, ended_at=now + number + 1)
    assert tipcflow("quarantine", "list").out == "no active quarantines\n"
    assert "by tipcflow: 29 consecutive clean runs" in tipcflow("quarantine", "show", "1").out


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("add", "nothing", "parity.onednn"), "CHAIN: no run of a chain with this name; found 'nothing'"),
        (("add", CHAIN, "parity.nothing"), "CHECK: no run of the chain has a result of this check; found"),
        (("add", CHAIN, "ran.steps"), "ran.steps cannot be quarantined: the check proves that the declared work"),
        (("add", CHAIN, "parity.onednn", "--until", "2020-01-01"), "--until: the end is in the past"),
        (("add", CHAIN, "parity.onednn", "--until", "2199-01-01"), "--until: the end is too late"),
        (("add", CHAIN, "parity.onednn", "--until", "soon"), "--until: is not a date; found 'soon'"),
        (
            ("add", CHAIN, "parity.onednn", "--run", "run-7"),
            "run run-7 has no failure of parity.onednn; found 'pass'",
        ),
        (("add", CHAIN, "parity.onednn", "--run", "none"), "none"),
        (("add", CHAIN, "parity.onednn", "--owner", " "), "--owner: is empty"),
        (("add", CHAIN, "parity.onednn", "--because", " "), "--because: is empty"),
        (
            ("show", "7"),
            "NUMBER: no such quarantine; found '7'; expected the number of a quarantine; the database has none",
        ),
        (("release", "7", "--because", "x"), "NUMBER: no such quarantine; found '7'"),
        (("list", "--chain", "nothing"), "--chain: no run of a chain with this name"),
    ],
)
def test_invalid_input_is_an_error(tipcflow: Callable[..., Any], arguments: tuple[str, ...], text: str) -> None:
    if arguments[0] == "add":
        given = dict.fromkeys(arguments)
        arguments += () if "--owner" in given else ("--owner", "kernels")
        arguments += () if "--because" in given else ("--because", "x")
    result = tipcflow("quarantine", *arguments)
    assert (result.code, result.out) == (2, "")
    assert text in result.err
    assert "Traceback" not in result.err
    with Store.open() as store:
        assert store.quarantines.all() == []


@pytest.mark.usefixtures("runs")
def test_second_quarantine_of_a_failure_is_refused(tipcflow: Callable[..., Any]) -> None:
    tipcflow(*ADD)
    result = tipcflow(*ADD)
    assert result.code == 2
    assert (
        "this failure of parity.onednn (v/infer_cpu cpu) is in quarantine; found 'quarantine 1 of kern"
        in result.err
    )
    tipcflow("quarantine", "release", "1", "--because", "fixed")
    result = tipcflow("quarantine", "release", "1", "--because", "fixed")
    assert result.code == 2
    assert "the quarantine has ended; found '1: released'; expected an active quarantine" in result.err
