"""What a user sees of a run that is measured again, and of the run that does it."""

import time

from fastapi.testclient import TestClient
from tests.support.documents import request_document
from tests.support.stories import TRAIN, a_run, record_run
from tests.ui.html_text import read

from tipcflow.domain import PartKey, Run, Status
from tipcflow.domain.run_documents import ConfirmationDocument, MergeBaseDocument
from tipcflow.execute.verdict import confirm
from tipcflow.store import Store

RUNS = "/certification/runs"


def in_doubt(store: Store, until: float) -> tuple[Run, Run]:
    run = record_run(store, a_run(created_at=time.time() - 60), status=None)
    again = a_run("again", trigger="confirm", created_at=time.time())
    store.runs.create(again)
    store.documents.put(again.id, request_document(confirms=run.id))
    store.documents.put(run.id, ConfirmationDocument(run=again.id, keys=(TRAIN,), until=until))
    return run, again


def test_run_page_shows_the_awaited_confirm_run_and_its_deadline(
    browser: TestClient, machine: TestClient, store: Store
) -> None:
    until = time.time() + 300
    run, again = in_doubt(store, until)
    shown = browser.get(f"{RUNS}/{run.id}").text
    assert "Suspected regression in train: the verdict waits for a confirm run, until" in read(shown).text
    assert f'href="/certification/runs/{again.id}">confirm run</a>' in shown
    report = machine.get(f"/certification/api/runs/{run.id}").json()
    assert report["run"]["status"] is None
    requested = {"run": again.id, "keys": [TRAIN], "until": until, "refused": "", "dag_run_id": ""}
    assert requested.items() <= report["confirming"].items()


def test_the_confirm_run_names_the_run_that_waits(browser: TestClient, store: Store) -> None:
    run, again = in_doubt(store, time.time() + 300)
    shown = browser.get(f"{RUNS}/{again.id}").text
    assert "This is a confirm run" in read(shown).text
    assert f'href="/certification/runs/{run.id}">another run</a>' in shown


def test_afterwards_the_confirm_run_is_still_found(browser: TestClient, machine: TestClient, store: Store) -> None:
    run, again = in_doubt(store, time.time() + 300)
    confirm.cancel_request(store, run.id, "the DAG confirm is paused")
    store.runs.finish(run.id, Status.PASS, "", time.time())
    shown = browser.get(f"{RUNS}/{run.id}").text
    assert "Suspected regression in train, re-measured by a confirm run" in read(shown).text
    assert "Not awaited: the DAG confirm is paused" in read(shown).text
    assert again.id in shown
    assert machine.get(f"/certification/api/runs/{run.id}").json()["confirming"] is None


def test_a_change_names_its_reference(browser: TestClient, store: Store) -> None:
    run = record_run(store)
    store.documents.put(run.id, MergeBaseDocument(commit="0123456789abcdef", commits=("0123456789abcdef",)))
    assert "runs up to the merge base 0123456789ab" in read(browser.get(f"{RUNS}/{run.id}").text).text


def test_run_page_links_all_confirm_runs(browser: TestClient, machine: TestClient, store: Store) -> None:
    until = time.time() + 300
    run, again = in_doubt(store, until)
    store.runs.create(a_run("third", trigger="confirm", created_at=time.time()))
    earlier = (again.id, "second")
    store.documents.put(run.id, ConfirmationDocument(run="third", keys=(TRAIN,), until=until, earlier=earlier))
    shown = browser.get(f"{RUNS}/{run.id}").text
    words = read(shown).text
    assert "in train, shown by 2 confirm runs: the verdict waits for a further confirm run, until" in words
    for number, name in enumerate((*earlier, "third"), 1):
        assert f'href="/certification/runs/{name}">confirm run {number}</a>' in shown
    assert machine.get(f"/certification/api/runs/{run.id}").json()["confirming"]["earlier"] == list(earlier)
    store.runs.finish(run.id, Status.PASS, "", time.time())
    assert (
        "Suspected regression in train, re-measured by 3 confirm runs"
        in read(browser.get(f"{RUNS}/{run.id}").text).text
    )


def test_run_page_of_a_bisection_names_the_executed_steps(browser: TestClient, store: Store) -> None:
    run = record_run(store, a_run("part", trigger="bisect"))
    store.documents.put(run.id, request_document(only=(PartKey(TRAIN),)))
    words = read(browser.get(f"{RUNS}/{run.id}").text).text
    assert f"This run of a bisection executes only {TRAIN} and the steps that it needs" in words
    assert "its status is not that of the chain" in words
