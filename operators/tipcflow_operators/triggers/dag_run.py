"""Trigger that waits for another DAG run."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple, Self

from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from tipcflow_operators.airflow import dag_runs
from tipcflow_operators.airflow.child_runs import ACTIVE_STATES
from tipcflow_operators.countdown import Countdown
from tipcflow_operators.triggers.waits import SETTLE_S

# Poll interval.
POLL_S = 5.0
LATE = "late"


class DagRunPayload(NamedTuple):
    """The payload of a `DagRunTrigger`; `state` is Airflow's, None for a deleted DAG run, LATE at the deadline."""

    run_id: str
    state: str | None

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> Self:
        """Read the payload."""
        return cls(event["run_id"], event["state"])

    @property
    def is_late(self) -> bool:
        """Whether the DAG run had not ended at the deadline."""
        return self.state == LATE


class DagRunTrigger(BaseTrigger):
    """Waits until a DAG run has ended or been deleted, or the deadline has passed.

    Fires a `DagRunPayload`. The DAG run keeps running when the waiting task is stopped, and a repeated task waits
    for it again.

    Args:
        dag_id, run_id: the DAG run.
        until: deadline by the database's clock.
    """

    def __init__(self, *, dag_id: str, run_id: str, until: float) -> None:
        super().__init__()
        self.dag_id = dag_id
        self.run_id = run_id
        self.until = until

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments, for the triggerer."""
        return (
            "tipcflow_operators.triggers.dag_run.DagRunTrigger",
            {"dag_id": self.dag_id, "run_id": self.run_id, "until": self.until},
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Poll every few seconds; errors of Airflow are retried."""
        await asyncio.sleep(SETTLE_S)
        state: str | None = LATE
        end = Countdown(self.until)
        while not await end.over():
            try:
                # As Airflow's own triggers do: the supervisor channel belongs to this process's event loop.
                now = await sync_to_async(dag_runs.state_of)(self.dag_id, self.run_id)
            except Exception as error:
                self.log.warning("cannot read the state of DAG run %s: %r", self.run_id, error)
            else:
                if now not in ACTIVE_STATES:
                    state = now
                    break
            await asyncio.sleep(POLL_S)
        yield TriggerEvent(DagRunPayload(self.run_id, state)._asdict())
