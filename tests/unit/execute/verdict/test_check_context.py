"""Which earlier runs a run is compared with, number by number."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import T0, TRAIN, a_run, losses, tell

from tipcflow.domain import Run, Status
from tipcflow.domain.numbers.history import INCOMPARABLE
from tipcflow.execute.verdict.check_context import depends_on_seed, past_runs
from tipcflow.store import Store

LOSS, SPEED = f"{TRAIN}||loss", f"{TRAIN}||batch_cost"


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store.open(f"sqlite:///{tmp_path}/t.db") as opened:
        yield opened


def _passed(store: Store, number: int, **fields: Any) -> Run:
    run = tell(store, a_run(f"run-{number}", created_at=T0 + number, **fields), status=Status.PASS)
    store.add_measurements(losses(run.id, [0.05], metric="batch_cost", unit="s"))
    return run


def _now(store: Store, **fields: Any) -> Run:
    run = a_run("now", created_at=T0 + 99, **fields)
    store.create_run(run)
    return run


def _with(store: Store, run: Run, key: str, **more: Any) -> list[str]:
    return [one.run for one in past_runs(store, run, {}, **{"limit": 20, **more}) if key in one.medians]


def test_losses_are_compared_with_the_same_seed_and_speeds_with_any(store: Store) -> None:
    for number in range(5):
        _passed(store, number, seed=0)
    _passed(store, 5, seed=7)
    run = _now(store, seed=7)
    assert _with(store, run, LOSS) == ["run-5"]
    assert _with(store, run, SPEED) == [f"run-{number}" for number in range(6)]


def test_losses_are_compared_with_other_seeds_once_there_are_enough_of_them(store: Store) -> None:
    for number, seed in enumerate((1, 2, 3, 4, 4, 5)):
        _passed(store, number, seed=seed)
    run = _now(store, seed=9)
    assert _with(store, run, LOSS) == ["run-0", "run-1", "run-2", "run-4", "run-5"]
    assert _with(store, run, LOSS, seeds=6) == []
    # As soon as the seed itself is known well enough, nothing else counts.
    for number in range(6, 12):
        _passed(store, number, seed=9)
    assert _with(store, run, LOSS) == [f"run-{number}" for number in range(6, 12)]


def test_runs_of_the_same_seed_are_found_behind_many_others(store: Store) -> None:
    _passed(store, 0, seed=7)
    for number in range(1, 5):
        _passed(store, number, seed=0)
    run = _now(store, seed=7)
    assert _with(store, run, LOSS, limit=3) == ["run-0"]
    assert _with(store, run, SPEED, limit=3) == ["run-2", "run-3", "run-4"]


def test_a_diagnose_run_is_compared_with_nothing_and_joins_no_history(store: Store) -> None:
    for number in range(2):
        _passed(store, number)
    store.put_document("run-1", INCOMPARABLE, {"why": "--diagnose"})
    run = _now(store)
    assert _with(store, run, SPEED) == ["run-0"]
    store.put_document(run.id, INCOMPARABLE, {"why": "--diagnose"})
    assert past_runs(store, run, {}, limit=20) == ()


@pytest.mark.parametrize(
    ("key", "depends"),
    [
        (LOSS, True),
        (f"{TRAIN}||G_loss", True),
        ("eval||eval.top1", True),
        (SPEED, False),
        (f"{TRAIN}||peak_rss.rank0", False),
    ],
)
def test_losses_and_accuracies_depend_on_the_seed(key: str, depends: bool) -> None:
    assert depends_on_seed(key) is depends
