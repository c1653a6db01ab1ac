"""Data for benchmarks of the metrics database: weekly runs of many chains, in the shape of lite runs.

A run has 387 measurements in 39 series: six metrics of 30 training lines on each of 2 ranks, three of one
evaluation, three of each of 8 inference legs.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support import postgres

from tipcflow.domain import Measurement, Phase, Run, Status

TRAIN, EVAL, INFER = (f"norm_train_gpus_0,1_autocast_null/{name}" for name in ("train", "eval", "infer_gpu"))
LOGGED = {"loss": 5.0, "top1": 0.5, "lr": 0.01, "reader_cost": 0.03, "batch_cost": 0.05, "ips": 1156.0}
UNITS = {"reader_cost": "s", "batch_cost": "s", "ips": "images/s"}
LINES, RANKS, LEGS = 30, 2, 8
V100, A100 = (f"gpu/8x-tesla-{name}/1-nodes/2-ranks/driver-535" for name in ("v100", "a100"))
WEEK_S = 7 * 86_400.0
# A server with production settings except for its size: commits wait for the disk.
SERVER = ("max_connections=20", "shared_buffers=256MB", "max_wal_size=4GB")


def chain_name(number: int) -> str:
    """Every chain trains its own ResNet."""
    return f"PaddleClas/ResNet50_{number:03}/train_infer_python"


def a_run(chain: int, week: int, *, now: float, weeks: int) -> Run:
    """One week's run of a chain, week 0 the oldest. Every fifth week ran on other nodes, one in 50 failed."""
    begun = now - (weeks - week) * WEEK_S + chain
    word = Status.FAILED if (chain + week) % 50 == 0 else Status.PASS
    return Run(
        id=f"20261121t{week:02}{chain:04}-ResNet50_{chain:03}-0a1b",
        chain=chain_name(chain),
        suite="PaddleClas",
        model=f"ResNet50_{chain:03}",
        mode="lite_train_lite_infer",
        cluster="fleet",
        suite_commit=f"{week:040x}",
        framework="paddlepaddle-gpu 3.3.1",
        nodes=("node-a",),
        environment=A100 if week % 5 == 4 else V100,
        status=word,
        reason="" if word is Status.PASS else "train: exit code 1",
        created_at=begun,
        ended_at=begun + 240,
    )


def measured(run: Run, rng: random.Random, *, lines: int = LINES, ranks: int = RANKS) -> Iterator[Measurement]:
    """All measurements of one run; A100s are twice as fast."""
    faster = 0.5 if run.environment == A100 else 1.0
    one = {"run": run.id, "node": "node-a"}
    for rank in range(ranks):
        source = f"node-a/files/log/workerlog.{rank}"
        for line in range(lines):
            place = {
                "ordinal": line,
                "epoch": line // 10,
                "iteration": line % 10 * 10,
                "offset": 5000 + 180 * line,
            }
            for metric, base in LOGGED.items():
                value = round(base * (0.95 + 0.1 * rng.random()) * (faster if metric == "batch_cost" else 1.0), 5)
                yield Measurement(
                    **one, **place, step=TRAIN, rank=rank, metric=metric, phase=Phase.TRAIN, value=value,
                    unit=UNITS.get(metric, ""), source=source,
                )  # fmt: skip
    log = "node-a/logs/main.log"
    for metric in ("loss", "top1", "top5"):
        yield Measurement(
            **one,
            step=EVAL,
            rank=0,
            metric=metric,
            phase=Phase.EVAL,
            value=round(rng.random(), 5),
            source=log,
            offset=9,
        )
    for leg in range(LEGS):
        name = f"gpu_trt_off_fp32_bs{leg}"
        for metric in ("preprocess_time", "inference_time", "postprocess_time"):
            yield Measurement(
                **one, step=INFER, leg=name, metric=metric, phase=Phase.INFER, value=round(rng.random() * 30, 4),
                unit="ms", source=f"node-a/logs/{name}.log", offset=4000,
            )  # fmt: skip


@contextmanager
def database(kind: str) -> Iterator[str]:
    """An empty database of that kind on the local disk, removed afterwards."""
    if kind == "sqlite":
        with TemporaryDirectory(prefix="tipcflow-bench-") as folder:
            yield f"sqlite:///{Path(folder) / 'tipcflow.db'}"
        return
    with postgres.running(SERVER) as server:
        yield server.create()
