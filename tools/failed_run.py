"""A generated run for the screenshots: training on two nodes fails with a loss that is nan."""

import math
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from devcluster.sample_history.chains import ENVIRONMENTS, V100
from devcluster.sample_history.runs import BY
from devcluster.sample_history.story import WEEKS, commit_of
from tipcflow.domain import (
    Attempt,
    CheckResult,
    Command,
    Compat,
    EndReason,
    ExitRecord,
    Failure,
    FailureClass,
    Leg,
    LegKey,
    Measurement,
    NodeFacts,
    Phase,
    Plan,
    Run,
    Status,
    Step,
    StepKind,
    Variant,
)
from tipcflow.domain.generated import GeneratedDocument
from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.run_documents import FailuresDocument
from tipcflow.store import Store
from tipcflow.store.recorded import RecordedRun

_SUITE, _MODEL = "generated_clas", "MobileNetV3_large"
_CHAIN = f"{_SUITE}/{_MODEL}/train_fleet_infer_python"
_NODES = (f"{V100}-1", f"{V100}-2")
_VARIANT = "norm_train_gpus_0,1_autocast_null_nodes_2"
_STEPS = {kind: f"{_VARIANT}/{kind}" for kind in StepKind}
# The rank and the first iteration with a loss that is nan, and the number of iterations before the exit.
_RANK, _BROKEN, _END = 2, 31, 34
_REASON = f"exit code 1: FloatingPointError: the loss of rank {_RANK} is nan at iteration {_BROKEN}"
_LOG = f"""Traceback (most recent call last):
  File "tools/train.py", line 41, in check_finite
    raise FloatingPointError(f"the loss of rank {{rank}} is nan at iteration {{step}}")
FloatingPointError: the loss of rank {_RANK} is nan at iteration {_BROKEN}
"""


def add_failed_run(store: Store, home: Path, at: float) -> str:
    """Store the run, created at `at`, and the log of the failing node. Returns the ID."""
    run = Run(
        id=f"{datetime.fromtimestamp(at, UTC):%Y%m%dt%H%M%S}-generated_{_MODEL.lower()}-9c1f02",
        chain=_CHAIN,
        suite=_SUITE,
        model=_MODEL,
        mode="lite_train_lite_infer",
        cluster=V100,
        trigger="weekly",
        suite_commit=commit_of(_SUITE, WEEKS - 1),
        suite_sha256=commit_of(_SUITE, WEEKS - 1)[:32] * 2,
        framework="paddlepaddle-gpu 3.3.1",
        seed=0,
        nodes=_NODES,
        environment=ENVIRONMENTS[V100].replace("1-nodes/8-ranks", "2-nodes/4-ranks"),
        status=Status.FAILED,
        reason=f"train: node {_NODES[1]}: {_REASON}",
        created_at=at,
        ended_at=at + 66,
    )
    recorded = RecordedRun(
        run,
        _plan(),
        [_facts(node) for node in _NODES],
        tuple(_attempts(run)),
        _statuses(),
        {LegKey(step.id, leg.id): (Status.BLOCKED, "train did not succeed") for step, leg in _legs()},
        tuple(_losses(run)),
        _checks(),
        (GeneratedDocument(by=BY), FailuresDocument(_failures())),
    )
    store.recorded.add([recorded])
    logs = home / "runs" / run.id / _STEPS[StepKind.TRAIN].replace("/", "%2F") / _NODES[1] / "logs"
    logs.mkdir(parents=True)
    (logs / "main.log").write_text(_LOG)
    return run.id


def _plan() -> Plan:
    train, first = _STEPS[StepKind.TRAIN], _NODES[:1]
    script = "tools/train.py -c MobileNetV3_large_x1_0.yaml -o Global.epochs=2"
    launch = f"python -m paddle.distributed.launch --gpus=0,1 {script}"

    def step(kind: StepKind, nodes: tuple[str, ...], command: str = "", **more: Any) -> Step:
        commands = {node: Command(text=command) for node in nodes} if command else {}
        return Step(id=_STEPS[kind], kind=kind, variant=_VARIANT, nodes=nodes, commands=commands, **more)

    cpu = tuple(
        Leg(
            id=f"cpu_onednn_{'on' if onednn else 'off'}_bs{batch}",
            command=Command(text=f"python deploy/python/predict_cls.py -o enable_mkldnn={onednn}"),
            device="cpu", onednn=onednn, precision="fp32", batch_size=batch, threads=1,
        )
        for onednn in (False, True) for batch in (1, 4)
    )  # fmt: skip
    after = (train,)
    return Plan(
        chain=_CHAIN,
        suite=_SUITE,
        dialect="clas",
        model=_MODEL,
        params_file=f"test_tipc/configs/{_MODEL}/train_fleet_infer_python.txt",
        params_sha256="0" * 64,
        mode="lite_train_lite_infer",
        compat=Compat.SPEC,
        cluster=V100,
        seed=0,
        nodes=_NODES,
        variants=(Variant(id=_VARIANT, trainer="norm_train", node_count=2, world_size=4),),
        steps=(
            step(StepKind.PREPARE, _NODES, "bash test_tipc/prepare.sh"),
            step(StepKind.TRAIN, _NODES, launch, after=(_STEPS[StepKind.PREPARE],), world_size=4),
            step(StepKind.EVAL, first, f"python tools/eval.py -o {_MODEL}", after=after),
            step(StepKind.EXPORT, first, "python tools/export_model.py", after=after),
            step(StepKind.INFER_CPU, first, after=(_STEPS[StepKind.EXPORT],), legs=cpu),
        ),
    )


def _legs() -> Iterator[tuple[Step, Leg]]:
    for step in _plan().steps:
        for leg in step.legs:
            yield step, leg


def _statuses() -> dict[str, tuple[Status, str]]:
    blocked = (Status.BLOCKED, "train did not succeed")
    statuses = {step.id: blocked for step in _plan().steps}
    statuses[_STEPS[StepKind.PREPARE]] = (Status.PASS, "")
    statuses[_STEPS[StepKind.TRAIN]] = (Status.FAILED, f"node {_NODES[1]}: {_REASON}")
    return statuses


def _attempts(run: Run) -> Iterator[Attempt]:
    """Yield the preparation, a training without a connection, and the training that failed."""
    lost = "node generated-v100-2: exit code 1: ncclSystemError: connection closed by remote peer"
    times = (
        (StepKind.PREPARE, 1, Status.PASS, "", 2.0, 5.0),
        (StepKind.TRAIN, 1, Status.INFRA_FAILURE, lost, 6.0, 22.0),
        (StepKind.TRAIN, 2, Status.FAILED, f"node {_NODES[1]}: {_REASON}", 31.0, 64.0),
    )
    for kind, attempt, status, reason, begun, end in times:
        records = []
        for place, node in enumerate(_NODES):
            known: dict[str, Any] = {
                "run": run.id,
                "step": _STEPS[kind],
                "attempt": attempt,
                "node": node,
                "pid": 1,
            }
            known |= {"started_at": run.created_at + begun + 0.3, "ended_at": run.created_at + end - 0.7 * place}
            ended = {"reason": EndReason.EXITED, "exit_code": 0 if status is Status.PASS else 1}
            stopped = {"reason": EndReason.STOPPED, "stopped_by": "peer"}
            records.append(ExitRecord(**known, **(stopped if status is Status.FAILED and not place else ended)))
        yield Attempt(
            run=run.id, step=_STEPS[kind], attempt=attempt, nodes=_NODES, status=status, reason=reason,
            records=tuple(records), started_at=run.created_at + begun, ended_at=run.created_at + end,
        )  # fmt: skip


def _losses(run: Run) -> Iterator[Measurement]:
    rng = random.Random(0)
    for rank in range(4):
        for iteration in range(_END):
            value = 0.4 + 2.2 * math.exp(-iteration / 14) + rng.gauss(0, 0.12)
            yield Measurement(
                run=run.id,
                step=_STEPS[StepKind.TRAIN],
                node=_NODES[rank // 2],
                rank=rank,
                attempt=2,
                metric="loss",
                phase=Phase.TRAIN,
                ordinal=iteration,
                iteration=iteration,
                value=math.nan if rank == _RANK and iteration >= _BROKEN else value,
            )


def _checks() -> tuple[CheckResult, ...]:
    train, broken = _STEPS[StepKind.TRAIN], _END - _BROKEN
    reason = f"{broken} of {4 * _END} losses are not finite; first: rank {_RANK} at iteration {_BROKEN}"
    return (
        CheckResult(
            check="ran.steps", status=Status.FAILED, reason=f"train: node {_NODES[1]}: {_REASON}", step=train
        ),
        CheckResult(check="loss.finite", status=Status.FAILED, reason=reason, step=train, metric="loss"),
        CheckResult(check="train.ranks", status=Status.PASS, reason="4 ranks on 2 nodes trained", step=train),
    )


def _failures() -> dict[Any, Failure]:
    train = _STEPS[StepKind.TRAIN]
    first = Failure(failure_class=FailureClass.COMMUNICATION, node=_NODES[1], again=True)
    last = Failure(
        failure_class=FailureClass.CODE_ERROR, node=_NODES[1], rank=_RANK, log_line=_LOG.splitlines()[-1]
    )
    return {AttemptKey(train, 1): first, AttemptKey(train, 2): last}


def _facts(node: str) -> NodeFacts:
    return NodeFacts(
        node=node,
        hostname=node,
        os="generated",
        kernel="generated",
        cpu_model="generated",
        cpu_count=56,
        gpus=({"name": "Tesla V100"},) * 8,
        driver="535.104",
        cuda="12.6",
        framework="paddlepaddle-gpu",
        framework_version="3.3.1",
    )
