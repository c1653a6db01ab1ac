"""`tipcflow golden`: recorded from a run that passed, shown, refused with a reason."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.bad_day import record_failure
from tests.support.stories import INFER, a_plan, a_run, record_run

from tipcflow.config.goldens import load_goldens
from tipcflow.domain import ConfigError, GoldenKey, Run, Status
from tipcflow.domain.keys import LegKey, PredictionKey
from tipcflow.domain.run_documents import PredictionsDocument
from tipcflow.store import Store


@pytest.fixture
def configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(tmp_path / "configs"))
    return tmp_path / "configs"


def passing(store: Store) -> tuple[str, str, str]:
    """A run that passed and whose legs printed predictions; its id, the inference step, the legs' precision."""
    run = record_run(store)
    plan = store.plans.get(run.id)
    step = next(step for step in plan.steps if step.legs and not step.not_run)
    for leg in step.legs:
        store.steps.set_leg(run.id, step.id, leg.id, 1, Status.PASS, "", None)
    scores = {leg.id: (0.25, 0.75) if leg.onednn else (0.2, 0.8) for leg in step.legs}
    store.documents.put(
        run.id,
        PredictionsDocument(
            {LegKey(step.id, leg).part: {PredictionKey("a.png"): row} for leg, row in scores.items()}
        ),
    )
    return run.id, step.id, step.legs[0].precision


def with_precision(store: Store) -> Run:
    """A run that failed, whose legs declare fp32."""
    plan, run = a_plan(), a_run()
    steps = [
        step.model_copy(update={"legs": tuple(leg.model_copy(update={"precision": "fp32"}) for leg in step.legs)})
        for step in plan.steps
    ]
    store.runs.create(run, plan.model_copy(update={"steps": tuple(steps)}))
    store.runs.finish(run.id, Status.FAILED, "", run.created_at + 20)
    return store.runs.get(run.id)


def test_goldens_are_recorded_and_shown(tipcflow: Callable[..., Any], home: Path, configs: Path) -> None:
    with Store.open() as store:
        run, step, precision = passing(store)
        report = store.runs.get(run)
    result = tipcflow("golden", "show", run)
    assert result.code == 2
    assert f"no goldens are stored for {report.chain} in {report.mode}" in result.err
    result = tipcflow("golden", "record", run, "--because", "looked at them", "--who", "mia")
    assert result.code == 0, result.err
    kept = load_goldens(configs, report.chain, report.mode)
    assert kept
    assert (kept.run, kept.who, kept.because, kept.seed) == (run, "mia", "looked at them", report.seed)
    (answers,) = kept.predictions.values()
    assert set(kept.predictions) == {GoldenKey(step, precision)}
    assert answers.scores == {PredictionKey("a.png"): (0.2, 0.8)}, "the plainest leg speaks"
    result = tipcflow("golden", "show", run)
    assert "recorded by mia at" in result.out
    assert answers.leg in result.out
    assert json.loads(tipcflow("golden", "show", run, "--json").out)["run"] == run


def test_invalid_golden_commands_are_refused(tipcflow: Callable[..., Any], home: Path, configs: Path) -> None:
    with Store.open() as store:
        failed = record_failure(store, home).id
        good = record_run(store).id
        store.documents.put(good, PredictionsDocument({}))
    result = tipcflow("golden", "record", failed, "--because", "x")
    assert (result.code, f"run {failed} is failed" in result.err) == (2, True)
    result = tipcflow("golden", "record", good, "--because", "x")
    assert (result.code, f"run {good} printed no predictions" in result.err) == (2, True)
    result = tipcflow("golden", "record", good, "--because", " ")
    assert (result.code, "a golden needs a reason" in result.err) == (2, True)
    assert not list(configs.rglob("*.json"))


def test_results_of_a_suite_are_recorded_for_their_precision(
    tipcflow: Callable[..., Any], home: Path, configs: Path, tmp_path: Path
) -> None:
    with Store.open() as store:
        report = with_precision(store)
    run = report.id
    path = tmp_path / "python_x_results_fp32.txt"
    path.write_text("a.jpg\t[[39, 88]]\n")
    result = tipcflow("golden", "record", run, "--because", "the suite's own", "--results", str(path))
    assert result.code == 0, result.err
    kept = load_goldens(configs, report.chain, report.mode)
    assert kept
    (answers,) = kept.predictions.values()
    assert set(kept.predictions) == {GoldenKey(INFER, "fp32")}
    assert (answers.file, answers.leg) == (path.name, "")
    assert answers.scores == {PredictionKey("a.jpg", 1): (39.0, 88.0)}
    assert path.name in tipcflow("golden", "show", run).out


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("results.txt", "a.jpg\t[[1]]", "names no precision"),
        ("results_int8.txt", "a.jpg\t[[1]]", "no leg has this precision"),
        ("results_fp32.txt", None, "cannot be read"),
        (
            "results_fp32.txt",
            "a.jpg\t[[1",
            "line 1: the result of a.jpg is neither JSON lists of numbers nor integers",
        ),
        ("results_fp32.txt", "a.jpg\t[]", "has no result"),
    ],
)
def test_a_wrong_results_file_is_refused(
    tipcflow: Callable[..., Any],
    home: Path,
    configs: Path,
    tmp_path: Path,
    name: str,
    text: str | None,
    message: str,
) -> None:
    with Store.open() as store:
        run = with_precision(store).id
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    result = tipcflow("golden", "record", run, "--because", "x", "--results", str(path))
    assert (result.code, message in result.err, str(path) in result.err) == (2, True, True), result.err
    assert not list(configs.rglob("*.json"))


def test_a_broken_file_is_named(configs: Path) -> None:
    path = configs / "goldens" / "s" / "m" / "f.lite.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"chain": "s/m/f"}')
    with pytest.raises(ConfigError) as error:
        load_goldens(configs, "s/m/f", "lite")
    assert str(path) in str(error.value)
    assert "mode" in str(error.value)
