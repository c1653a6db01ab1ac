"""The order in which the chains of a weekly run begin: the longest first, and only so many on their way at once.

Who gets which slots is decided by the queue for leases, where they stand in the order in which they began. Each
waiting chain costs Airflow some looks a minute; a thousand at once would keep it busy by waiting.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from operators.airflow import dag_runs
from operators.airflow.child_runs import CERTIFY, ahead_of
from operators.countdown import Countdown
from operators.triggers.dag_run import LOOK_S
from operators.triggers.job_lease_step import SETTLE_S

# Whoever is far behind looks less often.
SLOWEST = 12


class TurnTrigger(BaseTrigger):
    """Waits until a chain may begin, or until it is too late. Fires {"late"}.

    Args:
        dag_id, run_id: of the weekly DAG run.
        index: the chain's place in the order.
        at_once: how many chains may be on their way at once.
        until: when to give up, by the database's clock.
    """

    def __init__(self, *, dag_id: str, run_id: str, index: int, at_once: int, until: float) -> None:
        super().__init__()
        self.dag_id = dag_id
        self.run_id = run_id
        self.index = index
        self.at_once = at_once
        self.until = until

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Called by Airflow."""
        names = ("dag_id", "run_id", "index", "at_once", "until")
        return "operators.weekly.turn.TurnTrigger", {name: getattr(self, name) for name in names}

    def ahead(self) -> int:
        """How many must end before it; for a task, before it waits at all."""
        return ahead_of(self.index, dag_runs.task_states(self.dag_id, self.run_id, CERTIFY), self.at_once)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look, less often the more chains are ahead; an Airflow that does not answer is asked again."""
        await asyncio.sleep(SETTLE_S)
        ahead, end = 1, Countdown(self.until)
        while not await end.over():
            try:
                # As Airflow's own triggers ask: its channel belongs to the event loop of this process.
                ahead = await sync_to_async(self.ahead)()
            except Exception as error:
                self.log.warning("whose turn it is cannot be told: %r", error)
            if not ahead:
                break
            await asyncio.sleep(LOOK_S * min(ahead, SLOWEST))
        yield TriggerEvent({"late": bool(ahead)})
