"""`tipcflow golden`: recorded from a run that passed, shown, refused with a reason."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.bad_day import tell_failure
from tests.support.stories import tell

from tipcflow.config.goldens import load_goldens
from tipcflow.domain import ConfigError, GoldenKey, Status
from tipcflow.domain.run_documents import PredictionsDocument
from tipcflow.store import Store


@pytest.fixture
def configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(tmp_path / "configs"))
    return tmp_path / "configs"


def passing(store: Store) -> tuple[str, str, str]:
    """A run that passed and whose legs answered; its id, the inference step, the legs' precision."""
    run = tell(store)
    plan = store.plans.get(run.id)
    step = next(step for step in plan.steps if step.legs and not step.not_run)
    for leg in step.legs:
        store.steps.set_leg(run.id, step.id, leg.id, 1, Status.PASS, "", None)
    scores = {leg.id: (0.25, 0.75) if leg.onednn else (0.2, 0.8) for leg in step.legs}
    store.documents.put(
        run.id, PredictionsDocument({f"{step.id}/{leg}": {"a.png": row} for leg, row in scores.items()})
    )
    return run.id, step.id, step.legs[0].precision


def test_recorded_and_shown(tipcflow: Callable[..., Any], home: Path, configs: Path) -> None:
    with Store.open() as store:
        run, step, precision = passing(store)
        told = store.runs.get(run)
    said = tipcflow("golden", "show", run)
    assert said.code == 2
    assert f"no goldens are stored for {told.chain} in {told.mode}" in said.err
    said = tipcflow("golden", "record", run, "--because", "looked at them", "--who", "mia")
    assert said.code == 0, said.err
    kept = load_goldens(configs, told.chain, told.mode)
    assert kept
    assert (kept.run, kept.who, kept.because, kept.seed) == (run, "mia", "looked at them", told.seed)
    (answers,) = kept.answers.values()
    assert set(kept.answers) == {GoldenKey(step, precision)}
    assert answers.scores == {"a.png": (0.2, 0.8)}, "the plainest leg speaks"
    said = tipcflow("golden", "show", run)
    assert "recorded by mia at" in said.out
    assert answers.leg in said.out
    assert json.loads(tipcflow("golden", "show", run, "--json").out)["run"] == run


def test_refused(tipcflow: Callable[..., Any], home: Path, configs: Path) -> None:
    with Store.open() as store:
        failed = tell_failure(store, home).id
        good = tell(store).id
        store.documents.put(good, PredictionsDocument({}))
    said = tipcflow("golden", "record", failed, "--because", "x")
    assert (said.code, f"run {failed} is failed" in said.err) == (2, True)
    said = tipcflow("golden", "record", good, "--because", "x")
    assert (said.code, f"run {good} printed no predictions" in said.err) == (2, True)
    said = tipcflow("golden", "record", good, "--because", " ")
    assert (said.code, "a golden needs a reason" in said.err) == (2, True)
    assert not list(configs.rglob("*.json"))


def test_a_broken_file_is_named(configs: Path) -> None:
    path = configs / "goldens" / "s" / "m" / "f.lite.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"chain": "s/m/f"}')
    with pytest.raises(ConfigError) as error:
        load_goldens(configs, "s/m/f", "lite")
    assert str(path) in str(error.value)
    assert "mode" in str(error.value)
