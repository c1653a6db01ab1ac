"""Queries over finished runs: how long they took, which came before a run, and which it is compared with."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from statistics import median

from sqlalchemy import ColumnElement, exists, func, literal, or_, select

from tipcflow.domain import LegKey, Run, Status, without_repeat
from tipcflow.domain.build import WHEEL
from tipcflow.domain.numbers.environment import unlike_before
from tipcflow.domain.run_documents import IncomparableDocument, MergeBaseDocument, QuarantinedDocument
from tipcflow.domain.triggers import CONFIRM, SIDE_RUNS
from tipcflow.store.base import Part, among
from tipcflow.store.schema import attempts, documents, legs, runs, steps

ACCEPTED = (Status.PASS, Status.IMPROVEMENT)
# Number of other accepted runs (`min_history` of the shipped policies) from which on runs that tested a wheel do
# not count.
_ENOUGH = 5

# Complete runs: the duration of a run that crashed early is not that of the chain.
_WHOLE = (Status.PASS, Status.IMPROVEMENT, Status.UNCONFIRMED, Status.REGRESSION)
# Complete runs, and runs that completed enough to be evaluated as failed.
_JUDGED = (*_WHOLE, Status.FAILED)
# The newest runs of a chain, because frameworks and nodes get faster.
_RECENT = 5


class Finished(Part):
    """Table runs, rows of ended runs."""

    def accepted(
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
        statuses: Collection[Status] = ACCEPTED,
    ) -> list[str]:
        """Return the ids of runs that are valid for comparison, newest first: accepted, with the same chain, mode,
        semantics (`bash` trains other epochs than `spec`) and environment. Confirm runs and runs with the
        document `IncomparableDocument` or `QuarantinedDocument` are excluded.

        Args:
            commits: only runs of these commits of the suite, whatever their purpose. None: runs of changes (with a
                merge base) are excluded, because it is unknown whether the change was accepted.
            seeds: only runs with one of these seeds.
            ended_by: only runs that had ended by then, seconds since the epoch.
            statuses: of the runs, instead of the accepted ones.

        Runs that tested a wheel count only if there are too few others: a build under test may never be released,
        so it does not replace the version of the nodes.
        """
        change = exists().where(documents.c.run == runs.c.id, documents.c.name == MergeBaseDocument.NAME)
        wanted = [~change if commits is None else runs.c.suite_commit.in_(commits)]
        excluded = documents.c.name.in_((IncomparableDocument.NAME, QuarantinedDocument.NAME))
        wanted.append(~exists().where(documents.c.run == runs.c.id, excluded))
        if seeds is not None:
            wanted.append(or_(runs.c.seed.in_([seed for seed in seeds if seed is not None]), *_unseeded(seeds)))
        if ended_by is not None:
            wanted.append(func.coalesce(runs.c.ended_at, runs.c.created_at) <= ended_by)
        query = (
            select(runs.c.id)
            .where(runs.c.chain == chain, runs.c.mode == mode, runs.c.environment == environment)
            .where(runs.c.compat == compat, *wanted)
            .where(runs.c.status.in_(statuses), runs.c.id != exclude, runs.c.trigger != CONFIRM)
            .order_by(runs.c.created_at.desc(), runs.c.id.desc())
            .limit(limit)
        )
        with self._read() as connection:
            ids = list(connection.execute(query.where(~runs.c.framework.contains(WHEEL))).scalars())
            return ids if len(ids) >= min(limit, _ENOUGH) else list(connection.execute(query).scalars())

    def executed(self, run_ids: Sequence[str], parts: Collection[LegKey]) -> dict[LegKey, list[str]]:
        """Return step or leg -> those of the runs in which it passed, in their order.

        Args:
            run_ids: the cost is proportional to their number.
            parts: without repeats; every repeat of a step counts.
        """
        names = {part.leg for part in parts if part.leg}
        passed = select(steps.c.run, steps.c.step, literal("")).where(steps.c.status == Status.PASS)
        legs_passed = select(legs.c.run, legs.c.step, legs.c.leg).where(legs.c.status == Status.PASS)
        with self._read() as connection:
            rows = connection.execute(passed.where(among(connection, steps.c.run, run_ids))).all()
            if names:
                of_runs = legs_passed.where(among(connection, legs.c.run, run_ids), legs.c.leg.in_(names))
                rows = [*rows, *connection.execute(of_runs)]
        executed: dict[LegKey, set[str]] = {}
        for run, step, leg in rows:
            if (part := LegKey(without_repeat(step), leg)) in parts:
                executed.setdefault(part, set()).add(run)
        return {part: [run for run in run_ids if run in own] for part, own in executed.items()}

    def durations(self, mode: str) -> dict[str, float]:
        """Return chain -> median duration of its newest complete runs in a mode, seconds from the first attempt
        to the end.

        Time spent waiting for slots does not count. Chains without such a run are not included.
        """
        began = func.min(attempts.c.started_at)
        query = (
            select(runs.c.chain, (runs.c.ended_at - began).label("seconds"))
            .join(attempts, attempts.c.run == runs.c.id)
            .where(runs.c.mode == mode, runs.c.status.in_(_WHOLE), runs.c.trigger.not_in(SIDE_RUNS))
            .group_by(runs.c.id, runs.c.chain, runs.c.ended_at, runs.c.created_at)
            .order_by(runs.c.created_at.desc(), runs.c.id.desc())
        )
        took: dict[str, list[float]] = defaultdict(list)
        with self._read() as connection:
            for chain, seconds in connection.execute(query):
                if len(took[chain]) < _RECENT:
                    took[chain].append(float(seconds))
        return {chain: median(values) for chain, values in took.items()}

    def unlike_before(self, run: Run) -> str:
        """Describe how a run's environment differs from that of the previous run of its chain in that mode; ''
        if it does not differ, or there is no previous run."""
        before = next(iter(self.earlier(run, 1)), None)
        return "" if before is None else unlike_before(run.environment, before.environment, before.id)

    def earlier(self, run: Run, limit: int) -> list[Run]:
        """Return runs of the same chain and mode that began before a run and completed enough to be evaluated,
        newest first."""
        query = (
            select(runs)
            .where(runs.c.chain == run.chain, runs.c.mode == run.mode, runs.c.id != run.id)
            .where(runs.c.created_at < run.created_at, runs.c.status.in_(_JUDGED))
            .where(runs.c.trigger.not_in(SIDE_RUNS))
            .order_by(runs.c.created_at.desc(), runs.c.id.desc())
            .limit(limit)
        )
        with self._read() as connection:
            return [Run.model_validate(dict(row)) for row in connection.execute(query).mappings()]


def _unseeded(seeds: Collection[int | None]) -> list[ColumnElement[bool]]:
    return [runs.c.seed.is_(None)] if None in seeds else []
