"""`tipcflow judge RUN | --since DATE`: stored runs judged again by another policy; the database stays as it is."""

import csv
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import T0, a_run
from tests.support.two_nodes import NODES, TRAIN, Number, stored

from tipcflow.config.policy import Floors, Policy
from tipcflow.config.references import References
from tipcflow.config.run_documents import PolicyDocument
from tipcflow.domain import Status
from tipcflow.domain.run_documents import ConfirmationDocument
from tipcflow.execute.verdict import judge as judgement
from tipcflow.store import Store

pytestmark = pytest.mark.slow

WIDE = Policy(name="wide", floors=Floors(speed=0.5))
STRICT = "name: strict\nfloors: {speed: 0.1}\n"
SLOW, LATER = 6, 7


def slower(one: Number) -> float:
    return 1.3 if one[4] in ("batch_cost", "ips") else 1.0


@pytest.fixture
def strict(database: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Eight weeks judged by a wide policy; batches of the seventh take 1.3 times as long."""
    monkeypatch.setattr(judgement, "GATE_S", 0.0)
    with Store.open() as store:
        for week in range(8):
            run = stored(store, week, slower if week == SLOW else lambda _: 1.0, NODES)
            store.documents.put(run, PolicyDocument(WIDE))
            result = judgement.judge_run(store, run, rules=WIDE, references=References(suite="sample"))
            store.runs.finish(run, result.status, result.reason, T0 + week * 100 + 50)
            assert result.status is Status.PASS, result.reason
    path = tmp_path / "strict.yaml"
    path.write_text(STRICT)
    return str(path)


def dump(database: Path) -> list[str]:
    with sqlite3.connect(database) as connection:
        return list(connection.iterdump())


def test_a_stricter_policy_finds_the_slow_run(strict: str, database: Path, tipcflow: Callable[..., Any]) -> None:
    before = dump(database)
    result = tipcflow("judge", "--since", "2026-01-01", "--policy", strict, "--json")
    assert result.code == 0, result.err
    found = {one["run"]: one for one in json.loads(result.out)}
    assert sorted(found) == [f"run-{week:02}" for week in range(8)]
    slow = found[f"run-{SLOW:02}"]
    assert (slow["stored"]["status"], slow["now"]["status"], slow["policy"]) == ("pass", "regression", "strict")
    (check,) = [one for one in slow["differs"] if one["check"] == "speed.batch_cost"]
    assert (check["step"], check["metric"]) == (TRAIN, "batch_cost")
    assert (check["stored"]["status"], check["now"]["status"]) == ("pass", "regression")
    expected = "limit 10.0 %; more than 20.0 % needs no confirm run (no confirm run was made)"
    assert expected in check["now"]["reason"]
    for name in {*found} - {slow["run"]}:
        assert found[name]["now"]["status"] == "pass", found[name]
        assert found[name]["differs"] == [], "a run is judged by the runs before it, never by later ones"
    assert dump(database) == before


def test_the_table_has_both_reasons(strict: str, tipcflow: Callable[..., Any]) -> None:
    result = tipcflow("judge", f"run-{SLOW:02}", "--policy", strict)
    assert result.code == 0, result.err
    assert f"run-{SLOW:02}  pass    regression  speed.batch_cost ({TRAIN}): stored pass: " in result.out
    assert "; now regression: " in result.out
    assert "1 runs, 1 with another status now; nothing was changed" in result.out


def test_by_its_own_policy_nothing_differs(strict: str, tipcflow: Callable[..., Any]) -> None:
    result = tipcflow("judge", "--since", "2026-01-01")
    assert result.code == 0, result.err
    assert "8 runs, 0 with another status now" in result.out
    assert json.loads(tipcflow("judge", "latest", "--json").out)[0]["differs"] == []
    assert "no judged run since 2099-01-01" in tipcflow("judge", "--since", "2099-01-01").out


def test_a_status_that_no_check_gave_stays(strict: str, tipcflow: Callable[..., Any]) -> None:
    with Store.open() as store:
        store.runs.finish("run-05", Status.CANCELLED, "a user stopped it", T0 + 550)
    (found,) = json.loads(tipcflow("judge", "run-05", "--policy", strict, "--json").out)
    assert found["now"] == found["stored"] == {"status": "cancelled", "reason": "a user stopped it"}


def test_a_run_that_has_not_ended(strict: str, tipcflow: Callable[..., Any]) -> None:
    with Store.open() as store:
        store.runs.create(a_run("run-99", created_at=T0 + 9999))
    result = tipcflow("judge", "run-99")
    assert (result.code, "run run-99 has not ended" in result.err) == (2, True)


def test_stored_confirm_result_counts_again(strict: str, tipcflow: Callable[..., Any]) -> None:
    """A document of the run states that no confirm run was available: the new reason contains this."""
    with Store.open() as store:
        request = {
            "run": "c",
            "keys": [TRAIN],
            "until": 0.0,
            "refused": "no node was free",
            "mode": "",
            "alone": False,
        }
        store.documents.put(f"run-{SLOW:02}", ConfirmationDocument.model_validate(request))
    (found,) = json.loads(tipcflow("judge", f"run-{SLOW:02}", "--policy", strict, "--json").out)
    (check,) = [one for one in found["differs"] if one["check"] == "speed.batch_cost"]
    assert "no node was free" in check["now"]["reason"]


def test_numbers_of_a_confirm_run_are_not_evaluated_again(strict: str, tipcflow: Callable[..., Any]) -> None:
    with Store.open() as store:
        run = stored(store, 8, slower, NODES, trigger="confirm")
        result = judgement.judge_run(store, run, rules=WIDE, references=References(suite="sample"))
        store.runs.finish(run, result.status, result.reason, T0 + 850)
        store.documents.put(run, PolicyDocument(WIDE))
        assert result.status is Status.PASS, result.reason
    (found,) = json.loads(tipcflow("judge", run, "--policy", strict, "--json").out)
    assert found["now"]["status"] == "pass", found


def test_csv_has_a_row_per_different_check(strict: str, tipcflow: Callable[..., Any]) -> None:
    results = json.loads(tipcflow("judge", "--since", "2026-01-01", "--policy", strict, "--json").out)
    rows = list(
        csv.DictReader(tipcflow("judge", "--since", "2026-01-01", "--policy", strict, "--csv").out.splitlines())
    )
    expected = [
        (result["run"], change["check"], change["metric"]) for result in results for change in result["differs"]
    ]
    assert [(row["run"], row["check"], row["metric"]) for row in rows if row["check"]] == expected
    same = {result["run"] for result in results if not result["differs"]}
    assert {row["run"] for row in rows if not row["check"]} == same
