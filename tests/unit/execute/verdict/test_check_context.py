"""Which earlier runs a run is compared with, number by number."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import T0, TRAIN, a_run, losses, open_store, record_run

from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.config.run_documents import SuiteDocument
from tipcflow.config.suite import Prints, Suite
from tipcflow.domain import MetricKey, Run, Status
from tipcflow.domain.run_documents import IncomparableDocument, MergeBaseDocument
from tipcflow.execute.verdict.check_context import build_check_context, depends_on_seed, past_runs
from tipcflow.store import Store

LOSS, SPEED, MARGIN = (MetricKey(TRAIN, "", name) for name in ("loss", "batch_cost", "margin"))


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with open_store(tmp_path / "t.db") as opened:
        yield opened


def _passed(store: Store, number: int, **fields: Any) -> Run:
    run = record_run(store, a_run(f"run-{number}", created_at=T0 + number, **fields), status=Status.PASS)
    store.measurements.add(losses(run.id, [0.05], metric="batch_cost", unit="s"))
    return run


def _now(store: Store, **fields: Any) -> Run:
    run = a_run("now", created_at=T0 + 99, **fields)
    store.runs.create(run)
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


def test_a_loss_that_only_the_suite_names_depends_on_the_seed(store: Store) -> None:
    for number, seed in enumerate((0, 7)):
        past = _passed(store, number, seed=seed)
        store.measurements.add(losses(past.id, [3.0, 2.0], metric="margin"))
    run = _now(store, seed=7)
    assert _with(store, run, MARGIN) == ["run-0", "run-1"]
    prints = Prints(losses=("marg*",))
    store.documents.put(run.id, SuiteDocument(Suite(name="s", folder="/s", dialects=("tipc",), prints=prints)))
    assert _with(store, run, MARGIN) == ["run-1"]


def test_losses_are_compared_with_other_seeds_once_enough_exist(store: Store) -> None:
    for number, seed in enumerate((1, 2, 3, 4, 4, 5)):
        _passed(store, number, seed=seed)
    run = _now(store, seed=9)
    assert _with(store, run, LOSS) == ["run-0", "run-1", "run-2", "run-4", "run-5"]
    assert _with(store, run, LOSS, seeds=6) == []
    # Once the seed itself has enough runs, only these count.
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
    store.documents.put("run-1", IncomparableDocument(why="--diagnose"))
    run = _now(store)
    assert _with(store, run, SPEED) == ["run-0"]
    store.documents.put(run.id, IncomparableDocument(why="--diagnose"))
    assert past_runs(store, run, {}, limit=20) == ()


@pytest.mark.parametrize(
    ("key", "depends"),
    [
        (LOSS, True),
        (MetricKey(TRAIN, "", "G_loss"), True),
        (MetricKey("eval", "", "eval.top1"), True),
        (SPEED, False),
        (MetricKey(TRAIN, "", "peak_rss.rank0"), False),
    ],
)
def test_losses_and_accuracies_depend_on_the_seed(key: str, depends: bool) -> None:
    assert depends_on_seed(key) is depends


def _before(store: Store, run: Run) -> str:
    context = build_check_context(store, run, rules=Policy(name="x"), references=References(suite="s"))
    return context.before.run if context.before else ""


def test_declarations_do_not_require_a_passed_run(store: Store) -> None:
    """A leg that has failed in each run of the base can be removed, too."""
    record_run(store, a_run("failed", created_at=T0), status=Status.FAILED)
    record_run(store, a_run("elsewhere", created_at=T0 + 1, environment="gpu"), status=Status.UNCONFIRMED)
    record_run(store, a_run("stopped", created_at=T0 + 2), status=Status.CANCELLED)
    record_run(store, a_run("confirmed", created_at=T0 + 3, trigger="confirm"), status=Status.PASS)
    record_run(store, a_run("later", created_at=T0 + 200), status=Status.FAILED)
    assert _before(store, _now(store)) == "elsewhere"
    _passed(store, -1)
    assert _before(store, store.runs.get("now")) == "run--1", "an accepted run comes first, however old"


def test_change_is_compared_with_its_merge_base(store: Store) -> None:
    record_run(store, a_run("base", created_at=T0, suite_commit="b" * 40), status=Status.FAILED)
    record_run(store, a_run("other", created_at=T0 + 1, suite_commit="c" * 40), status=Status.FAILED)
    run = _now(store, suite_commit="d" * 40)
    store.documents.put(run.id, MergeBaseDocument(commit="b" * 40, commits=("b" * 40,)))
    assert _before(store, run) == "base"
    store.documents.put(run.id, IncomparableDocument(why="no merge base"))
    assert _before(store, run) == ""


def test_unconfirmed_runs_are_evidence_only_with_a_confirm_run(store: Store) -> None:
    """They follow the accepted run before them; a change of its own line does not see them."""
    for number in (0, 1, 4):
        _passed(store, number)
    for number in (2, 3, 5):
        doubtful = record_run(store, a_run(f"run-{number}", created_at=T0 + number), status=Status.UNCONFIRMED)
        store.measurements.add(losses(doubtful.id, [0.06], metric="batch_cost", unit="s"))
        facts = store.history.facts(doubtful.id)
        store.history.cache_numbers(doubtful.id, facts.measurements, {SPEED: (0.07,)} if number != 3 else {})
    run = _now(store)
    context = build_check_context(store, run, rules=Policy(name="p"), references=References(suite="s"))
    assert {before: [one.run for one in ones] for before, ones in context.doubtful.items()} == {
        "run-1": ["run-2"],
        "run-4": ["run-5"],
    }
    assert [(one.value, one.confirm, one.accepted) for one in context.observed(SPEED)] == [
        (0.05, None, True),
        (0.05, None, True),
        (0.06, 0.07, False),
        (0.05, None, True),
        (0.06, 0.07, False),
    ]
    store.documents.put(run.id, MergeBaseDocument(commit="b" * 40, commits=("b" * 40,)))
    assert not build_check_context(store, run, rules=Policy(name="p"), references=References(suite="s")).doubtful
