"""One generated run: plan, steps, legs, numbers and checks as a real run stores them."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from math import exp
from typing import Any

from devcluster.sample_history.chains import CPU, ENVIRONMENTS, SPEED, SampleChain
from devcluster.sample_history.story import ACCURACY_CHECK, FINITE_CHECK, SPEED_CHECK, TARGET_CHECK, Outcome
from tipcflow.config.run_documents import PolicyDocument
from tipcflow.config.settings import settings
from tipcflow.domain import (
    Attempt,
    CheckResult,
    Command,
    Compat,
    ConfigError,
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
from tipcflow.domain.numbers.measured import ValueKey
from tipcflow.domain.run.names import FrameworkVersion
from tipcflow.domain.run_documents import Document, FailuresDocument, MergeBaseDocument
from tipcflow.execute.verdict.judge import load_policy
from tipcflow.store.recorded import RecordedRun

BY = "tipcflow demo --history"
# Modes of weekly runs and of runs of changes.
WEEKLY, CHANGE = "lite_train_whole_infer", "lite_train_lite_infer"
VARIANT = "norm_train_gpus_0_autocast_null"
LINES, EVERY = 20, 10
_IDS: dict[StepKind, str] = {kind: f"{VARIANT}/{kind.value}" for kind in StepKind if kind is not StepKind.PREPARE}
# Check -> the step that it is about.
_CHECKED = {
    SPEED_CHECK: _IDS[StepKind.TRAIN],
    ACCURACY_CHECK: _IDS[StepKind.EVAL],
    FINITE_CHECK: _IDS[StepKind.TRAIN],
}
# Tolerance of the accuracy targets, in the unit of the accuracy.
_TOLERANCE = 0.03
_NO_GPU = "no node of the cluster has a GPU"
_NO_TENSORRT = "TensorRT is not installed on the node"
# Steps in order, each with its share of the run's time.
_STEPS = {
    StepKind.TRAIN: 0.7,
    StepKind.EVAL: 0.1,
    StepKind.EXPORT: 0.05,
    StepKind.INFER_CPU: 0.1,
    StepKind.INFER_GPU: 0.05,
}
_LATENCY_MS = {
    "cpu_onednn_off": 42.0,
    "cpu_onednn_on": 19.0,
    "gpu_trt_off_fp32": 4.1,
    "gpu_trt_on_fp16": 1.6,
}


@dataclass(frozen=True)
class Turn:
    """When and why a run was made.

    Attributes:
        merge_base: of the change that it tests; '' for none.
    """

    at: float
    mode: str
    trigger: str
    framework: str
    commit: str
    cluster: str
    nodes: tuple[str, ...]
    merge_base: str = ""


def generate(chain: SampleChain, turn: Turn, outcome: Outcome, rng: random.Random) -> RecordedRun:
    """Return a run that ended like that."""
    stamp = datetime.fromtimestamp(turn.at, UTC)
    run = Run(
        id=f"{stamp:%Y%m%dt%H%M%S}-generated_{chain.model.lower()}-{rng.randrange(1 << 24):06x}",
        chain=chain.name,
        suite=chain.suite,
        model=chain.model,
        mode=turn.mode,
        cluster=turn.cluster,
        trigger=turn.trigger,
        suite_commit=turn.commit,
        suite_sha256=turn.commit[:32] * 2,
        framework=turn.framework,
        seed=0,
        nodes=turn.nodes,
        environment=ENVIRONMENTS[turn.cluster],
        status=outcome.status,
        reason=outcome.line,
        created_at=turn.at,
        ended_at=turn.at + 900 + 600 * rng.random(),
    )
    base = (MergeBaseDocument(commit=turn.merge_base, commits=(turn.merge_base,)),) if turn.merge_base else ()
    policy = _weekly_policy() if turn.mode == WEEKLY else ()
    marked: tuple[Document, ...] = (GeneratedDocument(by=BY), *base, *policy)
    if outcome.status is Status.CONFIG_ERROR:
        return RecordedRun(run.model_copy(update={"ended_at": turn.at + 2}), documents=marked)
    plan = plan_of(chain, turn.cluster, turn.mode).model_copy(update={"nodes": turn.nodes})
    steps = _steps(outcome)
    attempts = tuple(_attempts(run, steps))
    legs = dict(_legs(plan, steps))
    measurements = tuple(_measurements(chain, run, outcome, steps, legs, rng))
    return RecordedRun(
        run=run,
        plan=plan,
        nodes=[_facts(node, turn) for node in turn.nodes],
        attempts=attempts,
        steps=steps,
        legs=legs,
        measurements=measurements,
        checks=(*_checks(chain, outcome), *_target(chain, measurements)),
        documents=(*marked, *_failures(outcome)),
    )


@cache
def _weekly_policy() -> tuple[PolicyDocument, ...]:
    """Return the policy of weekly runs, whose limits the story names; nothing if the configuration lacks it."""
    try:
        return (PolicyDocument(load_policy("weekly", settings().config_dir)),)
    except ConfigError:
        return ()


@cache
def plan_of(chain: SampleChain, cluster: str, mode: str) -> Plan:
    """Return the plan of a chain on a cluster."""
    first = f"{cluster}-1"
    steps = []
    for kind in _STEPS:
        legs = tuple(_leg(name, chain, cluster) for name in _LATENCY_MS if kind.value == f"infer_{name[:3]}")
        steps.append(
            Step(
                id=_IDS[kind],
                kind=kind,
                variant=VARIANT,
                nodes=(first,),
                commands={} if legs else {first: Command(text=f"python {kind.value}.py  # generated")},
                legs=legs,
                after=() if kind is StepKind.TRAIN else (_IDS[StepKind.TRAIN],),
                world_size=1 if kind is StepKind.TRAIN else 0,
            )
        )
    return Plan(
        chain=chain.name,
        suite=chain.suite,
        dialect="clas",
        model=chain.model,
        params_file=f"generated/{chain.model}/train_infer_python.txt",
        params_sha256="0" * 64,
        mode=mode,
        compat=Compat.SPEC,
        cluster=cluster,
        seed=0,
        variants=(Variant(id=VARIANT, trainer="norm_train"),),
        steps=tuple(steps),
    )


def _leg(name: str, chain: SampleChain, cluster: str) -> Leg:
    device, engine, setting, *precision = name.split("_")
    missing = _NO_TENSORRT if engine == "trt" and setting == "on" and not chain.has_tensorrt else ""
    return Leg(
        id=name,
        command=Command(text=f"python infer.py --{engine}={setting}  # generated"),
        device="gpu" if device == "gpu" else "cpu",
        onednn=setting == "on" if engine == "onednn" else None,
        tensorrt=setting == "on" if engine == "trt" else None,
        precision=precision[0] if precision else "fp32",
        not_run=_NO_GPU if cluster == CPU and device == "gpu" else missing,
    )


def _steps(outcome: Outcome) -> dict[str, tuple[Status, str]]:
    """Return step -> (status, reason): a failing step blocks the later ones."""
    broken = outcome.step
    steps: dict[str, tuple[Status, str]] = {}
    for kind in _STEPS:
        if broken and kind.value == broken:
            steps[_IDS[kind]] = (outcome.status, outcome.line)
        elif any(status is not Status.PASS for status, _ in steps.values()):
            steps[_IDS[kind]] = (Status.BLOCKED, f"{broken} did not succeed")
        else:
            steps[_IDS[kind]] = (Status.PASS, "")
    return steps


def _attempts(run: Run, steps: dict[str, tuple[Status, str]]) -> Iterator[Attempt]:
    assert run.ended_at is not None
    spent, at = run.ended_at - run.created_at - 20, run.created_at + 10
    for kind, share in _STEPS.items():
        status, reason = steps[_IDS[kind]]
        if status is Status.BLOCKED:
            continue
        yield Attempt(
            run=run.id,
            step=_IDS[kind],
            attempt=1,
            nodes=run.nodes,
            status=status,
            reason=reason,
            started_at=at,
            ended_at=at + spent * share,
        )
        at += spent * share


def _legs(plan: Plan, steps: dict[str, tuple[Status, str]]) -> Iterator[tuple[LegKey, tuple[Status, str]]]:
    for step in plan.steps:
        status, reason = steps[step.id]
        for leg in step.legs:
            yield LegKey(step.id, leg.id), (Status.NOT_RUN, leg.not_run) if leg.not_run else (status, reason)


def _facts(node: str, turn: Turn) -> NodeFacts:
    framework = FrameworkVersion.parse(turn.framework)
    has_gpus = turn.cluster != CPU
    driver = "535.104" if "v100" in node else "550.54"
    return NodeFacts(
        node=node,
        hostname=node,
        os="generated",
        kernel="generated",
        cpu_model="generated",
        cpu_count=56,
        disk_free_bytes=2 << 40,
        gpus=({"name": node.split("-")[1]},) * 8 if has_gpus else (),
        driver=driver if has_gpus else "",
        cuda="12.6" if has_gpus else "",
        framework=framework.name,
        framework_version=framework.version,
    )


def _measurements(
    chain: SampleChain,
    run: Run,
    outcome: Outcome,
    steps: dict[str, tuple[Status, str]],
    legs: dict[LegKey, tuple[Status, str]],
    rng: random.Random,
) -> Iterator[Measurement]:
    node, source = run.nodes[0], "generated"
    train: dict[str, Any] = {
        "run": run.id,
        "step": _IDS[StepKind.TRAIN],
        "node": node,
        "rank": 0,
        "phase": Phase.TRAIN,
    }
    step_s = chain.step_s * SPEED[run.cluster] * outcome.factors.get("batch_cost", 1.0) * rng.gauss(1, 0.004)
    lines = LINES if steps[_IDS[StepKind.TRAIN]][0] is Status.PASS else rng.randrange(1, LINES)
    for line in range(lines):
        at: dict[str, Any] = {"ordinal": line, "epoch": line // 10, "iteration": line * EVERY, "source": source}
        batch_cost = step_s * rng.gauss(1, 0.012)
        loss = 0.4 + 4.2 * exp(-line / 7) + rng.gauss(0, 0.03)
        if outcome.check == FINITE_CHECK and line * EVERY >= 140:
            loss = float("nan")
        yield Measurement(**train, **at, metric="loss", value=loss)
        yield Measurement(**train, **at, metric="batch_cost", value=batch_cost, unit="s")
        yield Measurement(**train, **at, metric="ips", value=64 / batch_cost, unit="images/s")
    shared: dict[str, Any] = {"run": run.id, "node": node, "source": source}
    if steps[_IDS[StepKind.EVAL]][0] is Status.PASS:
        level = chain.level * outcome.factors.get(chain.metric, 1.0) + rng.gauss(0, 0.002)
        step = _IDS[StepKind.EVAL]
        yield Measurement(**shared, step=step, rank=0, metric=chain.metric, phase=Phase.EVAL, value=level)
    for key, (status, _) in legs.items():
        if status is Status.PASS:
            latency = _LATENCY_MS[key.leg] * (chain.step_s / 0.2) * rng.gauss(1, 0.01)
            yield Measurement(
                **shared, step=key.step, leg=key.leg, metric="inference_time", phase=Phase.INFER, value=latency,
                unit="ms",
            )  # fmt: skip


def _checks(chain: SampleChain, outcome: Outcome) -> Iterator[CheckResult]:
    yield CheckResult(check="ran.steps", status=Status.PASS, reason="all planned steps ended")
    if outcome.check:
        metric, ratio = next(iter(outcome.factors.items()), ("", 1.0))
        alerts = outcome.status in (Status.REGRESSION, Status.IMPROVEMENT)
        values = {
            ValueKey.RATIO: ratio,
            ValueKey.VALUE: ratio * chain.step_s if metric == "batch_cost" else ratio * chain.level,
        }
        about: dict[str, Any] = {"metric": metric, "values": values} if alerts else {}
        yield CheckResult(
            check=outcome.check,
            status=outcome.status,
            reason=outcome.reason,
            step=_CHECKED[outcome.check],
            **about,
        )
    for other in _CHECKED:
        if other != outcome.check:
            metric = {SPEED_CHECK: "batch_cost", ACCURACY_CHECK: chain.metric}.get(other, "")
            step = _CHECKED[other] if metric else ""
            yield CheckResult(check=other, status=Status.PASS, reason="within the limit", step=step, metric=metric)


def _target(chain: SampleChain, measurements: Iterable[Measurement]) -> Iterator[CheckResult]:
    """Yield the comparison of the accuracy with the target of the model, which all runs reach."""
    for measured in measurements:
        if measured.phase is Phase.EVAL:
            target: dict[str, Any] = {
                ValueKey.VALUE: measured.value,
                ValueKey.TARGET: round(chain.level, 3),
                ValueKey.TOLERANCE: _TOLERANCE,
            }
            yield CheckResult(
                check=TARGET_CHECK, status=Status.PASS, reason="within the tolerance of the target",
                step=measured.step, metric=measured.metric, values=target,
            )  # fmt: skip


def _failures(outcome: Outcome) -> tuple[Document, ...]:
    if not outcome.failing_node:
        return ()
    failure = Failure(failure_class=FailureClass.NODE_LOST, node=outcome.failing_node)
    return (FailuresDocument({AttemptKey(_IDS[StepKind.TRAIN], 1): failure}),)
