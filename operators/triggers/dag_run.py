"""Waits in the triggerer for another DAG run."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from operators.airflow import dag_runs
from operators.airflow.child_runs import LIVING
from operators.countdown import Countdown
from operators.triggers.job_lease_step import SETTLE_S

# How often it is asked.
LOOK_S = 5.0
LATE = "late"


class DagRunTrigger(BaseTrigger):
    """Waits until a DAG run has ended, has been deleted, or until it is too late.

    Fires {"run_id", "state"}: Airflow's state, None for a DAG run that is no longer there, LATE at the deadline.
    Nothing happens to the DAG run when the waiting task is stopped: it goes on, and is found again.

    Args:
        dag_id, run_id: which DAG run.
        until: when to give up, by the database's clock.
    """

    def __init__(self, *, dag_id: str, run_id: str, until: float) -> None:
        super().__init__()
        self.dag_id = dag_id
        self.run_id = run_id
        self.until = until

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Called by Airflow."""
        return (
            "operators.triggers.dag_run.DagRunTrigger",
            {"dag_id": self.dag_id, "run_id": self.run_id, "until": self.until},
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look every few seconds; an Airflow that does not answer is asked again."""
        await asyncio.sleep(SETTLE_S)
        state: str | None = LATE
        end = Countdown(self.until)
        while not await end.over():
            try:
                # As Airflow's own triggers ask: its channel belongs to the event loop of this process.
                now = await sync_to_async(dag_runs.state_of)(self.dag_id, self.run_id)
            except Exception as error:
                self.log.warning("Airflow does not tell about %s: %r", self.run_id, error)
            else:
                if now not in LIVING:
                    state = now
                    break
            await asyncio.sleep(LOOK_S)
        yield TriggerEvent({"run_id": self.run_id, "state": state})
