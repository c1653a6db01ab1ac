"""Facts of a run for the checks, and the past runs for comparison."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from math import isfinite
from statistics import median
from typing import Any

from sqlalchemy import ColumnElement, exists, func, not_, select

from tipcflow.domain import (
    Compat,
    Facts,
    LegKey,
    LossKey,
    Measurement,
    MetricKey,
    PastRun,
    Phase,
    Plan,
    Run,
    Status,
    numbers_of,
)
from tipcflow.domain.numbers.changes import origin_of
from tipcflow.domain.numbers.metrics import PROBES, is_loss
from tipcflow.domain.run_documents import (
    AutologDocument,
    CutDocument,
    EngineDocument,
    FailuresDocument,
    FoundDocument,
    LinesDocument,
    MergeBaseDocument,
    NumbersDocument,
    PredictionsDocument,
    ProgressDocument,
    RanksDocument,
    ReporterDocument,
    ReportersDocument,
    ReportsDocument,
    Root,
)
from tipcflow.domain.triggers import SIDE_RUNS
from tipcflow.store.base import Database
from tipcflow.store.queries.finished import ACCEPTED, Finished
from tipcflow.store.results.documents import Documents
from tipcflow.store.results.nodes import Nodes
from tipcflow.store.run.attempts import Attempts
from tipcflow.store.run.plans import Plans
from tipcflow.store.run.runs import Runs
from tipcflow.store.run.steps import Steps
from tipcflow.store.schema import documents, runs, series
from tipcflow.store.series.curves import curves_of
from tipcflow.store.series.measurements import measurements_of
from tipcflow.store.series.summaries import last_attempts

_JUDGED = (*ACCEPTED, Status.FAILED, Status.REGRESSION, Status.UNCONFIRMED)
# Limits of samples used to evaluate a run: spread over each series, plus all samples that are not finite.
# Losses have their own limit: curves of two runs are compared, regardless of the other metrics that the runs
# logged.
LOSSES, OTHERS = 50_000, 100_000
# The version of the rule by which `numbers_of` computes a run's metrics.
RULE = 3
Confirms = Mapping[MetricKey, tuple[float, ...]]
_FACTS: tuple[type[Root[Any]], ...] = (
    PredictionsDocument,
    AutologDocument,
    EngineDocument,
    RanksDocument,
    LinesDocument,
    ProgressDocument,
    CutDocument,
    ReportsDocument,
)


class History(Finished):
    """Reads what other parts store, and compares runs."""

    caches = True  # the numbers of ended runs; connections of pages cannot write

    def __init__(
        self,
        database: Database,
        *,
        runs: Runs,
        plans: Plans,
        steps: Steps,
        attempts: Attempts,
        nodes: Nodes,
        documents: Documents,
    ) -> None:
        super().__init__(database)
        self._runs, self._plans, self._steps, self._attempts = runs, plans, steps, attempts
        self._nodes, self._documents = nodes, documents

    def facts(self, run_id: str, *, losses: Collection[str] = ()) -> Facts:
        """Return all facts of a run; records and measurements of the last attempt of each step.

        A run that ended before it had a plan gets an empty plan: it executed nothing.

        Args:
            losses: patterns of names that the suite declares to be losses.

        Raises:
            ConfigError: when there is no such run.
        """
        run = self._runs.get(run_id)
        return self._facts(
            run,
            self._plans.get_or_none(run_id),
            measurements=tuple(self._last_measurements(run_id, losses)),
            **self._contents(run_id, _FACTS),
        )

    def facts_without_samples(self, run: Run, plan: Plan | None, medians: Mapping[MetricKey, float]) -> Facts:
        """Return the facts of a run for display: one median latency per leg instead of all measurements, and of
        the documents only `engine`.

        Args:
            plan: the run's plan; None for none, or if this version cannot read it.
            medians: `leg_medians` of the run.
        """
        return self._facts(
            run,
            plan,
            measurements=tuple(_latencies(run.id, medians)),
            **self._contents(run.id, (EngineDocument,)),
        )

    def _facts(self, run: Run, plan: Plan | None, **contents: Any) -> Facts:
        last = {attempt.step: attempt for attempt in self._attempts.of(run.id)}
        records = {(r.step, r.node, r.leg): r for attempt in last.values() for r in attempt.records}
        records |= {(r.step, r.node, r.leg): r for r in self._steps.leg_records(run.id)}
        step_statuses = self._steps.statuses(run.id)
        leg_statuses = self._steps.leg_statuses(run.id)
        all_statuses = {**{LegKey(step): pair for step, pair in step_statuses.items()}, **leg_statuses}
        failures = (self._documents.get(run.id, FailuresDocument) or FailuresDocument()).of(last.values())
        return Facts(
            run=run.id,
            plan=plan or _nothing_planned(run),
            records=tuple(records.values()),
            node_facts=tuple(self._nodes.facts(run.id)),
            step_status={step: status for step, (status, _) in step_statuses.items()},
            leg_status={leg: status for leg, (status, _) in leg_statuses.items()},
            step_reason={key: reason for key, (_, reason) in all_statuses.items() if reason},
            failures={key.step: failure for key, failure in failures.items()},
            reporter=self.reporter(run.id),
            **contents,
        )

    def _contents(self, run_id: str, kinds: tuple[type[Root[Any]], ...]) -> dict[str, Any]:
        loaded = self._documents.several(run_id, kinds)
        return {kind.NAME: document.root for kind in kinds if (document := loaded.get(kind)) is not None}

    def reporter(self, run_id: str) -> str:
        """Return the AutoLog version of the reports of the last attempts of a run's legs; '' without one."""
        documents = self._documents.several(run_id, (ReportersDocument, ReporterDocument))
        if known := documents.get(ReportersDocument):
            return ", ".join(dict.fromkeys(known.root.values()))
        whole = documents.get(ReporterDocument)
        return whole.root if whole else ""

    def planned_before(
        self, run: Run, *, commits: Collection[str] | None = None, ended_by: float | None = None
    ) -> list[str]:
        """Return at most three judged runs before a run, newest first: of its chain, mode and semantics, of any
        status and environment. They show what was declared, not how fast it was.

        Args:
            commits, ended_by: as for `accepted`.
        """
        change = exists().where(documents.c.run == runs.c.id, documents.c.name == MergeBaseDocument.NAME)
        wanted = [~change if commits is None else runs.c.suite_commit.in_(commits)]
        if ended_by is not None:
            wanted.append(func.coalesce(runs.c.ended_at, runs.c.created_at) <= ended_by)
        query = (
            select(runs.c.id)
            .where(runs.c.chain == run.chain, runs.c.mode == run.mode, runs.c.compat == run.compat, *wanted)
            .where(runs.c.status.in_(_JUDGED), runs.c.id != run.id, runs.c.trigger.not_in(SIDE_RUNS))
            .where(runs.c.created_at < run.created_at)
            .order_by(runs.c.created_at.desc(), runs.c.id.desc())
            .limit(3)
        )
        with self._read() as connection:
            return list(connection.execute(query).scalars())

    def elsewhere(self, run: Run, *, enough: int = 1) -> tuple[str, int]:
        """Return (the environment class with most accepted runs of a run's chain, mode and semantics, their
        number); ('', 0) if the run's own class has as many as needed, or no class has more.

        Args:
            enough: number of accepted runs with which a run is compared.
        """
        query = (
            select(runs.c.environment, func.count())
            .where(runs.c.chain == run.chain, runs.c.mode == run.mode, runs.c.compat == run.compat)
            .where(runs.c.status.in_(ACCEPTED), runs.c.id != run.id, runs.c.trigger.not_in(SIDE_RUNS))
            .where(runs.c.created_at < run.created_at)
            .group_by(runs.c.environment)
        )
        with self._read() as connection:
            counts = {environment: int(count) for environment, count in connection.execute(query).all()}
        own = counts.pop(run.environment, 0)
        if not counts or own >= enough:
            return "", 0
        other = max(sorted(counts), key=lambda environment: counts[environment])
        return (other, counts[other]) if counts[other] > own else ("", 0)

    def node_probes(self, run: Run, *, limit: int = 20) -> dict[str, dict[str, tuple[float, ...]]]:
        """Return node -> probe -> median in the last accepted runs of any chain on this cluster before the run.

        Args:
            limit: maximum number of runs per node.
        """
        earlier = (
            select(runs.c.id)
            .where(runs.c.cluster == run.cluster, runs.c.id != run.id, runs.c.created_at < run.created_at)
            .where(runs.c.status.in_(ACCEPTED))
            .order_by(runs.c.created_at.desc(), runs.c.id.desc())
            .limit(limit * max(1, len(run.nodes)))
        )
        with self._read() as connection:
            ids = list(connection.execute(earlier).scalars())
            query = select(series.c.run, series.c.node, series.c.metric, series.c.median).where(
                series.c.run.in_(ids), series.c.metric.in_(PROBES), series.c.node.in_(run.nodes)
            )
            rows = connection.execute(query).all()
        values: dict[tuple[str, str], dict[str, list[float]]] = {}
        for run_id, node, name, value in rows:
            if value is not None:
                values.setdefault((node, name), {}).setdefault(run_id, []).append(value)
        probes: dict[str, dict[str, tuple[float, ...]]] = {}
        for (node, name), by_run in values.items():
            newest = [run_id for run_id in ids if run_id in by_run][:limit]
            probes.setdefault(node, {})[name] = tuple(median(by_run[run_id]) for run_id in reversed(newest))
        return probes

    def past_run(self, run_id: str, *, losses: Collection[str] = ()) -> PastRun:
        """Return the metrics of a run for comparison with later runs.

        Args:
            losses: patterns of names that the suite declares to be losses.

        Raises:
            ConfigError: when there is no such run.
        """
        run = self._runs.get(run_id)
        documents = self._documents.several(run_id, (FoundDocument, LinesDocument))
        numbers = self._numbers(run)
        return PastRun(
            run=run.id,
            seed=run.seed,
            framework=run.framework,
            suite_sha256=run.suite_sha256,
            origin=origin_of(run, self._nodes.facts(run_id)),
            medians=numbers.numbers,
            confirms=numbers.confirms,
            found=(documents.get(FoundDocument) or FoundDocument()).root,
            lines=(documents.get(LinesDocument) or LinesDocument()).root,
            losses=self._curves(run_id, losses),
        )

    def _numbers(self, run: Run) -> NumbersDocument:
        """Return `numbers_of` a run; those of an ended run are cached: every later run of its chain needs them."""
        samples, cached = self._sample_count(run.id), self._documents.get(run.id, NumbersDocument)
        if cached and (cached.rule, cached.samples) == (RULE, samples):
            return cached
        numbers, confirms = numbers_of(self._last_measurements(run.id)), cached.confirms if cached else {}
        document = NumbersDocument(rule=RULE, samples=samples, numbers=numbers, confirms=confirms)
        if self.caches and run.status is not None:
            self._documents.put(run.id, document)
        return document

    def cache_numbers(
        self, run_id: str, measurements: Iterable[Measurement], confirms: Confirms | None = None
    ) -> None:
        """Store the metric values of a run that is being judged: pages and later runs read them.

        Args:
            measurements: of the run's facts.
            confirms: the values of its confirm runs.
        """
        finite = {key: tuple(filter(isfinite, values)) for key, values in (confirms or {}).items()}
        known = {key: values for key, values in finite.items() if values}
        samples, numbers = self._sample_count(run_id), numbers_of(measurements)
        self._documents.put(run_id, NumbersDocument(rule=RULE, samples=samples, numbers=numbers, confirms=known))

    def _sample_count(self, run_id: str) -> int:
        with self._read() as connection:
            query = last_attempts(select(func.coalesce(func.sum(series.c.n), 0)), run_id)
            return int(connection.execute(query).scalar_one())

    def _last_measurements(self, run_id: str, listed: Collection[str] = ()) -> list[Measurement]:
        losses = self._is_loss(run_id, listed)
        with self._read() as connection:
            others = last_attempts(select(series), run_id).where(not_(losses))
            return [
                *measurements_of(connection, last_attempts(select(series), run_id).where(losses), LOSSES),
                *measurements_of(connection, others, OTHERS),
            ]

    def _curves(self, run_id: str, listed: Collection[str]) -> dict[LossKey, tuple[float, ...]]:
        losses = self._is_loss(run_id, listed)
        with self._read() as connection:
            return curves_of(connection, last_attempts(select(series), run_id).where(losses), LOSSES)

    def _is_loss(self, run_id: str, listed: Collection[str]) -> ColumnElement[bool]:
        """Select the series of a run that are training losses."""
        train = series.c.phase == Phase.TRAIN.value
        with self._read() as connection:
            names = connection.execute(last_attempts(select(series.c.metric).distinct(), run_id).where(train))
            return train & series.c.metric.in_([name for name in names.scalars() if is_loss(name, listed)])


def _latencies(run_id: str, medians: Mapping[MetricKey, float]) -> Iterator[Measurement]:
    for key, value in medians.items():
        if key.metric == "inference_time":
            yield Measurement(
                run=run_id,
                step=key.step,
                leg=key.leg,
                node="median",
                metric=key.metric,
                phase=Phase.INFER,
                value=value,
            )


def _nothing_planned(run: Run) -> Plan:
    return Plan(
        chain=run.chain,
        suite=run.suite,
        dialect="",
        model=run.model,
        params_file="",
        params_sha256="",
        mode=run.mode,
        compat=Compat(run.compat),
        cluster=run.cluster,
    )
