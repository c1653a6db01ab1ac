"""Runs that went wrong in every way that the database can hold: each has a page, JSON and a place in the lists."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text
from tests.support.stories import INFER, T0, TRAIN, a_plan, a_record, a_run, losses, record_run, some_facts
from tests.ui.html_text import read

from tipcflow.domain import CheckResult, Command, EndReason, Leg, Run, Status, Step, StepKind
from tipcflow.domain.run_documents import CertificateDocument, EngineDocument
from tipcflow.execute.events import event_writer
from tipcflow.execute.progress import Event, Kind
from tipcflow.report.api import RunFacts
from tipcflow.store import Store

_BREAKS_OUT = "\"'><img src=x onerror=alert(1)><script>alert(2)</script></td></table></section>"
HOSTILE = _BREAKS_OUT + "{{7*7}}&amp;\x00\x1b[31m\ud800"


def sql(store: Store, statement: str, **values: object) -> None:
    with store.database.write() as connection:
        connection.execute(text(statement), values)


def running_without_plan(store: Store, home: Path) -> Run:
    store.runs.create(a_run(nodes=()))
    return a_run()


def running(store: Store, home: Path) -> Run:
    run = a_run()
    store.runs.create(run, a_plan())
    store.attempts.open(run.id, TRAIN, run.nodes, T0 + 3)
    tell_event = event_writer(home, run.id)
    tell_event(Event(Kind.STEP_STARTED, step=TRAIN, node="node-a,node-b", at=T0 + 3))
    tell_event(Event(Kind.LOG, "[Epoch 1, iter: 7] loss: 0.5\n", step=TRAIN, node="node-a", at=T0 + 5))
    tell_event(Event(Kind.LEG, "crashed", step=INFER, node="node-a", leg="l", status=Status.FAILED, at=T0 + 5))
    with (home / "runs" / run.id / "events.jsonl").open("ab") as file:
        file.write(b'{"kind": "nonsense"}\n\xff\xfe\n{"kind": "note", "text": "half a li')
    return run


def cancelled(store: Store, home: Path) -> Run:
    run = a_run()
    store.runs.create(run, a_plan())
    number = store.attempts.open(run.id, TRAIN, run.nodes, T0 + 3)
    lost = [a_record(run.id, node="node-a", reason=EndReason.LOST, exit_code=None, started_at=0.0, ended_at=0.0)]
    store.attempts.close(run.id, TRAIN, number, Status.CANCELLED, "stopped by a user", lost, T0 + 2)
    store.steps.set(run.id, TRAIN, Status.CANCELLED, "stopped by a user")
    store.runs.finish(run.id, Status.CANCELLED, "stopped by a user", T0 - 100)
    return run


def no_steps(store: Store, home: Path) -> Run:
    run = a_run()
    store.runs.create(run, a_plan(steps=(), variants=()))
    store.runs.finish(run.id, Status.FAILED, "", T0)
    return run


def no_legs(store: Store, home: Path) -> Run:
    run = a_run()
    step = Step(id="infer", kind=StepKind.INFER_CPU, nodes=("node-a",))
    unassigned = Step(id="unassigned", kind=StepKind.EVAL, nodes=())
    store.runs.create(run, a_plan(steps=(step, unassigned)))
    store.runs.finish(run.id, Status.FAILED, "no leg", T0)
    return run


def not_finite(store: Store, home: Path) -> Run:
    run = record_run(store, a_run())
    number = store.attempts.open(run.id, TRAIN, run.nodes, T0 + 30)
    store.measurements.add(losses(run.id, [math.nan, math.inf, -math.inf] * 900, attempt=number))
    values = {"a": math.nan, "b": [math.inf, {"c": -math.inf}], "d": None}
    store.checks.replace(
        run.id, [CheckResult(check="loss.finite", status=Status.FAILED, reason="nan", values=values)]
    )
    return run


def huge(store: Store, home: Path) -> Run:
    run = record_run(store)
    checks = [
        CheckResult(check=f"c{number % 7}", status=Status.FAILED, reason="word " * 4000, values={"k": "v" * 9999})
        for number in range(120)
    ]
    store.checks.replace(run.id, checks)
    store.runs.finish(run.id, Status.FAILED, "; ".join(["x" * 20_000] * 100), T0 + 1)
    return run


def hostile(store: Store, home: Path) -> Run:
    run = a_run(
        chain=HOSTILE, model=HOSTILE, suite=HOSTILE, cluster=HOSTILE, trigger=HOSTILE, framework=HOSTILE,
        suite_commit=HOSTILE, environment=HOSTILE, nodes=(HOSTILE,), mode=HOSTILE,
    )  # fmt: skip
    command = Command(text=HOSTILE, env={"A": HOSTILE})
    legs = (Leg(id=HOSTILE, command=command, device="cpu", precision=HOSTILE),)
    step = Step(id=HOSTILE, kind=StepKind.TRAIN, nodes=(HOSTILE,), commands={HOSTILE: command})
    infer = Step(id=f"{HOSTILE}2", kind=StepKind.INFER_CPU, nodes=(HOSTILE,), legs=legs)
    store.runs.create(run, a_plan(params_file=HOSTILE, steps=(step, infer)))
    with store.database.read() as connection:
        stored = connection.execute(text("SELECT step FROM steps ORDER BY position")).scalars().all()
    number = store.attempts.open(run.id, stored[0], (HOSTILE,), T0)
    store.attempts.close(run.id, stored[0], number, Status.FAILED, HOSTILE, (), T0 + 1)
    store.steps.set(run.id, stored[0], Status.FAILED, HOSTILE)
    store.steps.set_leg(run.id, stored[1], HOSTILE, 1, Status.FAILED, HOSTILE)
    store.nodes.save(run.id, some_facts("n", os=HOSTILE, cpu_model=HOSTILE, gpus=({"name": HOSTILE},)))
    values = {HOSTILE: HOSTILE, "list": [HOSTILE], "dict": {HOSTILE: HOSTILE}}
    response = {"check": HOSTILE, "reason": HOSTILE, "step": HOSTILE, "leg": HOSTILE, "values": values}
    store.checks.replace(run.id, [CheckResult(status=Status.PASS, **response)] * 2)
    store.documents.put(
        run.id, CertificateDocument({"schema": HOSTILE, "sha256": HOSTILE, "links": [{"section": HOSTILE}]})
    )
    store.documents.put(run.id, EngineDocument({}))
    event_writer(home, run.id)(Event(Kind.NOTE, HOSTILE.replace("\ud800", ""), step=HOSTILE[:20]))
    return run


def unreadable_plan(store: Store, home: Path) -> Run:
    run = record_run(store)
    sql(store, "UPDATE plans SET body = :body", body=json.dumps({"from": "the future"}))
    return run


def torn_plan(store: Store, home: Path) -> Run:
    run = record_run(store)
    sql(store, "UPDATE plans SET body = '{\"chain\": '")
    return run


def no_certificate(store: Store, home: Path) -> Run:
    run = record_run(store)
    for body in (7, "x", [], {}):
        store.documents.put(run.id, CertificateDocument(body))
    return run


def timeless(store: Store, home: Path) -> Run:
    run = a_run(created_at=1e18)
    store.runs.create(run, a_plan())
    number = store.attempts.open(run.id, TRAIN, run.nodes, -1e18)
    store.attempts.close(run.id, TRAIN, number, Status.PASS, "", [a_record(run.id, started_at=9e17)], 5.0)
    store.runs.finish(run.id, Status.PASS, "", -5.0)
    return run


WRONG = [
    running_without_plan, running, cancelled, no_steps, no_legs, not_finite, huge, hostile, unreadable_plan,
    torn_plan, no_certificate, timeless,
]  # fmt: skip


@pytest.mark.parametrize("made", WRONG)
def test_incomplete_run_has_a_page(
    browser: TestClient, machine: TestClient, store: Store, home: Path, made: Callable[[Store, Path], Run]
) -> None:
    run = made(store, home)
    for path in ("/", "/runs", f"/runs/{run.id}"):
        response = browser.get(f"/certification{path}")
        assert response.status_code == 200, response.text
        seen = read(response.text)
        assert seen.problems == []
        assert len(response.content) < 3_000_000
        assert_harmless(seen.tags)
    report = machine.get(f"/certification/api/runs/{run.id}")
    assert report.status_code == 200
    assert RunFacts.model_validate(strict(report.text)).run.id == run.id
    assert machine.get(f"/certification/api/runs/{run.id}/curves").status_code == 200
    assert strict(machine.get("/certification/api/runs").text)["total"] == 1


def assert_harmless(tags: list[tuple[str, dict[str, str]]]) -> None:
    """No element, handler, style or address but our own."""
    for tag, given in tags:
        assert tag != "img"
        assert not [name for name in given if name.startswith("on") or name in ("style", "srcdoc")]
        assert tag != "script" or given["src"].startswith("/certification/assets/")
        assert given.get("href", "/").startswith(("/", "#"))


def strict(body: str) -> dict[str, object]:
    """JSON as every reader takes it: without NaN."""
    report: dict[str, object] = json.loads(body, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    return report


def test_nothing_of_a_text_is_lost(browser: TestClient, store: Store, home: Path) -> None:
    seen = read(browser.get(f"/certification/runs/{hostile(store, home).id}").text)
    assert "<script>alert(2)</script>" in seen.text
    assert "{{7*7}}&amp;" in seen.text


def test_an_active_run_is_followed(browser: TestClient, store: Store, home: Path) -> None:
    run = running(store, home)
    seen = read(browser.get(f"/certification/runs/{run.id}").text)
    assert ("body", {"data-running": "1"}) in seen.tags
    assert "node-a: [Epoch 1, iter: 7] loss: 0.5" in seen.text
    assert "train: started on node-a, node-b" in seen.text
    assert "running train node-a" in seen.text
    assert "waiting infer_cpu" in seen.text
    assert "No heartbeat for" in seen.text
    store.runs.finish(run.id, Status.CANCELLED, "stopped", T0 + 9)
    assert ("body", {}) in read(browser.get(f"/certification/runs/{run.id}").text).tags


def test_an_unreadable_plan_is_reported(browser: TestClient, store: Store, home: Path) -> None:
    seen = read(browser.get(f"/certification/runs/{unreadable_plan(store, home).id}").text)
    assert "this tipcflow cannot read the run's plan" in seen.text


def test_rows_of_another_version_are_an_error(browser: TestClient, machine: TestClient, store: Store) -> None:
    run = record_run(store)
    sql(store, 'UPDATE environments SET facts = \'{"from": "the future"}\'')
    response = browser.get(f"/certification/runs/{run.id}")
    assert response.status_code == 503
    assert "written by another version" in read(response.text).text
    assert machine.get(f"/certification/api/runs/{run.id}").json().keys() == {"detail"}
