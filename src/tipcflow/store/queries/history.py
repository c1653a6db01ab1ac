"""Facts of a run for the checks, and the past runs for comparison."""

from collections.abc import Collection
from statistics import median
from typing import Any

from sqlalchemy import ColumnElement, exists, func, not_, or_, select

from tipcflow.domain import Compat, Facts, Measurement, PastRun, Phase, Plan, Run, Status, losses_of, numbers_of
from tipcflow.domain.numbers.changes import origin_of
from tipcflow.domain.numbers.history import INCOMPARABLE
from tipcflow.domain.numbers.metrics import PROBES, is_loss
from tipcflow.domain.run.failure import FAILURES, failures_of
from tipcflow.store.documents import DocumentsMixin
from tipcflow.store.runs import RunsMixin
from tipcflow.store.schema import documents, runs, series
from tipcflow.store.series.measurements import MeasurementsMixin, measurements_of
from tipcflow.store.series.summaries import last_attempts
from tipcflow.store.steps import StepsMixin

_ACCEPTED = (Status.PASS, Status.IMPROVEMENT)
# Limits of samples used to evaluate a run: spread over each series, plus all samples that are not finite.
# Losses have their own limit: curves of two runs are compared, regardless of the other metrics that the runs
# logged.
LOSSES, OTHERS = 50_000, 100_000
# The document of a run's metrics, and the version of the rule by which `numbers_of` computes them.
NUMBERS, RULE = "numbers", 2
_DOCUMENTS = ("predictions", "autolog", "engine", "ranks", "lines", "cut", "reports")


class HistoryMixin(RunsMixin, StepsMixin, MeasurementsMixin, DocumentsMixin):
    """Combines the data of the other mixins."""

    def facts(self, run_id: str) -> Facts:
        """Return all facts of a run; records and measurements of the last attempt of each step.

        A run that ended before it had a plan gets an empty plan: it executed nothing.

        `predictions`, `autolog`, `reports`, `engine`, `ranks`, `lines` and `cut` come from the documents of these
        names, `reporter` from `reporters`.

        Raises:
            ConfigError: when there is no such run.
        """
        run = self.get_run(run_id)
        plan = self.plan_or_none(run_id) or _nothing_planned(run)
        last = {attempt.step: attempt for attempt in self.attempts(run_id)}
        records = {(r.step, r.node, r.leg): r for attempt in last.values() for r in attempt.records}
        records |= {(r.step, r.node, r.leg): r for r in self.leg_records(run_id)}
        said = self.step_statuses(run_id)
        said_of_legs = self.leg_statuses(run_id)
        failures = failures_of(self.document(run_id, FAILURES), last.values())
        return Facts(
            run=run_id,
            plan=plan,
            records=tuple(records.values()),
            node_facts=tuple(self.node_facts(run_id)),
            measurements=tuple(self._last_measurements(run_id)),
            step_status={step: status for step, (status, _) in said.items()},
            leg_status={leg: status for leg, (status, _) in said_of_legs.items()},
            step_reason={key: reason for key, (_, reason) in {**said, **said_of_legs}.items() if reason},
            failures={step: failure for (step, _), failure in failures.items()},
            **self._fact_documents(run_id),
        )

    def _fact_documents(self, run_id: str) -> dict[str, Any]:
        return {**self.several_documents(run_id, _DOCUMENTS), "reporter": self.reporter(run_id)}

    def reporter(self, run_id: str) -> str:
        """Return the AutoLog version of the reports of the last attempts of a run's legs; '' without one."""
        kept = self.several_documents(run_id, ("reporters", "reporter"))
        known = kept.get("reporters")
        # Until 2026-11-22, the reporter was one document of the run, `reporter`.
        return str(kept.get("reporter", "")) if known is None else ", ".join(dict.fromkeys(known.values()))

    def accepted_runs(
        self,
        chain: str,
        mode: str,
        environment: str,
        *,
        compat: str = "spec",
        exclude: str = "",
        commits: Collection[str] | None = None,
        seeds: Collection[int | None] | None = None,
        ended_by: float | None = None,
        limit: int = 20,
    ) -> list[str]:
        """Return the ids of runs that are valid for comparison, newest first: accepted, with the same chain, mode,
        semantics (`bash` trains other epochs than `spec`) and environment. Confirmation runs and runs with the
        document `INCOMPARABLE` are excluded.

        Args:
            commits: only runs of these commits of the suite, whatever their purpose. None: runs of changes (with a
                merge base) are excluded, because it is unknown whether the change was accepted.
            seeds: only runs with one of these seeds.
            ended_by: only runs that had ended by then, seconds since the epoch.
        """
        change = exists().where(documents.c.run == runs.c.id, documents.c.name == "base")
        wanted = [~change if commits is None else runs.c.suite_commit.in_(commits)]
        wanted.append(~exists().where(documents.c.run == runs.c.id, documents.c.name == INCOMPARABLE))
        if seeds is not None:
            wanted.append(or_(runs.c.seed.in_([seed for seed in seeds if seed is not None]), *_unseeded(seeds)))
        if ended_by is not None:
            wanted.append(func.coalesce(runs.c.ended_at, runs.c.created_at) <= ended_by)
        query = (
            select(runs.c.id)
            .where(runs.c.chain == chain, runs.c.mode == mode, runs.c.environment == environment)
            .where(runs.c.compat == compat, *wanted)
            .where(runs.c.status.in_(_ACCEPTED), runs.c.id != exclude, runs.c.trigger != "confirm")
            .order_by(runs.c.created_at.desc(), runs.c.id.desc())
            .limit(limit)
        )
        with self._read() as connection:
            return list(connection.execute(query).scalars())

    def elsewhere(self, run: Run) -> tuple[str, int]:
        """Return (the environment class with most accepted runs of a run's chain, mode and semantics, their
        number); ('', 0) if the run's own class has any."""
        query = (
            select(runs.c.environment, func.count())
            .where(runs.c.chain == run.chain, runs.c.mode == run.mode, runs.c.compat == run.compat)
            .where(runs.c.status.in_(_ACCEPTED), runs.c.id != run.id, runs.c.trigger != "confirm")
            .where(runs.c.created_at < run.created_at)
            .group_by(runs.c.environment)
        )
        with self._read() as connection:
            counts = {environment: int(count) for environment, count in connection.execute(query).all()}
        if not counts or run.environment in counts:
            return "", 0
        other = max(sorted(counts), key=lambda environment: counts[environment])
        return other, counts[other]

    def node_probes(self, run: Run, *, limit: int = 20) -> dict[str, dict[str, tuple[float, ...]]]:
        """Return node -> probe -> median in the last accepted runs of any chain on this cluster before the run.

        Args:
            limit: maximum number of runs per node.
        """
        earlier = (
            select(runs.c.id)
            .where(runs.c.cluster == run.cluster, runs.c.id != run.id, runs.c.created_at < run.created_at)
            .where(runs.c.status.in_(_ACCEPTED))
            .order_by(runs.c.created_at.desc(), runs.c.id.desc())
            .limit(limit * max(1, len(run.nodes)))
        )
        with self._read() as connection:
            ids = list(connection.execute(earlier).scalars())
            query = select(series.c.run, series.c.node, series.c.metric, series.c.median).where(
                series.c.run.in_(ids), series.c.metric.in_(PROBES), series.c.node.in_(run.nodes)
            )
            rows = connection.execute(query).all()
        found: dict[tuple[str, str], dict[str, list[float]]] = {}
        for one, node, name, value in rows:
            if value is not None:
                found.setdefault((node, name), {}).setdefault(one, []).append(value)
        probes: dict[str, dict[str, tuple[float, ...]]] = {}
        for (node, name), by_run in found.items():
            newest = [one for one in ids if one in by_run][:limit]
            probes.setdefault(node, {})[name] = tuple(median(by_run[one]) for one in reversed(newest))
        return probes

    def suite_commits(self, chain: str) -> set[str]:
        """Return the commits of the suite that the chain was run at."""
        query = select(runs.c.suite_commit).where(runs.c.chain == chain).distinct()
        with self._read() as connection:
            return set(connection.execute(query).scalars()) - {""}

    def past_run(self, run_id: str) -> PastRun:
        """Return the metrics of a run for comparison with later runs.

        Raises:
            ConfigError: when there is no such run.
        """
        run = self.get_run(run_id)
        return PastRun(
            run=run.id,
            seed=run.seed,
            framework=run.framework,
            suite_sha256=run.suite_sha256,
            origin=origin_of(run, self.node_facts(run_id)),
            medians=self._numbers(run),
            found=tuple(self.document(run_id, "found") or ()),
            lines=self.document(run_id, "lines") or {},
            losses=losses_of(self._last_losses(run_id)),
        )

    def _numbers(self, run: Run) -> dict[str, float]:
        """Return `numbers_of` a run. Those of an ended run are cached, because every later run of its chain needs
        them."""
        with self._read() as connection:
            mine = last_attempts(select(func.coalesce(func.sum(series.c.n), 0)), run.id)
            samples = int(connection.execute(mine).scalar_one())
        kept = self.document(run.id, NUMBERS)
        if kept and (kept.get("rule"), kept.get("samples")) == (RULE, samples):
            return dict(kept["numbers"])
        numbers = numbers_of(self._last_measurements(run.id))
        if run.status is not None:
            self.put_document(run.id, NUMBERS, {"rule": RULE, "samples": samples, "numbers": numbers})
        return numbers

    def _last_measurements(self, run_id: str) -> list[Measurement]:
        losses = self._is_loss(run_id)
        with self._read() as connection:
            others = last_attempts(select(series), run_id).where(not_(losses))
            return [
                *measurements_of(connection, last_attempts(select(series), run_id).where(losses), LOSSES),
                *measurements_of(connection, others, OTHERS),
            ]

    def _last_losses(self, run_id: str) -> list[Measurement]:
        losses = self._is_loss(run_id)
        with self._read() as connection:
            return measurements_of(connection, last_attempts(select(series), run_id).where(losses), LOSSES)

    def _is_loss(self, run_id: str) -> ColumnElement[bool]:
        """Select the series of a run that are training losses."""
        train = series.c.phase == Phase.TRAIN.value
        with self._read() as connection:
            names = connection.execute(last_attempts(select(series.c.metric).distinct(), run_id).where(train))
            return train & series.c.metric.in_([name for name in names.scalars() if is_loss(name)])


def _unseeded(seeds: Collection[int | None]) -> list[ColumnElement[bool]]:
    return [runs.c.seed.is_(None)] if None in seeds else []


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
