"""Limits the number of concurrent chains of a weekly run and starts them in order, the longest first.

The lease queue assigns the slots in start order. Each waiting chain costs Airflow some polls per minute, so a
thousand chains waiting for slots at once would overload it.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple, Self

from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from tipcflow_operators.airflow import dag_runs
from tipcflow_operators.airflow.child_runs import CERTIFY, ahead_of
from tipcflow_operators.countdown import Countdown
from tipcflow_operators.triggers.dag_run import POLL_S
from tipcflow_operators.triggers.waits import SETTLE_S

# Upper limit of the factor by which chains far behind poll less often.
SLOWEST = 12


class TurnPayload(NamedTuple):
    """The payload of a `TurnTrigger`; `late`: the deadline has passed, and the chain may not start."""

    late: bool

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> Self:
        """Read the payload."""
        return cls(event["late"])


class TurnTrigger(BaseTrigger):
    """Waits until a chain may start or the deadline has passed. Fires a `TurnPayload`.

    Args:
        dag_id, run_id: the DAG run of the mapped task.
        index: position of the chain in the start order.
        at_once: maximum number of concurrent chains.
        until: deadline by the database's clock.
        mapped: id of the mapped task.
    """

    def __init__(
        self, *, dag_id: str, run_id: str, index: int, at_once: int, until: float, mapped: str = CERTIFY
    ) -> None:
        super().__init__()
        self.dag_id = dag_id
        self.run_id = run_id
        self.index = index
        self.at_once = at_once
        self.until = until
        self.mapped = mapped

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments, for the triggerer."""
        names = ("dag_id", "run_id", "index", "at_once", "until", "mapped")
        return "tipcflow_operators.weekly.turn.TurnTrigger", {name: getattr(self, name) for name in names}

    def ahead(self) -> int:
        """Return how many chains must end before this one may start; a task calls it before it defers."""
        states = dag_runs.task_states(self.dag_id, self.run_id, self.mapped)
        return ahead_of(self.index, states, self.at_once, task=self.mapped)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Poll, less often the more chains are ahead; errors of Airflow are retried."""
        await asyncio.sleep(SETTLE_S)
        ahead, end = 1, Countdown(self.until)
        while not await end.over():
            try:
                # As Airflow's own triggers do: the supervisor channel belongs to this process's event loop.
                ahead = await sync_to_async(self.ahead)()
            except Exception as error:
                self.log.warning("cannot determine the queue position: %r", error)
            if not ahead:
                break
            await asyncio.sleep(POLL_S * min(ahead, SLOWEST))
        yield TriggerEvent(TurnPayload(bool(ahead))._asdict())
