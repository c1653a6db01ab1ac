"""Plans of runs, and the steps that they consist of."""

from sqlalchemy import Connection, delete, insert, select

from tipcflow.domain import ConfigError, Plan
from tipcflow.store.base import Part, upsert
from tipcflow.store.schema import attempts, legs, plans, runs, steps

_LISTED = 5


class Plans(Part):
    """Table plans, and table steps as far as a plan creates its rows."""

    def get(self, run_id: str) -> Plan:
        """The plan of a run.

        Raises:
            ConfigError: when there is no such run, or it ended before it had a plan.
        """
        plan = self.get_or_none(run_id)
        if plan is None:
            with self._read() as connection:
                ended = reason_of(connection, run_id)
            raise ConfigError("the run has no plan", key="run", found=run_id, hint=ended)
        return plan

    def get_or_none(self, run_id: str) -> Plan | None:
        """The plan of a run, None when there is no such run or it ended before it had a plan."""
        with self._read() as connection:
            body = connection.execute(select(plans.c.body).where(plans.c.run == run_id)).scalar()
        # A newer version may have added fields, and its runs continue while the older version still works.
        return None if body is None else Plan.model_validate(body, extra="ignore")

    def replace(self, run_id: str, plan: Plan) -> None:
        """Replace the plan of a run before its first attempt.

        Raises:
            ConfigError: when there is no such run, or a step was tried already.
        """
        with self._write() as connection:
            reason_of(connection, run_id)
            if connection.execute(select(attempts.c.step).where(attempts.c.run == run_id).limit(1)).first():
                raise ConfigError("the run has started: its plan cannot be replaced", key="run", found=run_id)
            # Statuses of legs that never started belong to the replaced plan.
            connection.execute(delete(legs).where(legs.c.run == run_id))
            connection.execute(delete(steps).where(steps.c.run == run_id))
            put_plan(connection, run_id, plan)


def put_plan(connection: Connection, run_id: str, plan: Plan) -> None:
    """Store a plan and its steps in a transaction of the caller."""
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


def reason_of(connection: Connection, run_id: str) -> str:
    """Return the reason of a run's status.

    Raises:
        ConfigError: when there is no such run.
    """
    reason = connection.execute(select(runs.c.reason).where(runs.c.id == run_id)).scalar()
    if reason is None:
        raise unknown_run(connection, run_id)
    return str(reason)


def unknown_run(connection: Connection, run_id: str) -> ConfigError:
    """Return the error for a run that does not exist, with the latest runs."""
    newest = select(runs.c.id).order_by(runs.c.created_at.desc(), runs.c.id.desc()).limit(_LISTED)
    latest = connection.execute(newest).scalars().all()
    return ConfigError(
        "no such run",
        key="run",
        found=run_id,
        expected="a run ID, its first characters, or latest",
        hint="\n    ".join(["the latest runs:", *latest])
        if latest
        else f"the database {connection.engine.url} has no runs; TIPCFLOW_HOME and "
        "TIPCFLOW_DATABASE_URL select the database",
    )
