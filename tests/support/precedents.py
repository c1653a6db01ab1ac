"""Earlier runs, put straight into the database: a history without the weeks that it takes."""

import random

from tests.support.stories import INFER, T0, TRAIN, a_run, losses, record_run

from tipcflow.domain import CheckResult, Measurement, Phase, Run, Status
from tipcflow.domain.run_documents import FoundDocument, LinesDocument
from tipcflow.store import Store

WEEK_S = 7 * 86_400.0
BATCH_S, LATENCY_MS, TOP1, RSS = 0.2, 12.0, 0.71, 3.2e8


def remember(
    store: Store, like: Run, *, runs: int, chain: str = "", probes: bool = False, noise: float = 0.0
) -> None:
    """Earlier accepted runs in which everything was as in this one.

    Args:
        chain: whose runs they are; '' for the run's own.
        probes: whether they have the probes of their nodes: without these no busy node explains anything.
        noise: relative difference of times between one run and the next; without noise, one confirm run suffices.
    """
    like = like.model_copy(update={"chain": chain or like.chain})
    plan = store.plans.get(like.id).model_copy(update={"chain": like.chain})
    measured = [one for one in store.measurements.of(like.id) if probes or not one.metric.startswith("probe.")]
    for number in range(1, runs + 1):
        run = f"{like.chain.rpartition('/')[2]}-{number}-{like.id}"
        at = like.created_at - 1000.0 * (runs + 1 - number)
        store.runs.create(like.model_copy(update={"id": run, "created_at": at, "status": None, "ended_at": None}))
        store.plans.replace(run, plan)
        for step in {one.step for one in measured}:
            store.attempts.open(run, step, like.nodes, at)
        factor = 1 + noise * (number % 3 - 1)
        store.measurements.add(
            one.model_copy(update={"run": run, "value": one.value * (factor if one.unit == "s" else 1.0)})
            for one in measured
        )
        for kind in (FoundDocument, LinesDocument):
            if kept := store.documents.get(like.id, kind):
                store.documents.put(run, kept)
        store.runs.finish(run, Status.PASS, "", at + 60)


def measured(run: Run, rng: random.Random, *, slower: float = 1.0, noise: float = 0.005) -> list[Measurement]:
    """Batch time of the training, an accuracy, a latency per leg, peak memory."""

    def near(value: float) -> float:
        return value * (1 + rng.gauss(0, noise))

    train = {"run": run.id, "step": TRAIN, "node": "node-a"}
    values = [
        Measurement(
            **train, rank=0, metric="batch_cost", phase=Phase.TRAIN, value=slower * near(BATCH_S), unit="s"
        ),
        Measurement(**train, rank=0, metric="top1", phase=Phase.EVAL, value=near(TOP1)),
        Measurement(**train, rank=0, metric="peak_rss", phase=Phase.RESOURCE, value=near(RSS), unit="bytes"),
    ]
    for leg, factor in (("cpu_onednn_on", 1.0), ("cpu_onednn_off", 2.0)):
        own = {"run": run.id, "step": INFER, "leg": leg, "node": "node-a"}
        latency = factor * near(LATENCY_MS)
        values.append(Measurement(**own, metric="inference_time", phase=Phase.INFER, value=latency, unit="ms"))
    return values


def put_run(
    store: Store,
    number: int,
    *,
    status: Status = Status.PASS,
    slower: float = 1.0,
    noise: float = 0.005,
    **fields: object,
) -> Run:
    """Store a week's run with metrics."""
    known = {"created_at": T0 + number * WEEK_S, "environment": "cpu/some-cpu/2-nodes/4-ranks", "seed": 0}
    known |= {"framework": "paddle 3.3.1", "suite_commit": f"{number // 5:040x}"}
    run = record_run(store, a_run(f"run-{number:02}", **(known | fields)), status=None)
    rng = random.Random(number)
    store.measurements.add(measured(run, rng, slower=slower, noise=noise))
    store.measurements.add(losses(run.id, [2.0 / (1 + at) + 0.01 * rng.random() for at in range(40)], rank=1))
    word = Status.REGRESSION if status is Status.REGRESSION else Status.PASS
    store.checks.replace(
        run.id,
        [
            CheckResult(check="ran.steps", status=Status.PASS, reason="all planned steps have a status"),
            CheckResult(
                check="speed.batch_cost",
                status=word,
                reason=f"{slower * BATCH_S:.3f} s, {slower:.3f} x the baseline",
                step=TRAIN,
                metric="batch_cost",
            ),
        ],
    )
    store.runs.finish(run.id, status, "" if status is Status.PASS else "speed.batch_cost", run.created_at + 60)
    return store.runs.get(run.id)


def weeks(store: Store, count: int, *, noise: float = 0.005) -> list[Run]:
    """Store that many accepted weekly runs; the framework changes after the tenth."""
    versions = ("paddle 3.3.1", "paddle 3.4.0")
    return [put_run(store, week, noise=noise, framework=versions[week >= 10]) for week in range(count)]
