"""The database of pages.py: chains that run every week in several environment classes, and one chain with metrics.

All runs have a row. The newest run of each chain and environment class also has a plan, steps, attempts and legs,
and runs with a regression have check results; the other parts of older runs are read by no page of several chains.
"""

import random
import time
from collections.abc import Iterator

from sqlalchemy import Connection, insert, select
from tests.support.stories import INFER, TRAIN, a_plan, a_record, some_facts

from tipcflow.domain import CheckResult, Measurement, Phase, Run, Status
from tipcflow.domain.alert.entry import Alert, Moved
from tipcflow.domain.run.scaling import ScaledTopology, ScalingDocument
from tipcflow.domain.run_documents import AbDocument
from tipcflow.domain.triggers import AB
from tipcflow.execute.overview.node_history import HISTORY_DAYS, refresh_node_histories
from tipcflow.store import Store
from tipcflow.store import schema as tables
from tipcflow.store.engine import make_engine, writing
from tipcflow.store.github.attempts import PullAttempt, StartedChain
from tipcflow.store.results.checks import check_rows
from tipcflow.store.run import line_states
from tipcflow.store.run.line_states import LineKey

WEEK_S = 7 * 86_400.0
LOSSES, RANKS, CHECKS, ACTIVE = 200, 4, 40, 20
_AT_ONCE, _SOME = 20_000, 2000
REPOSITORY, ALERTS, PULLS, PULL_CHAINS, COMPARISONS, SERIES = "example/models", 200, 50, 40, 40, 40
# Of each environment class.
NODES = 16
# Number of the chain whose runs have metrics.
MEASURED = 999_000
_REASON = "; ".join(f"step {part} of the chain: what was found and what was expected" for part in range(4))


def a_run(chain: int, week: int, weeks: int, now: float, where: int = 0, nodes: int = NODES) -> Run:
    """The run of a chain in a week on two of the nodes; the last week is the present one."""
    half = nodes // 2
    begun = now - (weeks - week) * WEEK_S + 5.5 * 86_400 + 30 * (chain % 1000) + 10 * where
    status = _status(chain, weeks - 1 - week, where)
    return Run(
        id=f"20261121t{chain:06}-model_{chain}-{where:x}{week:04x}",
        chain=f"suite_{chain % 4}/model_{chain}/train_infer_python",
        suite=f"suite_{chain % 4}",
        model=f"model_{chain}",
        mode="lite_train_lite_infer",
        cluster=f"fleet-{where}",
        suite_commit=f"{chain % 4 * 1000 + week // 3:040x}",
        framework=f"paddlepaddle-gpu 3.4.0.dev{week:03}",
        nodes=(f"node-{where}-{chain % half}", f"node-{where}-{chain % half + half}"),
        environment=f"gpu/8x-some-gpu-{where}/2-nodes/4-ranks",
        status=status,
        reason="" if status is Status.PASS else _REASON,
        created_at=begun,
        ended_at=begun + 1200,
    )


def _status(chain: int, age: int, where: int) -> Status:
    """Return the status of a run `age` weeks ago: 6 % of the newest runs do not pass, many of them for weeks."""
    chance = chain * 31 + age * 17 + where * 7
    if (chain % 40 == 3 and age < 6) or (chain % 20 == 5 and 9 <= age < 12):
        return Status.REGRESSION
    if (chain % 50 == 7 and age == 0) or chance % 89 == 0:
        return Status.FAILED
    return Status.INFRA_FAILURE if chance % 97 == 0 else Status.PASS


def fill(url: str, chains: int, weeks: int, environments: int, nodes: int = NODES) -> Run:
    """Create the database, with that many nodes in each environment class. Returns a run with all parts."""
    Store.open(url).close()
    now, engine = time.time(), make_engine(url)
    places = ((chain, week) for week in range(weeks) for chain in range(chains))
    classes = range(environments)
    runs = (a_run(chain, week, weeks, now, where, nodes) for chain, week in places for where in classes)
    newest = [a_run(chain, weeks - 1, weeks, now, where, nodes) for chain in range(chains) for where in classes]
    batch: list[Run] = []
    for run in runs:
        batch.append(run)
        if len(batch) == _AT_ONCE:
            _store(engine, batch)
            batch = []
    _store(engine, batch)
    with writing(engine) as connection:
        _details(connection, newest)
        line_states.refresh(connection, [LineKey(run.chain, run.mode, run.environment) for run in newest])
    engine.dispose()
    with Store.open(url) as store:
        _one(store, newest[-1])
        for run in newest[:ACTIVE]:
            going = {
                "id": f"{run.id}-going",
                "status": None,
                "ended_at": None,
                "created_at": now - 600,
                "reason": "",
            }
            store.runs.create(run.model_copy(update=going), a_plan())
    return newest[-1]


def _store(engine: object, runs: list[Run]) -> None:
    if not runs:
        return
    alert = CheckResult(
        check="speed.baseline", status=Status.REGRESSION, reason=_REASON, step=TRAIN, metric="batch_cost"
    )
    others = [
        CheckResult(check=f"check_{n}", status=Status.PASS, reason="", values={"n": n}) for n in range(CHECKS)
    ]
    checks = [
        row for run in runs if run.status is Status.REGRESSION for row in check_rows(run.id, [alert, *others])
    ]
    with writing(engine) as connection:  # type: ignore[arg-type]
        connection.execute(insert(tables.runs), [run.model_dump() for run in runs])
        if checks:
            connection.execute(insert(tables.check_results), checks)


def _details(connection: Connection, runs: list[Run]) -> None:
    """Store plans, steps, attempts and legs."""
    plan = a_plan()
    rows: dict[str, list[dict[str, object]]] = {name: [] for name in ("plans", "steps", "attempts", "legs")}
    for run in runs:
        one: dict[str, object] = {"run": run.id}
        facts = {"params_file": plan.params_file, "params_sha256": plan.params_sha256, "body": plan}
        rows["plans"].append(one | {"schema_version": 1} | facts)
        for place, step in enumerate(plan.steps):
            named = one | {"step": step.id, "status": Status.PASS, "reason": ""}
            kind = {"position": place, "kind": step.kind, "variant": step.variant, "repeat": 1}
            rows["steps"].append(named | kind | {"world_size": step.world_size})
            times = {"started_at": run.created_at + 60 * place, "ended_at": run.created_at + 60 * place + 50}
            records = [a_record(run.id, step.id, node) for node in step.nodes]
            rows["attempts"].append(named | times | {"attempt": 1, "nodes": list(run.nodes), "records": records})
            for leg in step.legs:
                unset = {"end_reason": "", "exit_code": 0, "duration_s": 9.0, "record": None}
                rows["legs"].append(named | unset | {"leg": leg.id, "attempt": 1, "node": run.nodes[0]})
    for name, own in rows.items():
        connection.execute(insert(tables.metadata.tables[name]), own)


def _one(store: Store, run: Run) -> None:
    """Store losses and the smaller parts of one run, as a run does."""
    store.measurements.add(
        Measurement(
            run=run.id,
            step=TRAIN,
            attempt=1,
            node=run.nodes[0],
            rank=rank,
            metric="loss",
            phase=Phase.TRAIN,
            ordinal=ordinal,
            value=1 / (1 + ordinal),
            epoch=1,
            iteration=ordinal,
            source=f"workerlog.{rank}",
        )
        for rank in range(RANKS)
        for ordinal in range(LOSSES)
    )
    store.nodes.save(run.id, [some_facts(node) for node in run.nodes])
    store.checks.replace(
        run.id,
        [
            CheckResult(check=f"speed.metric_{n % 9}", status=Status.PASS, reason="as before", values={"n": n})
            for n in range(CHECKS)
        ],
    )


def measured_chain(store: Store, runs: int) -> list[Run]:
    """Store a chain whose runs have metrics: those of 4 ranks and 8 legs. Half of the runs cache their values."""
    made, now = [], time.time()
    for week in range(runs):
        run = a_run(MEASURED, week, runs, now).model_copy(update={"status": None, "ended_at": None, "reason": ""})
        store.runs.create(run, a_plan())
        for step, nodes in ((TRAIN, run.nodes), (INFER, run.nodes[:1])):
            attempt = store.attempts.open(run.id, step, nodes, run.created_at)
            records = [a_record(run.id, step, node) for node in nodes]
            store.attempts.close(run.id, step, attempt, Status.PASS, "", records, run.created_at + 60)
        store.measurements.add(_metrics_of(run))
        store.runs.finish(run.id, Status.PASS, "", run.created_at + 120)
        if week % 2:
            store.history.past_run(run.id)  # caches its metric values
        made.append(run)
    return made


def _metrics_of(run: Run) -> Iterator[Measurement]:
    train = {"run": run.id, "step": TRAIN, "node": run.nodes[0]}
    for rank in range(RANKS):
        for ordinal in range(LOSSES):
            for name in ("loss", "batch_cost", "ips"):
                value = 1 + ordinal % 7 / 100
                yield Measurement(**train, rank=rank, metric=name, phase=Phase.TRAIN, ordinal=ordinal, value=value)
        yield Measurement(**train, rank=rank, metric="peak_rss", phase=Phase.RESOURCE, value=3e8)
    for name in ("top1", "top5"):
        yield Measurement(**train, rank=0, metric=name, phase=Phase.EVAL, value=0.7)
    for leg in range(8):
        own = {"run": run.id, "step": INFER, "leg": f"cpu_leg_{leg}", "node": run.nodes[0]}
        for name in ("preprocess_time", "inference_time", "postprocess_time", "cpu_rss"):
            yield Measurement(**own, metric=name, phase=Phase.INFER, value=10.0 + leg)


def decisions(store: Store, runs: list[Run], measured: list[Run]) -> None:
    """Store alerts, pull requests, A/B comparisons and scaling chains of these runs, each of another chain.

    The newest pull request has a chain with metrics on its base.
    """
    now = store.now()
    for run in runs[:ALERTS]:
        moved = Moved(
            check="speed.baseline", step=TRAIN, metric="batch_cost", ratio=1.1, first=run.id, reason=_REASON
        )
        facts = {name: getattr(run, name) for name in ("chain", "suite", "mode", "environment")}
        times = {"state_at": now, "first_at": run.created_at, "newest_at": run.created_at}
        alert = Alert(**facts, **times, first=run.id, newest=run.id, metrics=(moved,), runs=1)
        store.tracked_alerts.open(alert, _REASON, at=now)
    for number in range(1, PULLS + 1):
        own = [*(measured[-1:] if number == PULLS else ()), *runs[:PULL_CHAINS]]
        chains = tuple(
            StartedChain(chain=run.chain, run=run.id, selected="its params file changed") for run in own
        )
        head = f"{number:040x}"
        store.pulls.add(PullAttempt(repository=REPOSITORY, number=number, head_sha=head, attempt=1, chains=chains))
    metric = {"step": TRAIN, "leg": "", "metric": "batch_cost", "ratio": 1.01, "low": 1.0, "high": 1.02}
    for run in runs[:COMPARISONS]:
        result = {"a": "A", "b": "B", "verdict": "B is the same within 2 %", "pairs": [{}] * 6, "status": "pass"}
        own = run.model_copy(update={"id": f"{run.id}-ab", "trigger": AB, "status": None, "ended_at": None})
        store.runs.create(own, a_plan())
        store.documents.put(own.id, AbDocument(result | {"metrics": [metric | {"outcome": "same"}]}))
        store.runs.finish(own.id, Status.PASS, "", run.created_at + 1200)
    for run in runs[:SERIES]:
        topologies = tuple(
            ScaledTopology(
                topology=f"1n{devices}g", batch_size_per_device=32, run=run.id, status=Status.PASS,
                devices=devices, repeats=5, average_speed=99.0 * devices, median_speed=99.0 * devices,
                spread=0.01, speedup=float(devices), efficiency=1.0,
            )
            for devices in (1, 2, 4, 8)
        )  # fmt: skip
        series = ScalingDocument(
            precision="fp32", repeats=5, rule="printed", skip=50, take=100, topologies=topologies
        )
        store.documents.put(run.id, series)


def node_speeds(url: str) -> None:
    """Store baselines of two speeds in the runs of the last quarter, for the history of nodes.

    Probes are left out: they need steps and attempts of all these runs.
    """
    noise, engine = random.Random(7), make_engine(url)
    ended = (
        tables.runs.c.created_at > time.time() - HISTORY_DAYS * WEEK_S / 7,
        tables.runs.c.ended_at.is_not(None),
    )
    with writing(engine) as connection:
        runs = connection.execute(select(tables.runs.c.id).where(*ended)).scalars().all()
        for start in range(0, len(runs), _SOME):
            batch = runs[start : start + _SOME]
            rows = [row for run in batch for row in check_rows(run, list(_baselines(noise)))]
            # Some runs have checks already.
            after = [{**row, "ordinal": row["ordinal"] + 1000, "position": row["position"] + 1000} for row in rows]
            connection.execute(insert(tables.check_results), after)
    engine.dispose()


def maintain(store: Store) -> float:
    """Find the history of nodes, as the DAG `maintenance` does. Returns the seconds that it took."""
    begun = time.perf_counter()
    refresh_node_histories(store)
    return time.perf_counter() - begun


def _baselines(noise: random.Random) -> Iterator[CheckResult]:
    for step, metric in ((TRAIN, "batch_cost"), (INFER, "inference_time")):
        values = {"value": 1.0, "baseline": 1.0, "ratio": noise.gauss(1.0, 0.01)}
        yield CheckResult(
            check=f"speed.{metric}",
            status=Status.PASS,
            reason="as before",
            step=step,
            metric=metric,
            values=values,
        )
