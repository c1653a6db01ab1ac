"""Runs: identity, status and result."""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Column, RowMapping, Select, func, insert, select, update

from tipcflow.domain import ConfigError, Plan, Run, Status
from tipcflow.store.base import Part
from tipcflow.store.run import line_states
from tipcflow.store.run.plans import put_plan, unknown_run
from tipcflow.store.schema import RUN_WORDS, runs

# Identity and result of a run have methods of their own.
_FIXED = frozenset({"id", "schema_version", "status", "reason", "created_at", "ended_at"})
_LISTED = 5
# Databases limit the number of values in a query.
_AT_ONCE = 500


def _names(column: Column[Any]) -> Select[Any]:
    """Select the values of a column, and NULL at the end: from one to the next in an index, not over all runs."""
    names = select(func.min(column).label("name")).cte("names", recursive=True)
    other = runs.alias("other").c[column.name]
    following = select(func.min(other)).where(other > names.c.name).scalar_subquery()
    return select(names.union_all(select(following).where(names.c.name.is_not(None))).c.name)


_CHAINS = _names(runs.c.chain)
_SUITES = _names(runs.c.suite)


class Runs(Part):
    """Table runs."""

    def create(self, run: Run, plan: Plan | None = None) -> None:
        """Store a new run, with its plan if it is known (otherwise `Plans.replace` adds it).

        Raises:
            ConfigError: a run with that id exists.
        """
        with self._write() as connection:
            if connection.execute(select(runs.c.id).where(runs.c.id == run.id)).first():
                raise ConfigError("a run with that id exists", key="run", found=run.id)
            connection.execute(insert(runs), run.model_dump())
            if run.status is not None:
                line_states.refresh(connection, [line_states.key_of(connection, run.id)])
            if plan is not None:
                put_plan(connection, run.id, plan)

    def used_cluster(self, name: str) -> bool:
        """Whether any run was on the cluster of that name."""
        with self._read() as connection:
            return connection.execute(select(runs.c.id).where(runs.c.cluster == name).limit(1)).first() is not None

    def get(self, run_id: str) -> Run:
        """The run of exactly that id.

        Raises:
            ConfigError: when there is none.
        """
        with self._read() as connection:
            row = connection.execute(select(runs).where(runs.c.id == run_id)).mappings().first()
        if row is None:
            raise self._unknown(run_id)
        return _run(row)

    def find(self, prefix: str) -> Run:
        """Find the run by the first characters of its id, or by `latest`.

        Raises:
            ConfigError: no run or more than one; lists the candidates.
        """
        if prefix == "latest":
            newest = self.newest(limit=1)
            if not newest:
                raise self._unknown(prefix)
            return newest[0]
        query = select(runs).where(runs.c.id.startswith(prefix, autoescape=True))
        with self._read() as connection:
            # A prefix is searched in all runs, a whole id in its index.
            whole = connection.execute(select(runs).where(runs.c.id == prefix)).mappings().first()
            if whole is not None:
                return _run(whole)
            rows = connection.execute(query.order_by(runs.c.created_at.desc(), runs.c.id)).mappings().all()
        matches = [_run(row) for row in rows] if prefix else []
        if len(matches) == 1:
            return matches[0]
        if not matches:
            raise self._unknown(prefix)
        listed = [run.id for run in matches[:_LISTED]]
        more = [f"and {len(matches) - _LISTED} more"] if len(matches) > _LISTED else []
        raise ConfigError(
            f"{len(matches)} runs have this prefix",
            key="run",
            found=prefix,
            expected="more of the id",
            hint="\n    ".join(["they are", *listed, *more]),
        )

    def _unknown(self, run_id: str) -> ConfigError:
        with self._read() as connection:
            return unknown_run(connection, run_id)

    def update(self, run_id: str, **fields: Any) -> None:
        """Set fields that become known during a run: suite_commit, framework, environment, nodes …

        Raises:
            ValueError: the field does not exist or is constant.
            ConfigError: when there is no such run.
        """
        wrong = sorted(name for name in fields if name in _FIXED or name not in runs.c)
        if wrong:
            raise ValueError(f"cannot update {', '.join(wrong)} of a run")
        if not fields:
            return
        valid = Run.model_validate(self.get(run_id).model_dump() | fields).model_dump()
        self._set(run_id, {name: valid[name] for name in fields})

    def finish(self, run_id: str, status: Status, reason: str, ended_at: float) -> None:
        """Give a run its status; a later call replaces it (a run may be judged again).

        Raises:
            ValueError: the status is not valid for runs.
            ConfigError: when there is no such run.
        """
        if status not in RUN_WORDS:
            raise ValueError(f"{status} is not a status of runs")
        self._set(run_id, {"status": status, "reason": reason, "ended_at": ended_at})

    def reopen(self, run_id: str) -> None:
        """Remove a run's status: it continues, because its tasks were cleared.

        Raises:
            ConfigError: when there is no such run.
        """
        self._set(run_id, {"status": None, "reason": "", "ended_at": None})

    def _set(self, run_id: str, fields: Mapping[str, Any]) -> None:
        decides = not line_states.DECISIVE.isdisjoint(fields)
        with self._write() as connection:
            before = line_states.key_of(connection, run_id) if decides else None
            changed = connection.execute(update(runs).where(runs.c.id == run_id).values(**fields)).rowcount
            if decides:
                line_states.refresh(connection, [before, line_states.key_of(connection, run_id)])
        if not changed:
            raise self._unknown(run_id)

    def newest(self, *, chain: str | None = None, status: Status | None = None, limit: int = 50) -> list[Run]:
        """Runs, newest first."""
        query = select(runs).order_by(runs.c.created_at.desc(), runs.c.id.desc()).limit(limit)
        if chain is not None:
            query = query.where(runs.c.chain == chain)
        if status is not None:
            query = query.where(runs.c.status == status)
        with self._read() as connection:
            return [_run(row) for row in connection.execute(query).mappings()]

    def get_or_none(self, run_id: str) -> Run | None:
        """Return the run with exactly that id, None if it does not exist."""
        with self._read() as connection:
            row = connection.execute(select(runs).where(runs.c.id == run_id)).mappings().first()
        return None if row is None else _run(row)

    def known(self, run_ids: Collection[str]) -> dict[str, Run]:
        """Return the existing runs of these ids."""
        wanted, existing = sorted(run_ids), {}
        with self._read() as connection:
            for start in range(0, len(wanted), _AT_ONCE):
                query = select(runs).where(runs.c.id.in_(wanted[start : start + _AT_ONCE]))
                for row in connection.execute(query).mappings():
                    existing[row["id"]] = _run(row)
        return existing

    def unfinished(self) -> list[Run]:
        """Return all runs without a status, oldest first."""
        query = select(runs).where(runs.c.status.is_(None)).order_by(runs.c.created_at, runs.c.id)
        with self._read() as connection:
            return [Run.model_validate(dict(row)) for row in connection.execute(query).mappings()]

    def chains(self) -> list[str]:
        """Return the names of all chains with runs, sorted."""
        with self._read() as connection:
            return sorted(set(connection.execute(_CHAINS).scalars()) - {None})

    def suites(self) -> list[str]:
        """Return the names of all suites with runs."""
        with self._read() as connection:
            return sorted(set(connection.execute(_SUITES).scalars()) - {None})

    def suite_commits(self, chain: str) -> set[str]:
        """Return the commits of the suite that the chain was run at."""
        query = select(runs.c.suite_commit).where(runs.c.chain == chain).distinct()
        with self._read() as connection:
            return set(connection.execute(query).scalars()) - {""}


def _run(row: RowMapping) -> Run:
    return Run.model_validate(dict(row))
