"""Trigger that waits for the nodes of a run from Slurm."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from tipcflow.domain import Cluster
from tipcflow.execute.allocation.client import login_node
from tipcflow.execute.allocation.hold import waiting_message
from tipcflow.remote.slurm import commands
from tipcflow.remote.slurm.output import jobs_in, position_in
from tipcflow.transport import Completed
from tipcflow_operators.airflow.async_connect import connect_async
from tipcflow_operators.airflow.log_fields import name_fields
from tipcflow_operators.countdown import Countdown
from tipcflow_operators.triggers.waits import SETTLE_S, report_wait

# Each query is a login; an allocation without its run is idle until the next query.
POLL_S = 10.0
# Limit of one query, including the login.
LIMIT_S = 60.0


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
        await asyncio.sleep(SETTLE_S)
        end = Countdown(self.until)
        while not await end.over():
            try:
                async with asyncio.timeout(LIMIT_S):
                    why = await self._waits()
            except Exception as error:
                self.log.warning("cannot read the queue of Slurm: %r", error)
            else:
                if not why:
                    break
                if why != self.logged:
                    await report_wait(self.log, self.run_id, why)
                    self.logged = why
            await asyncio.sleep(POLL_S * random.uniform(0.7, 1.3))
        yield TriggerEvent({"since": self.since})

    async def _waits(self) -> str:
        """Return what the run waits for; '' if its job does not wait any more."""
        async with connect_async(login_node(self.cluster)) as transport:
            done = await transport.run(commands.find(self.job_name), check=True)
            waiting = [job for job in jobs_in(_text(done)) if job.is_waiting]
            if not waiting:
                return ""
            queue = await transport.run(commands.pending(self.cluster))
        return waiting_message(self.cluster, waiting[0], position_in(_text(queue), waiting[0].id))


def _text(done: Completed) -> str:
    return done.stdout.decode("utf-8", "replace")
