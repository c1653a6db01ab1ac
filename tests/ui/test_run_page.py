"""The page of a run: golden ones as a user sees them."""

import asyncio
import logging
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from tests.support.expected.golden import assert_golden
from tests.support.stories import INFER, T0, TRAIN, a_plan, a_record, a_run, losses, record_run, some_facts
from tests.ui.html_text import read

from tipcflow.cli.show.page import page as cli_page
from tipcflow.domain import (
    CheckResult,
    Cluster,
    EndReason,
    Failure,
    FailureClass,
    Node,
    Run,
    SlurmSource,
    SlurmStep,
    Status,
)
from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.run.allocation_wait import AllocationWaitDocument
from tipcflow.domain.run_documents import CertificateDocument, FailuresDocument, JudgementDocument
from tipcflow.execute.allocation.client import place_of, waiting_message
from tipcflow.execute.verdict.run_data import load_run
from tipcflow.remote.slurm.output import jobs_in
from tipcflow.report import certificate
from tipcflow.store import Store
from tipcflow_operators.triggers.waits import report_wait

GOLDEN = Path(__file__).parents[1] / "golden" / "plugins"
SQUEUE = GOLDEN.parent / "remote/slurm/recorded/squeue.txt"


def page(browser: TestClient, run: Run | str) -> str:
    response = browser.get(f"/certification/runs/{run if isinstance(run, str) else run.id}")
    assert response.status_code == 200, response.text
    return response.text


def passed(store: Store, home: Path) -> Run:
    run = record_run(store, a_run(suite_commit="c0ffee" * 6 + "1234", framework="paddle 3.3.1", seed=0))
    checks = [
        CheckResult(check="ran.steps", status=Status.PASS, reason="all planned steps have a status"),
        CheckResult(
            check="parity.onednn", status=Status.PASS, reason="same class everywhere", step=INFER,
            leg="cpu_onednn_on", values={"images": 80, "max_abs": 1.2e-07},
        ),
        *(
            CheckResult(
                check="speed.inference_time", status=Status.INSUFFICIENT_DATA, reason="no earlier run", step=INFER,
                leg=leg, values={"needed": 5},
            )
            for leg in ("cpu_onednn_on", "cpu_onednn_off")
        ),
    ]  # fmt: skip
    store.checks.replace(run.id, checks)
    store.runs.finish(run.id, Status.PASS, "2 checks passed, 2 insufficient_data", run.created_at + 20)
    run = store.runs.get(run.id)
    store.documents.put(run.id, CertificateDocument(certificate(store.history.facts(run.id), run, checks)))
    logs = home / "runs" / run.id / "norm_train_cpu%2Ftrain" / "node-a" / "logs"
    logs.mkdir(parents=True)
    (logs / "main.log").write_text("[1/5] loss 0.5\n")
    (logs.parent / "weights.pdparams").write_bytes(b"\x00" * 3000)
    return run


def failed(store: Store, home: Path) -> Run:
    """The second node's training crashed in the second try; inference was blocked."""
    run = a_run(trigger="weekly")
    store.runs.create(run, a_plan())
    store.nodes.save(run.id, [some_facts("node-a", unreachable={"node-b": "timed out"}), some_facts("node-b")])
    crash = {"reason": EndReason.EXITED, "exit_code": 1, "ended_at": T0 + 4}
    for attempt, killed in ((1, 0), (2, 2)):
        number = store.attempts.open(run.id, TRAIN, run.nodes, T0 + 20 * attempt)
        records = [
            a_record(run.id, node="node-a", attempt=number, reason=EndReason.STOPPED, exit_code=None),
            a_record(run.id, node="node-b", attempt=number, killed=killed, **crash),
        ]
        status = Status.INFRA_FAILURE if attempt == 1 else Status.FAILED
        store.attempts.close(run.id, TRAIN, number, status, "node-b: exit 1", records, T0 + 20 * attempt + 13)
    crashed = Failure(failure_class=FailureClass.CODE_ERROR, node="node-b", rank=1, followers=("node-a",))
    store.documents.merge(run.id, FailuresDocument, {AttemptKey(TRAIN, 2): crashed.model_dump(mode="json")})
    store.measurements.add(losses(run.id, [2.0, float("nan")], attempt=2))
    store.steps.set(run.id, TRAIN, Status.FAILED, "node-b: ended with 1: ValueError: bad <shape>")
    store.steps.set(run.id, INFER, Status.BLOCKED, f"{TRAIN} did not succeed")
    checks = [
        CheckResult(check="loss.finite", status=Status.FAILED, reason="1 of 2 losses is nan", step=TRAIN),
        CheckResult(check="speed.ips", status=Status.REGRESSION, reason="70 of 100", step=TRAIN, gating=False),
    ]
    store.checks.replace(run.id, checks)
    parts = [f"{TRAIN}: node-b: exit 1", "loss.finite: nan"]
    judged = JudgementDocument(status=Status.FAILED, reason="; ".join(parts), parts=parts)
    store.documents.put(run.id, judged)
    store.runs.finish(run.id, Status.FAILED, "; ".join(parts), T0 + 60)
    logs = home / "runs" / run.id / "norm_train_cpu%2Ftrain" / "node-b" / "logs"
    logs.mkdir(parents=True)
    (logs / "main.log").write_text('Traceback (most recent call last):\n  File "a.py"\nValueError: bad <shape>\n')
    peer = logs.parents[1] / "node-a" / "logs"
    peer.mkdir(parents=True)
    (peer / "main.log").write_text("stopped because of node-b\n")
    return store.runs.get(run.id)


def without_plan(store: Store, _: Path) -> Run:
    run = a_run(suite_sha256="ab" * 32, nodes=())
    store.runs.create(run)
    store.runs.finish(run.id, Status.CONFIG_ERROR, "mode: found 'lite', expected one of …", T0 + 0.4)
    return store.runs.get(run.id)


@pytest.mark.parametrize("made", [passed, failed, without_plan])
def test_run_pages_equal_golden_files(browser: TestClient, store: Store, home: Path, made: object) -> None:
    seen = read(page(browser, made(store, home)))  # type: ignore[operator]
    assert seen.problems == []
    golden = GOLDEN / f"run_{made.__name__}.txt"  # type: ignore[attr-defined]
    assert_golden(golden, seen.text)


@pytest.mark.parametrize("made", [passed, failed])
def test_the_cli_shows_the_same_words_and_numbers(
    browser: TestClient, store: Store, home: Path, made: object
) -> None:
    run = made(store, home)  # type: ignore[operator]
    lines = cli_page(load_run(store, run), home / "runs" / run.id, width=None)
    html = page(browser, run)
    on_page = " ".join(read(html).text.split())
    cells = [cell for title in ("CHECKS", "STEPS", "LEGS") for cell in cells_of(lines, title)]
    assert len(cells) > 10
    # The ID of a leg is the tooltip of its row.
    assert [cell for cell in cells if cell not in on_page and f'title="{cell}"' not in html] == []


def cells_of(lines: list[str], title: str) -> list[str]:
    """The cells of a table of the CLI, without its head, attempt numbers and the mark of non-gating checks."""
    body = lines[lines.index(title) + 2 :]
    rows = body[: body.index("")] if "" in body else body
    found = [cell.removeprefix("(not gating) ") for row in rows for cell in re.split(" {2,}", row)]
    return [cell for cell in found if cell and not cell.isdecimal()]


def test_an_unknown_run_is_not_found(browser: TestClient, store: Store) -> None:
    response = browser.get("/certification/runs/20261121t000000-nothing-0000")
    assert response.status_code == 404
    assert "no such run" in read(response.text).text


def test_the_certificate_can_be_kept(browser: TestClient, store: Store, home: Path) -> None:
    run = passed(store, home)
    response = browser.get(f"/certification/runs/{run.id}/certificate.json?keep=true")
    assert response.headers["content-disposition"] == f'attachment; filename="{run.id}.certificate.json"'
    assert CertificateDocument(response.json()) == store.documents.get(run.id, CertificateDocument)
    assert browser.get(f"/certification/runs/{failed.__name__}/certificate.json").status_code == 404


def test_a_forged_certificate_is_reported(browser: TestClient, store: Store, home: Path) -> None:
    run = passed(store, home)
    kept = store.documents.get(run.id, CertificateDocument)
    assert kept is not None
    forged = kept.root
    forged["checks"][0]["reason"] = "nothing happened"
    store.documents.put(run.id, CertificateDocument(forged))
    assert "the certificate was modified" in read(page(browser, run)).text


def test_api_returns_the_curves_of_a_run(machine: TestClient, store: Store, home: Path) -> None:
    run = failed(store, home)
    (curve,) = machine.get(f"/certification/api/runs/{run.id}/curves").json()["curves"]
    assert curve == {
        "step": TRAIN, "short": "train", "name": "rank 0 on node-a", "x": [0.0, 1.0], "iterations": [0.0, 1.0],
        "y": [2.0, None],
        "broken": [1.0], "total": 2,
    }  # fmt: skip


def test_run_page_links_the_dag_run(browser: TestClient, store: Store, airflow_app: object) -> None:
    """The run's id is made of the DAG run's, so the page finds it in Airflow's own database."""
    from datetime import UTC, datetime

    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from airflow.utils.types import DagRunType

    from tipcflow.domain import run_id_of

    after = datetime(2026, 11, 21, 9, 30, 5, 123456, tzinfo=UTC)
    with create_session() as session:
        for dag_id in ("sample.model.file", "other"):
            if not session.query(DagRun).filter_by(dag_id=dag_id).first():
                known = {"run_id": "ci__1~a", "run_type": DagRunType.MANUAL, "state": "queued"}
                session.add(DagRun(dag_id=dag_id, run_after=after, **known))
    run = record_run(store, a_run(run_id_of("sample.model.file", "ci__1~a", after)))
    assert 'href="/dags/sample.model.file/runs/ci__1~a"' in page(browser, run)
    store.runs.create(a_run("20261121t093005-other-00000000"), a_plan())
    assert "DAG run in Airflow" not in page(browser, "20261121t093005-other-00000000")


def test_page_shows_the_place_in_the_queue_of_slurm(browser: TestClient, store: Store, home: Path) -> None:
    run = a_run("20261121t100000-in-slurm-0001")
    store.runs.create(run, a_plan())
    cluster = Cluster(
        name="hpc",
        kind="slurm",
        slurm=SlurmSource(partition="gpu", time_limit_minutes=30, workspace="/scratch/{node}"),
        nodes=(
            Node(name="slurm-1", address="slurm-1", python="/p", workspace="/scratch/{node}", slurm=SlurmStep()),
        ),
    )
    _, pending, _ = jobs_in(SQUEUE.read_text())
    place = place_of(cluster, pending, "5\n2\n7\n")
    asyncio.run(report_wait(logging.getLogger(__name__), run.id, waiting_message(place)))
    shown = "waiting for Slurm job 2, position 2 of 3 in partition gpu, reason Resources, expected start"
    before = read(page(browser, run)).text
    assert f"{shown} 2026-11-26 10:16" in before
    assert "Waits for an allocation by Slurm" not in before
    now = store.now()
    store.documents.put(run.id, AllocationWaitDocument(since=now, until=now + 600))
    after = read(page(browser, run)).text
    assert "waiting for nodes" in after
    assert "Waits for an allocation by Slurm: its place in the queue is not known yet." in after
    assert f"{shown} 2026-11-26 10:16" in after
    store.documents.change(run.id, AllocationWaitDocument, place=place)
    seen = read(page(browser, run))
    waits = (
        "Waits for an allocation by Slurm: job 2, position 2 of 3 in the queue, partition gpu, reason Resources"
    )
    assert f"{waits}, expected start 2026-11-26 10:16" in seen.text
    assert "/certification/nodes#queue" in seen.attributes("a", "href")
