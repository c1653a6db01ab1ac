"""Runs of one chain side by side, from a real database."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.precedents import put_run, weeks
from tests.support.stories import TRAIN, open_store

from tipcflow.config.policy import Policy
from tipcflow.config.run_documents import PolicyDocument, SuiteDocument
from tipcflow.config.suite import Suite
from tipcflow.domain import ConfigError, Run, Status
from tipcflow.execute.comparison.load import accepted_history, compare_runs
from tipcflow.execute.comparison.predecessors import Predecessors, predecessors_of
from tipcflow.report.comparison.metrics import UNKNOWN, WORSE
from tipcflow.report.comparison.model import Basis, Comparison
from tipcflow.report.comparison.tables import noise_of_history
from tipcflow.store import Store

CONFIGS = Path(__file__).parents[4] / "configs"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "t.db") as opened:
        yield opened


def compared(store: Store, *names: str, policy: str = "weekly") -> Comparison:
    return compare_runs(store, names, config_dir=CONFIGS, policy=policy)


def test_comparison_lists_differences_and_regressions(store: Store) -> None:
    weeks(store, 12)
    put_run(store, 12, status=Status.REGRESSION, slower=1.3, nodes=("node-a", "node-c"))
    made = compared(store, "run-11", "latest")
    assert [own.run.id for own in made.runs] == ["run-11", "run-12"]
    differing = {row.name: row.values for row in made.facts if row.differs}
    assert differing["nodes"] == ("node-a, node-b", "node-a, node-c")
    assert differing["framework"] == ("paddle 3.4.0", "paddle 3.3.1")
    first = made.metrics[0]
    assert (first.step, first.metric, first.verdicts) == (TRAIN, "batch_cost", (WORSE,))
    assert first.runs == 12
    assert first.score is not None
    assert first.score > 20
    assert (made.history, made.policy, made.basis) == (12, "weekly", (Basis.SAME,))
    assert [(row.check, row.statuses) for row in made.checks if row.differs] == [
        ("speed.batch_cost", ("pass", "regression"))
    ]
    assert [row.statuses for row in made.legs] == [("pass", "pass")] * 2


def test_comparison_of_three_runs(store: Store) -> None:
    weeks(store, 3)
    made = compared(store, "run-00", "run-01", "run-02")
    assert {len(row.values) for row in made.metrics} == {3}
    assert {len(row.changes) for row in made.metrics} == {2}
    assert {row.verdicts for row in made.metrics} == {(UNKNOWN, UNKNOWN)}
    assert noise_of_history(made) == "noise unknown: 3 accepted runs, 8 needed"


def test_comparison_names_the_keys_of_suite_files_that_differ(store: Store) -> None:
    weeks(store, 2)
    suite = Suite(name="s", folder="/s", dialects=("d",), data_recipe="from here")
    store.documents.put("run-00", SuiteDocument(suite))
    store.documents.put("run-01", SuiteDocument(suite.model_copy(update={"data_recipe": "from there"})))
    same = {row.name: row for row in compared(store, "run-00", "run-01").facts}
    assert not same["suite file"].differs
    store.documents.put("run-01", SuiteDocument(suite.model_copy(update={"budget_minutes": 9.0})))
    differing = {row.name: row.values for row in compared(store, "run-00", "run-01").facts if row.differs}
    assert differing["suite file: budget_minutes"] == ("", "9.0")
    assert len(set(differing["suite file"])) == 2


def test_limits_follow_the_policy_of_the_run(store: Store) -> None:
    weeks(store, 8)
    coarse = Policy(name="coarse").model_copy(update={"z": 500.0})
    store.documents.put("run-07", PolicyDocument(coarse))
    assert compared(store, "run-00", "run-07", policy="").policy == "coarse"


def test_other_environments_are_listed_and_not_evaluated(store: Store) -> None:
    weeks(store, 8)
    put_run(store, 8, environment="cpu/other-cpu/2-nodes/4-ranks", slower=2.0)
    put_run(store, 9, mode="whole_train_whole_infer", slower=2.0)
    for name, basis in (("run-08", Basis.OTHER_ENVIRONMENT), ("run-09", Basis.OTHER_MODE)):
        made = compared(store, "run-07", name)
        assert made.basis == (basis,)
        assert made.notes[0] == f"Changes of {name} are not evaluated: {basis.value} than run-07."
        assert {row.verdicts for row in made.metrics} == {("",)}
        assert made.metrics[0].changes[0] == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["run-00"], "number of runs; found '1'; expected 2 or 3"),
        (["run-00"] * 4, "number of runs; found '4'; expected 2 or 3"),
        (["run-00", "run-0"], "2 runs have this prefix"),
        (["run-00", "run-00"], "a run cannot be compared with itself; found 'run-00'"),
        (["run-00", "nothing"], "no such run"),
        (
            ["run-00", "other"],
            "runs of different chains cannot be compared; found 'run-00 of sample/mobilenet_v3_small/"
            "train_infer_python, other-1 of s/x/y'; expected runs of one chain",
        ),
    ],
)
def test_incomparable_runs_are_an_error(store: Store, names: list[str], message: str) -> None:
    weeks(store, 2)
    store.runs.create(Run(**(store.runs.get("run-00").model_dump() | {"id": "other-1", "chain": "s/x/y"})))
    with pytest.raises(ConfigError) as error:
        compared(store, *names)
    assert message in str(error.value)


def test_accepted_history_includes_the_latest_run(store: Store) -> None:
    runs = weeks(store, 3)
    history = accepted_history(store, runs[-1], Policy(name="p"))
    assert [past.run for past in history] == ["run-00", "run-01", "run-02"]
    assert not any(past.losses for past in history), "curves are not read"


def test_predecessors_of_a_run_are_found(store: Store) -> None:
    weeks(store, 2)
    failed = put_run(store, 2, status=Status.REGRESSION)
    latest = put_run(store, 3)
    assert predecessors_of(store, latest) == Predecessors("run-01", "run-02")
    assert predecessors_of(store, failed) == Predecessors("run-01", "run-01")
    assert predecessors_of(store, store.runs.get("run-00")).best == ""
    elsewhere = put_run(store, 4, environment="gpu/x")
    assert predecessors_of(store, elsewhere).best == "run-03"
