"""`judge --series`, the checks of a run, `baseline show`, `gate` and `detect` agree on a series, run by run."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import T0, TRAIN, a_run, record_run

from tipcflow.check import Confirmation
from tipcflow.check.baseline.baseline import against_baseline
from tipcflow.config.references import References
from tipcflow.domain import Measurement, MetricKey, Phase, Status
from tipcflow.execute.verdict import judge as judgement
from tipcflow.execute.verdict.check_context import build_check_context
from tipcflow.store import Store

CONFIGS = Path(__file__).parents[4] / "configs"
METRIC = "batch_cost"


def series(step: float) -> list[tuple[float, float | None]]:
    """Value and confirm value per run: 26 equal ones, one of them an outlier; 5 slower ones, 2 without confirm."""
    source = random.Random(11)
    values = [(0.2 * (1 + source.gauss(0, 0.002)), 0.2) for _ in range(26)]
    values[17] = (0.2 * (1 + step), 0.2)
    slower = [0.2 * (1 + step) * (1 + source.gauss(0, 0.002)) for _ in range(5)]
    return [*values, *((one, None if at < 2 else one) for at, one in enumerate(slower))]


def line(values: list[tuple[float, float | None]]) -> str:
    points = [
        {"run": f"run-{at:02}", "node": "n", "samples": [value], "confirm": None if again is None else [again]}
        for at, (value, again) in enumerate(values)
    ]
    return json.dumps({"id": "s", "unit": "s", "direction": "lower", "points": points})


def by_the_checks(values: list[tuple[float, float | None]], policy: str) -> list[Any]:
    """The result of each run's check; the database then holds all runs, with these statuses."""
    rules, answers = judgement.load_policy(policy, CONFIGS), []
    key = MetricKey(TRAIN, "", METRIC)
    with Store.open() as store:
        for at, (value, again) in enumerate(values):
            run = record_run(store, a_run(f"run-{at:02}", created_at=T0 + at, environment="cpu"), status=None)
            known = {"run": run.id, "step": TRAIN, "node": "node-a", "metric": METRIC, "unit": "s"}
            store.measurements.add([Measurement(**known, phase=Phase.TRAIN, value=value)])
            context = build_check_context(store, run, rules=rules, references=References(suite="sample"))
            # As in a series: no further confirm run follows the first one.
            medians = {} if again is None else {key: again}
            confirmation = Confirmation(run="again", medians=medians, last="the series has no further one")
            found = against_baseline(store.history.facts(run.id), replace(context, confirmation=confirmation))
            (answer,) = [one for one in found if one.check == f"speed.{METRIC}"]
            answers.append(answer)
            bad = answer.status in (Status.REGRESSION, Status.UNCONFIRMED)
            store.runs.finish(run.id, answer.status if bad else Status.PASS, "", T0 + at + 0.5)
    return answers


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "step"), [("weekly", 0.08), ("pr", 0.7)])
def test_all_commands_give_the_result_of_the_checks(
    tmp_path: Path, database: Any, tipcflow: Callable[..., Any], policy: str, step: float
) -> None:
    values = series(step)
    path = tmp_path / "s.jsonl"
    path.write_text(line(values) + "\n")
    about = ["--series", str(path), "--policy", policy, "--metric", METRIC, "--json"]
    checks = by_the_checks(values, policy)
    assert [one.status.value for one in checks[:5]] == ["insufficient_data"] * 5
    assert {checks[17].status, *(one.status for one in checks[5:26])} == {Status.PASS}
    assert [one.status.value for one in checks[26:]] == ["unconfirmed"] * 2 + ["regression"] * 3

    points = json.loads(tipcflow("judge", *about).out)["points"]
    assert [one["status"] for one in points] == [one.status.value for one in checks]
    assert [one["ratio"] for one in points] == [one.values.get("ratio") for one in checks]
    assert [one["reason"] for one in points[:26]] == [one.reason.replace("again ", "") for one in checks[:26]]

    (detected,) = [json.loads(one) for one in tipcflow("detect", *about).out.splitlines()]
    assert detected["unconfirmed"] == [at for at, one in enumerate(checks) if one.status is Status.UNCONFIRMED]
    # `detect` accepts a change: the runs after it are compared with each other.
    (alert,) = detected["alerts"]
    first = next(at for at, one in enumerate(checks) if one.status is Status.REGRESSION)
    assert (alert["index"], alert["direction"]) == (first, "worse")
    assert alert["size"] == pytest.approx(checks[first].values["ratio"] - 1, abs=0.01)

    shown = ["baseline", "show", "run-30", "--policy", policy, "--metric", METRIC, "--json"]
    (baseline,) = json.loads(tipcflow(*shown).out)["baselines"]
    assert baseline["value"] == pytest.approx(checks[30].values["baseline"], rel=1e-12)
    assert baseline["runs"] == checks[30].values["n"]
    limits = json.loads(tipcflow("gate", "run-30", "--policy", policy, "--json").out)["metrics"]
    (limit,) = [one for one in limits if one["metric"] == METRIC]
    assert limit["runs"] == baseline["runs"]
