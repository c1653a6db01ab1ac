"""Release after clean runs on newer commits; what does not count as one; marks of runs."""

from typing import Any

import pytest
from tests.support.stories import T0, a_run, open_store

from tipcflow.domain import CheckResult, Status
from tipcflow.domain.quarantine.entry import Quarantine
from tipcflow.domain.run_documents import MergeBaseDocument, QuarantinedDocument
from tipcflow.execute.quarantine.applied import note_quarantined
from tipcflow.execute.quarantine.release import progress_of, release_all_clean, release_clean
from tipcflow.store import Store

DAY = 86_400.0
# A year before the runs of other tests: quarantines are in force by the real clock.
BEGIN = T0 - 365 * DAY
GREEN, RED = Status.PASS, Status.FAILED


def put(store: Store, number: int, *statuses: Status, **fields: Any) -> str:
    """A run with one result per status, of the check's first repeats."""
    known = {"environment": "cpu", "suite_commit": f"c{number}", "created_at": BEGIN + number * DAY}
    ended = {"status": Status.PASS, "ended_at": BEGIN + number * DAY + 60}
    run = a_run(f"run-{number}", **(known | ended | fields))
    store.runs.create(run)
    results = [
        CheckResult(
            check="parity.onednn",
            status=status,
            reason="class 3 instead of 5",
            step=f"v{f'_repeat_{index}' if index else ''}/infer_cpu",
            values={"max_abs": 0.5, "code": "other_class"},
        )
        for index, status in enumerate(statuses)
    ]
    store.checks.replace(run.id, results)
    return run.id


@pytest.fixture
def store(tmp_path: Any) -> Any:
    with open_store(tmp_path / "tipcflow.db") as opened:
        yield opened


@pytest.fixture
def made(store: Store) -> Quarantine:
    """Of a chain that failed once in nine runs, on commit c9: 29 clean runs end it."""
    put(store, 9, RED)
    quarantine = Quarantine(
        chain=a_run().chain,
        mode=a_run().mode,
        environment="cpu",
        check="parity.onednn",
        step="v/infer_cpu",
        signature="other_class",
        largest=0.5,
        owner="kernels",
        who="mia",
        why="known bug",
        run="run-9",
        failed=1,
        judged=9,
        created_at=BEGIN + 9.5 * DAY,
        expires_at=BEGIN + 10_000 * DAY,
    )
    return store.quarantines.add(quarantine, per_day=1)


def clean(store: Store, made: Quarantine) -> int:
    return progress_of(store, made).clean


def test_quarantine_ends_with_the_last_clean_run(store: Store, made: Quarantine) -> None:
    assert made.clean_runs == 29
    for number in range(28):
        put(store, 10 + number, GREEN)
    release_clean(store, store.runs.get("run-37"))
    assert store.quarantines.get(1).released_at is None
    put(store, 38, GREEN)
    release_clean(store, store.runs.get("run-9").model_copy(update={"environment": "gpu"}))
    assert store.quarantines.get(1).released_at is None, "another environment class"
    release_all_clean(store)
    ended = store.quarantines.get(1)
    assert ended.released_by == "tipcflow"
    assert ended.released_because == "29 consecutive clean runs on newer commits; 29 required"
    assert not ended.is_active(store.now())


def test_a_failure_starts_the_count_again(store: Store, made: Quarantine) -> None:
    for number, status in enumerate((GREEN, GREEN, RED, GREEN)):
        put(store, 10 + number, status)
    progress = progress_of(store, made)
    assert (progress.clean, progress.failed) == (1, ("run-12",))


def test_an_unconfirmed_result_is_not_clean(store: Store, made: Quarantine) -> None:
    put(store, 10, GREEN)
    put(store, 11, Status.UNCONFIRMED)
    assert clean(store, made) == 0


def test_every_repeat_must_be_clean(store: Store, made: Quarantine) -> None:
    put(store, 10, GREEN, GREEN)
    assert clean(store, made) == 1
    put(store, 11, GREEN, RED)
    assert clean(store, made) == 0


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        (GREEN, {"suite_commit": "c9"}),
        (Status.INSUFFICIENT_DATA, {}),
        (Status.NOT_RUN, {}),
        (GREEN, {"created_at": BEGIN + 9.4 * DAY}),
        (GREEN, {"environment": "gpu"}),
        (GREEN, {"mode": "other"}),
        (GREEN, {"trigger": "confirm"}),
        (GREEN, {"trigger": "bisect"}),
        (GREEN, {"status": Status.CANCELLED}),
        (GREEN, {"status": None, "ended_at": None}),
    ],
)
def test_runs_that_do_not_count_as_clean(
    store: Store, made: Quarantine, status: Status, fields: dict[str, Any]
) -> None:
    put(store, 10, GREEN)
    put(store, 11, status, **fields)
    assert clean(store, made) == 1


def test_a_new_framework_build_is_new_code(store: Store, made: Quarantine) -> None:
    put(store, 10, GREEN, suite_commit="c9", framework="paddlepaddle 3.4")
    assert clean(store, made) == 1


def test_unmerged_change_does_not_count(store: Store, made: Quarantine) -> None:
    store.documents.put(put(store, 10, GREEN), MergeBaseDocument(commit="c9"))
    assert clean(store, made) == 0


def test_a_run_is_marked_and_unmarked(store: Store) -> None:
    run = put(store, 1, RED)
    results = store.checks.results(run)
    note_quarantined(store, run, [result.model_copy(update={"values": {"quarantine": 7}}) for result in results])
    assert store.documents.get(run, QuarantinedDocument) == QuarantinedDocument(numbers=(7,))
    note_quarantined(store, run, results)
    assert store.documents.get(run, QuarantinedDocument) is None


def test_the_history_does_not_learn_from_marked_runs(store: Store) -> None:
    for number in range(3):
        put(store, number, GREEN)
    store.documents.put("run-1", QuarantinedDocument(numbers=(7,)))
    assert store.history.accepted(a_run().chain, a_run().mode, "cpu") == ["run-2", "run-0"]
