"""The results of one check over a line's runs."""

from typing import Any

from tests.support.stories import T0, a_run

from tipcflow.domain import CheckResult, Status
from tipcflow.domain.run_documents import MergeBaseDocument, QuarantinedDocument
from tipcflow.store import Store


def put(store: Store, number: int, check: str = "parity.onednn", **fields: Any) -> str:
    known = {"chain": "s/a/f", "environment": "cpu", "suite_commit": f"c{number}", "created_at": T0 + number}
    ended = {"status": Status.PASS, "ended_at": T0 + number + 0.5}
    run = a_run(f"r{number}", **(known | ended | fields))
    store.runs.create(run)
    results = [
        CheckResult(check=check, status=Status.PASS, reason=f"{leg} {number}", step="v/infer", leg=leg)
        for leg in ("cpu", "gpu")
    ]
    store.checks.replace(run.id, results)
    return run.id


def test_the_newest_runs_with_the_check(store: Store) -> None:
    put(store, 1)
    put(store, 2, check="loss.falling")
    put(store, 3)
    checked = store.check_history.of_line("s/a/f", a_run().mode, "cpu", "parity.onednn")
    assert [each.run.id for each in checked] == ["r3", "r1"]
    assert [result.reason for result in checked[0].results] == ["cpu 3", "gpu 3"]
    assert checked[0].tested == ("", "c3", "")


def test_other_lines_and_side_runs_are_left_out(store: Store) -> None:
    for number, fields in enumerate(
        (
            {"chain": "s/b/f"},
            {"mode": "other"},
            {"environment": "gpu"},
            {"trigger": "confirm"},
            {"trigger": "bisect"},
            {"status": None, "ended_at": None},
            {"status": Status.CANCELLED},
        )
    ):
        put(store, number, **fields)
    store.documents.put(put(store, 9), MergeBaseDocument(commit="c1"))
    assert store.check_history.of_line("s/a/f", a_run().mode, "cpu", "parity.onednn") == []


def test_runs_with_quarantined_failures(store: Store) -> None:
    ids = [put(store, number) for number in range(3)]
    store.documents.put(ids[1], QuarantinedDocument(numbers=(4,)))
    assert store.check_history.quarantined(ids) == {"r1"}
    assert store.check_history.quarantined(["r0"]) == store.check_history.quarantined([]) == set()
