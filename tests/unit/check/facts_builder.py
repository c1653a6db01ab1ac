"""A finished run that passes every check; tests break one fact each."""

from tipcflow.check import CheckContext
from tipcflow.config.policy import LossRule, Policy
from tipcflow.domain import (
    Command,
    Compat,
    EndReason,
    ExitRecord,
    Facts,
    Leg,
    Measurement,
    NodeFacts,
    Observed,
    ObservedRank,
    OutputFile,
    PastRun,
    Phase,
    Plan,
    RankReport,
    Run,
    Status,
    Step,
    StepKind,
    Variant,
    losses_of,
)

RUN = "20261121t093000-fleet-0001"
NODES = ("alpha", "beta")
TRAIN, EVAL, EXPORT, INFER, GPU = ("v/train", "v/eval", "v/export", "v/infer_cpu", "v/infer_gpu")
ON, OFF = "cpu_onednn_threads1_bs1", "cpu_threads1_bs1"
CURVE = (2.4, 2.3, 2.1, 1.9, 1.5, 1.2, 0.9, 0.7)
COMMAND = Command(text="true")


def legs() -> tuple[Leg, ...]:
    common = {"command": COMMAND, "device": "cpu", "precision": "fp32", "threads": 1, "batch_size": 1}
    return (Leg(id=ON, onednn=True, tensorrt=False, **common), Leg(id=OFF, onednn=False, tensorrt=False, **common))


def steps() -> tuple[Step, ...]:
    on_all = dict.fromkeys(NODES, COMMAND)
    weights = ("log/norm_train/final.pdparams",)
    return (
        Step(id="prepare", kind=StepKind.PREPARE, nodes=NODES, commands=on_all),
        Step(
            id=TRAIN,
            kind=StepKind.TRAIN,
            variant="v",
            nodes=NODES,
            commands=on_all,
            after=("prepare",),
            expects=weights,
            world_size=2,
        ),
        Step(
            id=EVAL, kind=StepKind.EVAL, variant="v", nodes=NODES[:1], commands={"alpha": COMMAND}, after=(TRAIN,)
        ),
        Step(
            id=EXPORT,
            kind=StepKind.EXPORT,
            variant="v",
            nodes=NODES[:1],
            commands={"alpha": COMMAND},
            after=(TRAIN,),
            expects=("inference.json",),
        ),
        Step(id=INFER, kind=StepKind.INFER_CPU, variant="v", nodes=NODES[:1], legs=legs(), after=(EXPORT,)),
        Step(
            id=GPU,
            kind=StepKind.INFER_GPU,
            variant="v",
            nodes=NODES[:1],
            after=(EXPORT,),
            not_run="no node has a GPU",
            legs=(
                Leg(
                    id="gpu_bs1",
                    command=COMMAND,
                    device="gpu",
                    precision="fp32",
                    batch_size=1,
                    not_run="no node has a GPU",
                ),
            ),
        ),
    )


def plan(**changes: object) -> Plan:
    values = {
        "chain": "mobilenet_v3_small/mobilenet_v3_small/train_fleet_infer_python",
        "suite": "sample",
        "dialect": "norm",
        "model": "mobilenet_v3_small",
        "params_file": "test_tipc/configs/mobilenet_v3_small/fleet.txt",
        "params_sha256": "ab" * 32,
        "mode": "lite_train_lite_infer",
        "compat": Compat.SPEC,
        "cluster": "demo",
        "nodes": NODES,
        "seed": 2026,
        "variants": (Variant(id="v", trainer="norm_train", devices=("0",), node_count=2, world_size=2),),
        "steps": steps(),
    }
    return Plan(**{**values, **changes})


def record(step: str, node: str, leg: str = "", **changes: object) -> ExitRecord:
    values = {
        "run": RUN,
        "step": step,
        "leg": leg,
        "node": node,
        "reason": EndReason.EXITED,
        "exit_code": 0,
        "started_at": 100.0,
        "ended_at": 110.0,
    }
    return ExitRecord(**{**values, **changes})


def observed(rank: int, **changes: object) -> Observed:
    """A rank that trained with its peer on the other node."""
    values = {"seconds": 9.5, "cpu_s": 8.0, "framework": "paddle", "framework_s": 8.0, "peers": 2, "local": 1}
    return Observed(ranks=(ObservedRank(**{"rank": rank, **values, **changes}),))


def records() -> tuple[ExitRecord, ...]:
    weights = OutputFile(
        path="log/norm_train/final.pdparams", exists=True, fresh=True, size=1000, sha256="cd" * 32
    )
    model = OutputFile(path="inference.json", exists=True, fresh=True, size=2000, sha256="ef" * 32)
    return (
        record(
            TRAIN,
            "alpha",
            outputs=(weights,),
            peak_rss_bytes={"0": 340_000_000, "": 300_000_000, "total": 640_000_000},
            observed=observed(0),
        ),
        record(TRAIN, "beta", peak_rss_bytes={"1": 341_000_000, "total": 640_000_000}, observed=observed(1)),
        record(EVAL, "alpha"),
        record(EXPORT, "alpha", outputs=(model,)),
        record(INFER, "alpha"),
        record(INFER, "alpha", ON),
        record(INFER, "alpha", OFF),
    )


def series(
    values: tuple[float, ...],
    metric: str = "loss",
    *,
    node: str = "alpha",
    rank: int = 0,
    step: str = TRAIN,
    **changes: object,
) -> list[Measurement]:
    return [
        Measurement(
            **{
                "run": RUN,
                "step": step,
                "node": node,
                "rank": rank,
                "metric": metric,
                "phase": Phase.TRAIN,
                "ordinal": number,
                "value": value,
                "epoch": 1 + number // 4,
                "iteration": number % 4,
                **changes,
            }
        )
        for number, value in enumerate(values)
    ]


def measurements() -> list[Measurement]:
    return [
        *series(CURVE),
        *series(tuple(value + 0.05 for value in CURVE), node="beta", rank=1),
        *series((0.5, 0.06, 0.05, 0.05, 0.06, 0.05, 0.05, 0.05), "batch_cost", unit="s"),
        *series((85.0,), "top1", step=EVAL, rank=-1, phase=Phase.EVAL, unit="%", epoch=-1, iteration=-1),
        *series(
            (6.3,),
            "inference_time",
            step=INFER,
            rank=-1,
            leg=ON,
            phase=Phase.INFER,
            unit="ms",
            epoch=-1,
            iteration=-1,
        ),
        *series(
            (20.9,),
            "inference_time",
            step=INFER,
            rank=-1,
            leg=OFF,
            phase=Phase.INFER,
            unit="ms",
            epoch=-1,
            iteration=-1,
        ),
    ]


def predictions() -> dict[str, dict[str, tuple[float, ...]]]:
    scores = {"a.png": (0.9, 0.05, 0.05), "b.png": (0.1, 0.7, 0.2), "c.png": (0.2, 0.2, 0.6)}
    nearly = {name: tuple(score + 1e-7 for score in row) for name, row in scores.items()}
    return {f"{INFER}/{ON}": nearly, f"{INFER}/{OFF}": scores}


def engine(onednn: bool) -> dict[str, str]:
    return {
        "device": "cpu",
        "onednn": str(onednn),
        "tensorrt": "False",
        "precision": "fp32",
        "threads": "1",
        "batch_size": "1",
    }


def facts(**changes: object) -> Facts:
    values = {
        "run": RUN,
        "plan": plan(),
        "records": records(),
        "measurements": tuple(measurements()),
        "predictions": predictions(),
        "node_facts": tuple(
            NodeFacts(
                node=node, framework="paddlepaddle", framework_version="3.3.1", os="Debian 12", disk_free_bytes=7
            )
            for node in NODES
        ),
        "step_status": {
            "prepare": Status.PASS,
            TRAIN: Status.PASS,
            EVAL: Status.PASS,
            EXPORT: Status.PASS,
            INFER: Status.PASS,
            GPU: Status.NOT_RUN,
        },
        "leg_status": {
            f"{INFER}/{ON}": Status.PASS,
            f"{INFER}/{OFF}": Status.PASS,
            f"{GPU}/gpu_bs1": Status.NOT_RUN,
        },
        "step_reason": {GPU: "no node has a GPU", f"{GPU}/gpu_bs1": "no node has a GPU"},
        "engine": {f"{INFER}/{ON}": engine(True), f"{INFER}/{OFF}": engine(False)},
        "autolog": {f"{INFER}/{ON}": {"enable_mkldnn": "True"}, f"{INFER}/{OFF}": {"enable_mkldnn": "False"}},
        "ranks": {
            TRAIN: tuple(
                RankReport(node=node, rank=rank, world_size=2, backend="gloo", device="cpu", seed=2026)
                for rank, node in enumerate(NODES)
            )
        },
        "reporter": "tipcflow-sample",
    }
    return Facts(**{**values, **changes})


def run(**changes: object) -> Run:
    values = {
        "id": RUN,
        "chain": "mobilenet_v3_small/mobilenet_v3_small/train_fleet_infer_python",
        "suite": "sample",
        "model": "mobilenet_v3_small",
        "mode": "lite_train_lite_infer",
        "cluster": "demo",
        "suite_commit": "1234567",
        "suite_sha256": "12" * 32,
        "framework": "paddlepaddle 3.3.1",
        "seed": 2026,
        "nodes": NODES,
        "environment": "cpu/2 nodes/paddle 3.3",
        "created_at": 1000.0,
        "ended_at": 1060.0,
    }
    return Run(**{**values, **changes})


def renamed(*names: str, **changes: object) -> Facts:
    """Both ranks log losses of other names only."""
    logged = [
        one
        for number, (node, rank) in enumerate((("alpha", 0), ("beta", 1)))
        for name in names
        for one in series(tuple(value + number for value in CURVE), name, node=node, rank=rank)
    ]
    return facts(measurements=tuple(logged), **changes)


def past(**changes: object) -> PastRun:
    values = {
        "run": "earlier", "seed": 2026, "framework": "paddlepaddle 3.3.1", "suite_sha256": "12" * 32,
        "losses": losses_of(measurements()),
    }  # fmt: skip
    return PastRun(**{**values, **changes})


def loss_context(*history: PastRun, **rule: object) -> CheckContext:
    policy = Policy(name="x", loss=LossRule(**{"reproducible": "exact", **rule}))
    return CheckContext(policy=policy, history=history, run=run())


def with_losses(alpha: tuple[float, ...], beta: tuple[float, ...] = ()) -> Facts:
    beta_series = series(beta or alpha, node="beta", rank=1)
    return facts(measurements=(*series(alpha), *beta_series))
