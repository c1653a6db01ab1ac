"""`tipcflow alerts`: list, show, set, assign, comment, and one clear error for each wrong input."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import T0, a_plan, a_run, database_of

from tipcflow.domain import CheckResult, Status
from tipcflow.domain.run.notices import IssueRef, IssuesDocument
from tipcflow.execute.alerts.track import track_alerts
from tipcflow.store import Store

MODE = a_run().mode


def slow_chains(store: Store) -> None:
    """A framework that slowed two chains, and a commit that slowed a third."""
    for chain, fields in (("a", {}), ("b", {}), ("c", {"framework": "paddle 1", "suite_commit": "d" * 40})):
        for number, status in enumerate((Status.PASS, Status.REGRESSION)):
            known: dict[str, Any] = {"framework": f"paddle {number + 1}", "suite_commit": "c" * 40}
            known |= {"environment": "cpu", "created_at": T0 + number, "ended_at": T0 + number + 0.5}
            name = f"sample/{chain}/train"
            run = a_run(f"{chain}-{number}", chain=name, status=status, **(known | (fields if number else {})))
            if chain == "c" and not number:
                run = run.model_copy(update={"framework": "paddle 1"})
            store.runs.create(run, a_plan(chain=name))
            common: dict[str, Any] = {"step": "v/train", "metric": "batch_cost", "values": {"ratio": 1.25}}
            track_alerts(
                store, run, [CheckResult(check="speed.batch_cost", status=status, reason="slow", **common)]
            )


@pytest.fixture
def alerts(database: Path) -> None:
    database.write_bytes(database_of(slow_chains))


@pytest.mark.usefixtures("alerts")
def test_list_groups_by_cause(tipcflow: Callable[..., Any]) -> None:
    assert tipcflow("alerts", "list").out.splitlines() == [
        "3 alerts of 3 chains with 2 causes: 3 new",
        "",
        "suite ccccccc -> ddddddd",
        "NUMBER  STATE  SINCE       RUNS  OWNER  CHAIN AND METRICS",
        f"3       new    2026-11-18  1     none   sample/c/train in {MODE}: batch_cost +25.0 %",
        "",
        "framework 1 -> 2",
        "NUMBER  STATE  SINCE       RUNS  OWNER  CHAIN AND METRICS",
        f"2       new    2026-11-18  1     none   sample/b/train in {MODE}: batch_cost +25.0 %",
        f"1       new    2026-11-18  1     none   sample/a/train in {MODE}: batch_cost +25.0 %",
    ]
    assert tipcflow("alerts", "list", "--chain", "b/").out.startswith("1 alert of 1 chain with 1 cause: 1 new\n")
    assert tipcflow("alerts", "list", "--state", "fixed").out == "no alerts\n"
    groups = json.loads(tipcflow("alerts", "list", "--json").out)["groups"]
    assert [[each["number"] for each in group["alerts"]] for group in groups] == [[3], [2, 1]]
    assert len(tipcflow("alerts", "list", "--csv").out.splitlines()) == 4


@pytest.mark.usefixtures("alerts")
def test_alerts_can_be_set_assigned_commented_and_shown(tipcflow: Callable[..., Any]) -> None:
    output = tipcflow("alerts", "set", "1", "acknowledged", "--owner", "kernels", "--group", "--who", "mia")
    assert output.out.splitlines() == [
        f"alert 1: acknowledged, owner kernels; sample/a/train in {MODE}",
        f"alert 2: acknowledged, owner kernels; sample/b/train in {MODE}",
    ]
    assert tipcflow("alerts", "assign", "1", "tom", "--who", "mia").out == (
        f"alert 1: acknowledged, owner tom; sample/a/train in {MODE}\n"
    )
    assert tipcflow("alerts", "comment", "1", "only with oneDNN", "--who", "tom").code == 0
    assert tipcflow("alerts", "set", "1", "expected", "--because", "safer kernel", "--who", "tom").code == 0
    assert json.loads(tipcflow("alerts", "list", "--owner", "kernels", "--json").out)["groups"][0]["number"] == 1
    lines = tipcflow("alerts", "show", "1").out.splitlines()
    assert lines[:9] == [
        "alert 1: expected (the change is intended, or the baseline was accepted)",
        f"chain        sample/a/train in {MODE} on cpu",
        "owner        tom",
        "first run    a-1, 2026-11-18 11:06 UTC",
        "last good    a-0",
        "newest run   a-1, 2026-11-18 11:06 UTC, 1 run",
        "level        has not returned",
        "suspects     framework 1 -> 2",
        "same cause   alert 2 (sample/b/train)",
    ]
    assert lines[9] == "metric       batch_cost (v/train), since run a-1: slow"
    assert lines[10].startswith("to search    tipcflow ab test_tipc/configs/")
    assert lines[10].endswith(
        f"--framework-a paddle==1 --framework-b paddle==2 --suite sample --mode {MODE} --cluster local"
    )
    history = [line.split("UTC  ")[1] for line in lines[12:]]
    assert history == [
        "tipcflow  opened  a-1  speed.batch_cost: slow",
        "mia  state  acknowledged",
        "mia  owner  kernels",
        "mia  owner  tom",
        "tom  comment  only with oneDNN",
        "tom  state  expected: safer kernel",
    ]
    detail = json.loads(tipcflow("alerts", "show", "3", "--json").out)
    assert "tipcflow bisect" in detail["search"]
    assert "batch_cost --good cccccccccccc --bad dddddddddddd --step v/train --suite" in detail["search"]


@pytest.mark.usefixtures("alerts")
@pytest.mark.parametrize(
    ("words", "output"),
    [
        (("show", "9"), "NUMBER: no such alert; found '9'; expected 1 to 3"),
        (("list", "--state", "red"), "--state: invalid value; found 'red'; expected one of open, new"),
        (("list", "--json", "--csv"), "--csv: give either --json or --csv"),
        (("set", "1", "red"), "STATE: invalid value; found 'red'; expected one of new, acknowledged"),
        (("set", "1", "fixed"), "--because: is empty; expected a reason"),
        (("set", "1", "new"), "STATE: alert 1 has this state; found 'new'; expected another state"),
        (("assign", "1", " "), "OWNER: is empty; expected a user or team"),
        (("comment", "1", ""), "TEXT: is empty; expected a comment"),
    ],
)
def test_wrong_input_is_one_error(tipcflow: Callable[..., Any], words: tuple[str, ...], output: str) -> None:
    result = tipcflow("alerts", *words)
    assert result.code == 2
    assert output in " ".join(result.err.split())


@pytest.mark.usefixtures("alerts")
def test_show_prints_the_issue_of_the_cause(tipcflow: Callable[..., Any]) -> None:
    with Store.open() as store:
        reference = IssueRef(number=7, url="https://github.test/o/r/issues/7")
        store.documents.put("a-1", IssuesDocument({"o/r": reference}))
    assert "issue        https://github.test/o/r/issues/7" in tipcflow("alerts", "show", "2").out.splitlines()
    assert "issue  " not in tipcflow("alerts", "show", "3").out


def test_result_of_a_bisection_is_shown_by_all_alerts_of_its_cause(
    alerts: None, tipcflow: Callable[..., Any]
) -> None:
    from tipcflow.domain.run.bisection import BisectionDocument
    from tipcflow.execute.alerts.bisected import attach_bisection

    sentence = "97 %: 3f2c1e00 'Use new loader' (9 runs, 41 min)"
    with Store.open() as store:
        first, (moved, *_) = store.tracked_alerts.get(1).first, store.tracked_alerts.get(1).metrics
        result = BisectionDocument(metric=moved.metric, sentence=sentence)
        assert attach_bisection(store, first, result) == [1]
        assert attach_bisection(store, first, result) == [1]
    for number in ("1", "2"):
        assert f"bisection    {sentence}" in tipcflow("alerts", "show", number).out.splitlines()
    assert json.loads(tipcflow("alerts", "show", "1", "--json").out)["bisection"]["sentence"] == sentence
    events = [line for line in tipcflow("alerts", "show", "1").out.splitlines() if "  bisected  " in line]
    assert len(events) == 1
