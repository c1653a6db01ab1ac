"""Trigger that waits for the nodes of a run from Slurm."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from tipcflow.domain import Cluster
from tipcflow.domain.run.allocation_wait import AllocationWaitDocument, SlurmPlace
from tipcflow.execute.allocation.client import place_of, waiting_message
from tipcflow_operators.airflow.log_fields import name_fields
from tipcflow_operators.countdown import Countdown
from tipcflow_operators.triggers.slurm_queue import queue_of
from tipcflow_operators.triggers.waits import QUERY_S, SETTLE_S, report_wait

# An allocation without its run is idle until the next query.
POLL_S = 10.0


class AllocationTrigger(BaseTrigger):
    """Waits until a run's job no longer waits in Slurm's queue, or the deadline has passed. Fires {"since"}.

    Args:
        name: name of the job.
        cluster: its cluster (domain.Cluster as JSON; contains no secret).
        since, until: start and end of the wait by the database's clock.
        logged: message that the task has logged already.
        run: the run, for its events.
    """

    def __init__(
        self, *, name: str, cluster: dict[str, Any], since: float, until: float, logged: str, run: str = ""
    ) -> None:
        super().__init__()
        self.run_id = run
        self.job_name = name
        self.cluster = Cluster.model_validate(cluster)
        self.since = since
        self.until = until
        self.logged = logged

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments, for the triggerer."""
        fields = {"since": self.since, "until": self.until, "logged": self.logged, "run": self.run_id}
        cluster = self.cluster.model_dump(mode="json")
        path = "tipcflow_operators.triggers.AllocationTrigger"
        return path, {"name": self.job_name, "cluster": cluster, **fields}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Query Slurm until the job has its nodes or has ended; the task decides what that means."""
        name_fields(self.run_id)
        start = asyncio.get_running_loop().time()
        await asyncio.sleep(SETTLE_S)
        end = Countdown(self.until)
        while not await end.over():
            try:
                place = await self._place(start)
            except Exception as error:
                self.log.warning("cannot read the queue of Slurm: %r", error)
            else:
                if place is None:
                    break
                if (why := waiting_message(place)) != self.logged:
                    await report_wait(self.log, self.run_id, why)
                    await self._keep(place)
                    self.logged = why
            await asyncio.sleep(POLL_S * random.uniform(0.7, 1.3))
        yield TriggerEvent({"since": self.since})

    async def _place(self, start: float) -> SlurmPlace | None:
        """Return the place of the run's job in the queue; None if the job does not wait any more."""
        queue = await queue_of(self.cluster, start)
        job = queue.waiting(self.job_name)
        return place_of(self.cluster, job, queue.pending) if job else None

    async def _keep(self, place: SlurmPlace) -> None:
        """Add the place to the record of the wait, which the page Nodes shows."""
        try:
            await asyncio.wait_for(asyncio.to_thread(_change, self.run_id, place), QUERY_S)
        except Exception as error:
            self.log.warning("the place in the queue of Slurm could not be stored: %r", error)


def _change(run: str, place: SlurmPlace) -> None:
    from tipcflow.store.polls.pool import poll_store

    with poll_store() as store:
        store.documents.change(run, AllocationWaitDocument, place=place)
