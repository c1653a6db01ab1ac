"""Changed metrics: where they began, with which change of framework and suite, and whether they last."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.stories import T0, TRAIN, a_run, open_store

from devcluster.sample_history.fill import fill
from tipcflow.domain import CheckResult, Status
from tipcflow.domain.run_documents import MergeBaseDocument
from tipcflow.execute.overview.changes import Wanted, load_changes
from tipcflow.report.overview.changes import Changes
from tipcflow.store import Store
from tipcflow.store.baselines import Baseline

DAY = 86_400
NOW = T0 + 20 * DAY
R, B, U, P, F = Status.REGRESSION, Status.IMPROVEMENT, Status.UNCONFIRMED, Status.PASS, Status.FAILED


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "own.db") as store:
        yield store


def put(
    store: Store, day: int, status: Status, chain: str = "s/alpha/a", *, ratio: float = 1.1, **fields: object
) -> str:
    """Store a run of that day; its check of batch_cost has the run's status."""
    known = {
        "chain": chain,
        "suite": chain.split("/")[0],
        "framework": f"paddle {day // 4}",
        "suite_commit": "c" * 40,
    }
    known |= {"created_at": T0 + day * DAY, "ended_at": T0 + day * DAY + 9, "environment": "gpu"}
    run = a_run(f"{chain.split('/')[1]}-{day:02}", status=status, **(known | fields))
    store.runs.create(run)
    alert = CheckResult(
        check="speed.batch_cost",
        status=status,
        reason="slower",
        step=TRAIN,
        metric="batch_cost",
        values={"ratio": ratio},
    )
    store.checks.replace(run.id, [alert])
    return run.id


def report(changes: Changes) -> list[tuple[str, str, str, int, str]]:
    return [(row.first, row.last_good, row.newest, row.runs, row.state) for row in changes.rows]


def test_change_begins_after_the_last_run_without_the_problem(store: Store) -> None:
    put(store, 1, P)
    put(store, 4, U, ratio=1.2)
    put(store, 5, R, ratio=1.3)
    changes = load_changes(store, now=NOW)
    assert report(changes) == [("alpha-04", "alpha-01", "alpha-05", 2, "open")]
    (group,), (row,) = changes.groups, changes.rows
    assert (group.title, group.suite, group.worse, group.still) == ("framework 0 -> 1", "", 1, 1)
    assert (row.status, row.direction, round(row.percent or 0)) == (R, "worse", 20)
    assert changes.sentence == (
        "1 chain became worse with 1 change of framework or suite (1 still worse) in the last 30 days"
    )


def test_evaluated_run_without_the_change_ends_the_change(store: Store) -> None:
    for day, status in enumerate((P, R, F, R, P, R)):
        put(store, day, status)
    assert report(load_changes(store, now=NOW)) == [
        ("alpha-05", "alpha-04", "alpha-05", 1, "open"),
        ("alpha-01", "alpha-00", "alpha-03", 2, "over"),
    ]


def test_directions_and_lines_are_apart(store: Store) -> None:
    put(store, 0, P)
    put(store, 1, R)
    put(store, 2, B, ratio=0.8)
    put(store, 1, P, "s/beta/a")
    put(store, 2, R, "s/beta/a", environment="cpu")
    changes = load_changes(store, now=NOW)
    assert sorted((row.chain, row.direction, row.state) for row in changes.rows) == [
        ("s/alpha/a", "better", "open"), ("s/alpha/a", "worse", "over"), ("s/beta/a", "worse", "open"),
    ]  # fmt: skip
    assert [row.last_good for row in changes.rows if row.chain == "s/beta/a"] == [""]


def test_chains_that_began_with_the_same_change_are_one_group(store: Store) -> None:
    for chain in ("s/alpha/a", "s/beta/a", "t/gamma/a"):
        put(store, 3, P, chain)
        put(store, 4, R, chain, **({"suite_commit": "d" * 40} if chain.startswith("t") else {}))
    groups = load_changes(store, now=NOW).groups
    assert [(group.title, group.suite, group.worse) for group in groups] == [
        ("framework 0 -> 1", "", 2),
        ("framework 0 -> 1, suite ccccccc -> ddddddd", "t", 1),
    ]


def test_changes_that_began_before_the_period_are_left_out(store: Store) -> None:
    put(store, 1, P)
    put(store, 2, R)
    put(store, 18, R)
    assert report(load_changes(store, days=10, now=NOW)) == []
    assert load_changes(store, days=10, now=NOW).sentence == "no metric changed in the last 10 days"


@pytest.mark.parametrize("fields", [{"trigger": "confirm"}, {"trigger": "bisect"}])
def test_side_runs_begin_no_change(store: Store, fields: dict[str, object]) -> None:
    put(store, 1, P)
    put(store, 2, R, **fields)
    assert report(load_changes(store, now=NOW)) == []


def test_runs_of_pull_requests_begin_no_change(store: Store) -> None:
    put(store, 1, P)
    store.documents.put(put(store, 2, R), MergeBaseDocument(commit="c", commits=("c",)))
    assert report(load_changes(store, now=NOW)) == []


def test_decision_accepts_a_change(store: Store) -> None:
    put(store, 1, P)
    run = put(store, 2, R)
    known = {"chain": "s/alpha/a", "mode": "lite_train_lite_infer", "step": TRAIN, "environment": "gpu"}
    accepted = Baseline(
        **known, metric="batch_cost", value=1.0, run=run, who="eva", why="agreed", accepted_at=T0 + 3 * DAY
    )
    store.baselines.accept_one(accepted.model_copy(update={"metric": "ips"}))
    assert report(load_changes(store, now=NOW))[0][-1] == "open"
    store.baselines.accept_one(accepted)
    (row,) = load_changes(store, now=NOW).rows
    assert (row.state, row.who, row.why) == ("accepted", "eva", "agreed")
    assert load_changes(store, Wanted(state="open"), now=NOW).rows == ()


@pytest.mark.parametrize(
    ("wanted", "chains"),
    [
        (Wanted(), ["s/alpha/a", "t/beta/a"]),
        (Wanted(suite="t"), ["t/beta/a"]),
        (Wanted(chain="ALPHA"), ["s/alpha/a"]),
        (Wanted(direction="better"), ["t/beta/a"]),
        (Wanted(state="over"), []),
    ],
)
def test_changes_are_filtered(store: Store, wanted: Wanted, chains: list[str]) -> None:
    put(store, 1, R)
    put(store, 1, B, "t/beta/a")
    assert sorted(row.chain for row in load_changes(store, wanted, now=NOW).rows) == chains


@pytest.mark.slow
def test_the_sample_history_has_changes_with_the_newest_build(tmp_path: Path) -> None:
    open_store(tmp_path / "history.db").close()
    fill(f"sqlite:///{tmp_path / 'history.db'}", lambda line: None, now=NOW, weeks=5, chains=20)
    with Store.open(f"sqlite:///{tmp_path / 'history.db'}") as history:
        changes = load_changes(history, now=NOW)
    assert changes.groups[0].title.startswith("framework ")
    assert {"ResNet18", "ResNet101"} <= {row.chain.split("/")[1] for row in changes.groups[0].changes}
    assert {row.ratio for row in changes.groups[0].changes} == {1.11}
