"""`tipcflow gate`: from a chain's own history, what can be seen and how often it would be wrong."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.stories import T0, TRAIN, a_run, record_run

from tipcflow.domain import Measurement, Phase
from tipcflow.store import Store

pytestmark = pytest.mark.slow


def weeks(count: int, noise: float) -> str:
    source = random.Random(7)
    with Store.open() as store:
        for week in range(count):
            run = record_run(store, a_run(f"run-{week:02}", created_at=T0 + week, environment="cpu"))
            known = {"run": run.id, "step": TRAIN, "node": "node-a", "metric": "batch_cost", "unit": "s"}
            value = 0.2 * (1 + source.gauss(0, noise))
            store.measurements.add([Measurement(**known, phase=Phase.TRAIN, value=value)])
    return run.chain


def row(report: dict[str, Any]) -> dict[str, Any]:
    (found,) = [one for one in report["metrics"] if one["metric"] == "batch_cost"]
    return found


def test_a_quiet_history_shows_small_changes(tipcflow: Callable[..., Any], home: Any) -> None:
    chain = weeks(20, 0.005)
    result = tipcflow("gate", chain, "--policy", "weekly", "--json")
    assert result.code == 0, result.err
    report = json.loads(result.out)
    assert (report["chain"], report["policy"]) == (chain, "weekly")
    found = row(report)
    assert (found["step"], found["runs"]) == (TRAIN, 20)
    assert 0.002 < found["sigma"] < 0.01
    assert 0.01 < found["smallest"] < 0.08
    assert found["false_per_year"] < 0.1
    table = tipcflow("gate", "run-03", "--policy", "weekly").out
    assert "SMALLEST CHANGE" in table
    assert "batch_cost" in table


def test_short_history_names_the_number_of_missing_runs(tipcflow: Callable[..., Any], home: Any) -> None:
    chain = weeks(3, 0.005)
    assert "known after 5 more runs" in tipcflow("gate", chain, "--policy", "weekly").out


@pytest.mark.parametrize(("word", "result"), [("nonsense", "no chain or run has this name"), ("latest", "")])
def test_empty_result_is_an_error(tipcflow: Callable[..., Any], home: Any, word: str, result: str) -> None:
    found = tipcflow("gate", word)
    assert found.code == 2
    assert result in found.err
