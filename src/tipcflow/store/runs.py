"""Runs and their plans."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, insert, select, update

from tipcflow.domain import ConfigError, Plan, Run, Status
from tipcflow.store.base import StoreBase, upsert
from tipcflow.store.schema import RUN_WORDS, attempts, legs, plans, runs, steps

# Identity and result of a run have methods of their own.
_FIXED = frozenset({"id", "schema_version", "status", "reason", "created_at", "ended_at"})
_LISTED = 5


class RunsMixin(StoreBase):
    """Tables runs, plans and (as far as the plan makes them) steps."""

    def create_run(self, run: Run, plan: Plan | None = None) -> None:
        """Store a new run, with its plan if it is known (otherwise `replace_plan` adds it).

        Raises:
            ConfigError: a run with that id exists.
        """
        with self._write() as connection:
            if connection.execute(select(runs.c.id).where(runs.c.id == run.id)).first():
                raise ConfigError("a run with that id exists", key="run", found=run.id)
            connection.execute(insert(runs), run.model_dump())
            if plan is not None:
                _put_plan(connection, run.id, plan)

    def get_run(self, run_id: str) -> Run:
        """The run of exactly that id.

        Raises:
            ConfigError: when there is none.
        """
        with self._read() as connection:
            row = connection.execute(select(runs).where(runs.c.id == run_id)).mappings().first()
        if row is None:
            raise self._unknown(run_id)
        return _run(row)

    def find_run(self, prefix: str) -> Run:
        """Find the run by the first characters of its id, or by `latest`.

        Raises:
            ConfigError: no run or more than one; lists the candidates.
        """
        if prefix == "latest":
            newest = self.runs(limit=1)
            if not newest:
                raise self._unknown(prefix)
            return newest[0]
        query = select(runs).where(runs.c.id.startswith(prefix, autoescape=True))
        with self._read() as connection:
            rows = connection.execute(query.order_by(runs.c.created_at.desc(), runs.c.id)).mappings().all()
        found = [_run(row) for row in rows] if prefix else []
        for run in found:
            if run.id == prefix or len(found) == 1:
                return run
        if not found:
            raise self._unknown(prefix)
        listed = [run.id for run in found[:_LISTED]]
        more = [f"and {len(found) - _LISTED} more"] if len(found) > _LISTED else []
        raise ConfigError(
            f"{len(found)} runs begin like that",
            key="run",
            found=prefix,
            expected="more of the id",
            hint="\n    ".join(["they are", *listed, *more]),
        )

    def _unknown(self, run_id: str) -> ConfigError:
        latest = [run.id for run in self.runs(limit=_LISTED)]
        return ConfigError(
            "no such run",
            key="run",
            found=run_id,
            expected="a run id, its first characters, or latest",
            hint="\n    ".join(["the latest runs are", *latest]) if latest else "there are no runs yet",
        )

    def update_run(self, run_id: str, **fields: Any) -> None:
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
        valid = Run.model_validate(self.get_run(run_id).model_dump() | fields).model_dump()
        self._set(run_id, {name: valid[name] for name in fields})

    def finish_run(self, run_id: str, status: Status, reason: str, ended_at: float) -> None:
        """Give a run its status; a later call replaces it (a run may be judged again).

        Raises:
            ValueError: the status is not valid for runs.
            ConfigError: when there is no such run.
        """
        if status not in RUN_WORDS:
            raise ValueError(f"{status} is not a status of runs")
        self._set(run_id, {"status": status, "reason": reason, "ended_at": ended_at})

    def reopen_run(self, run_id: str) -> None:
        """Remove a run's status: it continues, because its tasks were cleared.

        Raises:
            ConfigError: when there is no such run.
        """
        self._set(run_id, {"status": None, "reason": "", "ended_at": None})

    def _set(self, run_id: str, fields: Mapping[str, Any]) -> None:
        with self._write() as connection:
            changed = connection.execute(update(runs).where(runs.c.id == run_id).values(**fields)).rowcount
        if not changed:
            raise self._unknown(run_id)

    def runs(self, *, chain: str | None = None, status: Status | None = None, limit: int = 50) -> list[Run]:
        """Runs, newest first."""
        query = select(runs).order_by(runs.c.created_at.desc(), runs.c.id.desc()).limit(limit)
        if chain is not None:
            query = query.where(runs.c.chain == chain)
        if status is not None:
            query = query.where(runs.c.status == status)
        with self._read() as connection:
            return [_run(row) for row in connection.execute(query).mappings()]

    def plan(self, run_id: str) -> Plan:
        """The plan of a run.

        Raises:
            ConfigError: when there is no such run, or it ended before it had a plan.
        """
        plan = self.plan_or_none(run_id)
        if plan is None:
            ended = self.get_run(run_id).reason
            raise ConfigError("the run has no plan", key="run", found=run_id, hint=ended)
        return plan

    def plan_or_none(self, run_id: str) -> Plan | None:
        """The plan of a run, None when there is no such run or it ended before it had a plan."""
        with self._read() as connection:
            body = connection.execute(select(plans.c.body).where(plans.c.run == run_id)).scalar()
        return None if body is None else Plan.model_validate(body)

    def replace_plan(self, run_id: str, plan: Plan) -> None:
        """Put another plan in place of a run's plan, as long as nothing was tried.

        Raises:
            ConfigError: when there is no such run, or a step was tried already.
        """
        self.get_run(run_id)
        with self._write() as connection:
            if connection.execute(select(attempts.c.step).where(attempts.c.run == run_id).limit(1)).first():
                raise ConfigError("the run has begun, its plan stays", key="run", found=run_id)
            # What was said of legs that never started belongs to the plan that goes.
            connection.execute(delete(legs).where(legs.c.run == run_id))
            connection.execute(delete(steps).where(steps.c.run == run_id))
            _put_plan(connection, run_id, plan)


def _put_plan(connection: Connection, run_id: str, plan: Plan) -> None:
    connection.execute(
        upsert(connection, plans),
        {
            "run": run_id,
            "schema_version": plan.schema_version,
            "params_file": plan.params_file,
            "params_sha256": plan.params_sha256,
            "body": plan,
        },
    )
    rows = [
        {
            "run": run_id,
            "step": step.id,
            "position": position,
            "kind": step.kind,
            "variant": step.variant,
            "repeat": step.repeat,
            "world_size": step.world_size,
            "status": None,
            "reason": "",
        }
        for position, step in enumerate(plan.steps)
    ]
    if rows:
        connection.execute(insert(steps), rows)


def _run(row: RowMapping) -> Run:
    return Run.model_validate(dict(row))
