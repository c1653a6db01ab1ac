"""A run that failed in training, with everything that is known of it."""

from pathlib import Path
from typing import Any

from tests.support.stories import INFER, T0, TRAIN, a_plan, a_record, a_run, some_facts

from tipcflow.domain import CheckResult, EndReason, Failure, FailureClass, OutputFile, Run, Status
from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.run_documents import CertificateDocument, FailuresDocument

WHY = "node-a: exit code 1: ValueError: the head has 10 classes but the labels go up to 99"


def record_failure(store: Any, home: Path) -> Run:
    """Training failed on node-a, so inference was blocked; logs were fetched."""
    run = a_run(
        "20261122t093005-train_linux_gpu_fleet_normal_infer_python_linux_gpu_cpu-ffff",
        created_at=T0 + 86400,
        suite_commit="a" * 40,
        suite_sha256="b" * 64,
        seed=0,
        framework="paddlepaddle 3.3.1",
        environment="cpu, 2 nodes, Some CPU, paddle 3.3",
    )
    store.runs.create(run, a_plan())
    store.nodes.save(run.id, [some_facts("node-a"), some_facts("node-b", unreachable={"10.0.0.1": "refused"})])
    number = store.attempts.open(run.id, TRAIN, run.nodes, T0 + 86401)
    missing = (OutputFile(path="output/latest.pdparams", exists=False),)
    records = [
        a_record(run.id, exit_code=1, outputs=missing),
        a_record(
            run.id, node="node-b", reason=EndReason.SIGNALED, exit_code=None, signal=15, message="a peer failed"
        ),
    ]
    store.attempts.close(run.id, TRAIN, number, Status.FAILED, WHY, records, T0 + 86420)
    failure = Failure(
        failure_class=FailureClass.CODE_ERROR,
        node="node-a",
        rank=1,
        log_line=WHY.partition("1: ")[2],
        followers=("node-b",),
    )
    store.documents.merge(run.id, FailuresDocument, {AttemptKey(TRAIN, number): failure.model_dump(mode="json")})
    store.steps.set(run.id, TRAIN, Status.FAILED, WHY)
    store.steps.set(run.id, INFER, Status.BLOCKED, "train failed")
    store.steps.set_leg(run.id, INFER, "cpu_onednn_on", 1, Status.BLOCKED, "train failed")
    store.steps.set_leg(run.id, INFER, "cpu_onednn_off", 1, Status.NOT_RUN, "no AVX512 on node-a")
    store.checks.replace(run.id, _results())
    store.documents.put(run.id, CertificateDocument({"schema_version": 1, "run": run.id, "verdict": "failed"}))
    for node, text in (("node-a", b"epoch 1\nValueError: \xff"), ("node-b", b"epoch 1\n")):
        folder = home / "runs" / run.id / TRAIN.replace("/", "%2F") / node
        (folder / "logs").mkdir(parents=True)
        (folder / "logs" / "main.log").write_bytes(text)
    (folder / "files" / "output").mkdir(parents=True)
    (folder / "files" / "output" / "best.pdparams").write_bytes(b"\0" * 5000)
    store.runs.finish(run.id, Status.FAILED, f"ran.steps: train failed\n{WHY}", T0 + 86400 + 3700)
    return store.runs.get(run.id)  # type: ignore[no-any-return]


def _results() -> list[CheckResult]:
    return [
        CheckResult(check="loss.finite", status=Status.PASS, reason="all 30 losses are finite", step=TRAIN),
        CheckResult(
            check="speed.baseline",
            status=Status.INSUFFICIENT_DATA,
            reason="3 more accepted runs are needed",
            gating=False,
            metric="ips",
            values={"median": float("nan")},
        ),
        CheckResult(
            check="ran.steps",
            status=Status.FAILED,
            reason="1 of 2 planned steps was executed; train failed on node-a, infer_cpu was not started",
        ),
    ]
