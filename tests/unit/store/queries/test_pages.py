"""Lists for pages: newest first, filtered, a page at a time, and never more of a run than a list shows."""

import math
from typing import Any

import pytest
from tests.support.stories import INFER, T0, TRAIN, a_plan, a_run, losses, record_run

from tipcflow.domain import Measurement, MetricKey, Phase, Status
from tipcflow.store import Store
from tipcflow.store.queries.pages import REASON, ChainRow, RunFilter, _latest, _strips
from tipcflow.store.queries.readonly import ReadonlyStore


@pytest.fixture
def pages(store: Store, database_url: str) -> ReadonlyStore:
    return ReadonlyStore.of(database_url)


def put(store: Store, number: int, chain: str, status: Status | None = Status.PASS, **fields: object) -> str:
    known = {"reason": "", "ended_at": T0 + number + 5 if status else None, "status": status}
    run = a_run(f"r{number:03}", chain=chain, created_at=T0 + number, **(known | fields))
    store.runs.create(run)
    return run.id


@pytest.fixture
def three_chains(store: Store) -> None:
    """alpha: pass, failed, pass; beta: pass, failed; gamma: running."""
    put(store, 1, "s/alpha/a")
    put(store, 2, "s/beta/a")
    put(store, 3, "s/alpha/a", Status.FAILED, reason="nan in the loss")
    put(store, 4, "s/alpha/a")
    put(store, 5, "s/beta/a", Status.FAILED, reason="exit code 7")
    put(store, 6, "t/gamma_100%/a", None, suite="other")


def shown(pages: ReadonlyStore, wanted: RunFilter, **options: Any) -> list[tuple[str, str, list[str]]]:
    rows: tuple[ChainRow, ...] = pages.pages.chains(wanted, **({"limit": 50} | options)).rows
    return [(row.chain, row.latest.id, [past.id for past in row.history]) for row in rows]


ALPHA = ("s/alpha/a", "r004", ["r001", "r003", "r004"])
BETA = ("s/beta/a", "r005", ["r002", "r005"])
GAMMA = ("t/gamma_100%/a", "r006", ["r006"])


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (RunFilter(), [GAMMA, BETA, ALPHA]),
        (RunFilter(status="running"), [GAMMA]),
        (RunFilter(status="failed"), [BETA]),
        (RunFilter(status="pass", suite="sample"), [ALPHA]),
        (RunFilter(suite="nothing"), []),
        (RunFilter(text="BETA exit"), [BETA]),
        (RunFilter(text="nan"), []),
        (RunFilter(text="0%"), [GAMMA]),
        (RunFilter(text="_100"), [GAMMA]),
        (RunFilter(text="'; DROP TABLE runs; --"), []),
    ],
)
def test_chains_are_filtered_and_paged(
    three_chains: None, pages: ReadonlyStore, wanted: RunFilter, expected: list[object]
) -> None:
    assert shown(pages, wanted) == expected


def test_the_newest_run_of_a_chain_excludes_confirm_runs_and_bisections(
    three_chains: None, store: Store, pages: ReadonlyStore
) -> None:
    """A run of an old commit that passes does not make a chain green, nor does a confirm run of one step."""
    put(store, 7, "s/beta/a", trigger="bisect")
    put(store, 8, "s/alpha/a", Status.FAILED, trigger="confirm")
    put(store, 9, "t/only/bisected", trigger="bisect")
    assert shown(pages, RunFilter()) == [GAMMA, BETA, ALPHA]
    assert [run.id for run in pages.pages.runs(RunFilter(), limit=3).rows] == ["r009", "r008", "r007"]


def test_runs_are_divided_into_pages(three_chains: None, pages: ReadonlyStore) -> None:
    assert shown(pages, RunFilter(), limit=2) == [GAMMA, BETA]
    assert shown(pages, RunFilter(), limit=2, offset=2) == [ALPHA]
    assert shown(pages, RunFilter(), limit=2, offset=99) == []
    assert shown(pages, RunFilter(), history=2)[2] == ("s/alpha/a", "r004", ["r003", "r004"])


def test_counts_ignore_the_status_filter(three_chains: None, pages: ReadonlyStore) -> None:
    listed = pages.pages.chains(RunFilter(status="failed"), limit=50)
    assert (listed.total, listed.counts) == (1, {"running": 1, "failed": 1, "pass": 1})
    listed = pages.pages.runs(RunFilter(status="failed"), limit=50)
    assert (listed.total, listed.counts) == (2, {"running": 1, "failed": 2, "pass": 3})
    assert [run.id for run in listed.rows] == ["r005", "r003"]


def test_the_worst_chains_are_first(three_chains: None, pages: ReadonlyStore) -> None:
    assert shown(pages, RunFilter(), order="worst") == [BETA, GAMMA, ALPHA]
    assert shown(pages, RunFilter(), order="worst", limit=1, offset=1) == [GAMMA]


def test_chains_are_sorted_by_name_and_duration(store: Store, pages: ReadonlyStore) -> None:
    for number, (chain, seconds) in enumerate((("s/b/a", 30), ("s/a/a", 90), ("s/c/a", 60))):
        put(store, number, chain, ended_at=T0 + number + seconds)
    put(store, 9, "s/d/a", None)
    assert [row[0] for row in shown(pages, RunFilter(), order="chain")] == ["s/a/a", "s/b/a", "s/c/a", "s/d/a"]
    assert [row[0] for row in shown(pages, RunFilter(), order="longest")] == ["s/a/a", "s/c/a", "s/b/a", "s/d/a"]


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        (RunFilter(mode="whole_infer"), ["r2"]),
        (RunFilter(cluster="other"), ["r1"]),
        (RunFilter(environment="gpu/8"), ["r2"]),
        (RunFilter(build="paddle 3.4"), ["r1"]),
        (RunFilter(node="node-1"), ["r1"]),
        (RunFilter(node='"'), []),
        (RunFilter(since=T0 + 1.5), ["r3", "r2"]),
        (RunFilter(until=T0 + 1.5), ["r1"]),
        (RunFilter(since=T0 + 1.5, until=T0 + 2.5), ["r2"]),
    ],
)
def test_runs_and_chains_are_filtered_by_their_properties(
    store: Store, pages: ReadonlyStore, wanted: RunFilter, ids: list[str]
) -> None:
    given: tuple[dict[str, Any], ...] = (
        {"cluster": "other", "framework": "paddle 3.4", "nodes": ("node-1",)},
        {"mode": "whole_infer", "environment": "gpu/8", "nodes": ("node-11",)},
        {},
    )
    for number, fields in enumerate(given, 1):
        store.runs.create(a_run(f"r{number}", chain=f"s/m{number}/a", created_at=T0 + number, **fields))
    assert [run.id for run in pages.pages.runs(wanted, limit=5).rows] == ids
    assert [row[1] for row in shown(pages, wanted)] == ids
    choices = pages.pages.choices()
    assert choices["cluster"] == ["local", "other"]
    assert "whole_infer" in choices["mode"]
    assert "gpu/8" in choices["environment"]
    assert "paddle 3.4" in choices["build"]


def test_a_text_that_many_runs_match(
    three_chains: None, pages: ReadonlyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [pages.pages.runs(RunFilter(text="ALPHA", status=status), limit=2) for status in ("", "pass", "failed")]
    assert few[0].counts == {"pass": 2, "failed": 1}
    assert [[run.id for run in listed.rows] for listed in few] == [["r004", "r003"], ["r004", "r001"], ["r003"]]
    monkeypatch.setattr("tipcflow.store.queries.pages._FEW", 2)
    assert few == [
        pages.pages.runs(RunFilter(text="ALPHA", status=status), limit=2) for status in ("", "pass", "failed")
    ]


def test_runs_are_listed_newest_first_by_page(three_chains: None, pages: ReadonlyStore) -> None:
    listed = pages.pages.runs(RunFilter(chain="s/alpha/a"), limit=2, offset=1)
    assert ([run.id for run in listed.rows], listed.total) == (["r003", "r001"], 3)
    assert pages.runs.suites() == ["other", "sample"]


def test_two_runs_of_a_chain_in_the_same_instant(store: Store, pages: ReadonlyStore) -> None:
    for run_id in ("a", "b"):
        store.runs.create(a_run(run_id))
    assert shown(pages, RunFilter()) == [(a_run().chain, "b", ["a", "b"])]


def test_runs_with_equal_times_respect_the_limit(store: Store, pages: ReadonlyStore) -> None:
    for run_id in ("d", "a", "c", "b"):
        store.runs.create(a_run(run_id))
    assert shown(pages, RunFilter(), history=2) == [(a_run().chain, "d", ["c", "d"])]


@pytest.mark.parametrize("kind", ["sqlite"])  # PostgreSQL reads all of so few rows, whatever indexes exist
def test_no_question_about_chains_reads_all_runs(three_chains: None, pages: ReadonlyStore) -> None:
    """It costs as much as there are chains: with 26,000 runs that is the difference."""
    with pages.database.read() as connection:
        for query in (_latest(RunFilter(), "sqlite"), _strips(20).params(ids=["r004", "r005"])):
            text = query.compile(connection.engine, compile_kwargs={"literal_binds": True})
            plan = [row[-1] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}")]
            assert any("ix_runs_chain_created_at_id" in line for line in plan)
            assert [line for line in plan if line.startswith("SCAN runs")] == []


@pytest.mark.slow
def test_huge_reason_is_cut_in_lists_only(store: Store, pages: ReadonlyStore) -> None:
    put(store, 1, "s/alpha/a", Status.FAILED, reason="x" * 2_000_000)
    assert len(pages.pages.chains(RunFilter(), limit=5).rows[0].latest.reason) == REASON
    assert len(pages.pages.runs(RunFilter(), limit=5).rows[0].reason) == REASON
    run = pages.runs.get_or_none("r001")
    assert run is not None
    assert len(run.reason) == 2_000_000


def test_empty_database_has_empty_lists(store: Store, pages: ReadonlyStore) -> None:
    assert pages.pages.chains(RunFilter(), limit=5).rows == ()
    assert pages.pages.runs(RunFilter(), limit=5).rows == ()
    assert pages.runs.get_or_none("nothing") is None


def test_losses_and_medians_are_of_the_last_attempt(store: Store, pages: ReadonlyStore) -> None:
    run = a_run()
    store.runs.create(run, a_plan())
    for attempt, values in ((1, [9.0]), (2, [2.0, math.nan, math.inf])):
        number = store.attempts.open(run.id, TRAIN, run.nodes, T0)
        store.measurements.add(losses(run.id, values, attempt=number))
        store.attempts.close(run.id, TRAIN, attempt, Status.FAILED, "", (), T0 + 1)
    store.attempts.open(run.id, INFER, ["node-a"], T0)
    store.measurements.add(
        Measurement(
            run=run.id, step=INFER, leg="l", node="node-a", metric="inference_time", phase=Phase.INFER,
            ordinal=ordinal, value=value,
        )
        for ordinal, value in enumerate([5.0, 7.0, 100.0, math.nan])
    )  # fmt: skip
    assert [repr(one.value) for one in pages.pages.losses(run.id)] == ["2.0", "nan", "inf"]
    assert pages.summaries.leg_medians(run.id) == {MetricKey(INFER, "l", "inference_time"): 7.0}


def test_losses_of_a_recorded_run_are_returned(store: Store, pages: ReadonlyStore) -> None:
    run = record_run(store)
    assert [one.value for one in pages.pages.losses(run.id)] == [2.0, 1.0, 0.5]
