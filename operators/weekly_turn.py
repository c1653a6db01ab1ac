"""The order in which the chains of a weekly run ask for slots: each after the one before it has got its own.

All at once they would race for every slot that comes free, and the longest might come last; and each would use up
its time for waiting while others run.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Mapping
from datetime import datetime
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from operators import dag_runs
from operators.dag_run_trigger import LOOK_S
from operators.triggers import SETTLE_S
from operators.weekly_runs import CERTIFY, MOST_RUNS, ahead_of, child_run_id
from tipcflow.domain import dag_id_of, run_id_of

# Whoever is far behind looks less often, so that a thousand chains do not keep Airflow busy by waiting.
SLOWEST = 12


class TurnTrigger(BaseTrigger):
    """Waits until it is the turn of a chain, or until it is too late. Fires {"late"}.

    Args:
        dag_id, run_id, run_after: of the weekly DAG run.
        index: the chain's place in the order.
        before: the chain right before it.
        until: when to give up, seconds since the epoch.
    """

    def __init__(
        self, *, dag_id: str, run_id: str, run_after: datetime, index: int, before: str, until: float
    ) -> None:
        super().__init__()
        self.dag_id = dag_id
        self.run_id = run_id
        self.run_after = run_after
        self.index = index
        self.before = before
        self.until = until

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Called by Airflow."""
        names = ("dag_id", "run_id", "run_after", "index", "before", "until")
        return "operators.weekly_turn.TurnTrigger", {name: getattr(self, name) for name in names}

    def ahead(self) -> int:
        """How many are ahead now; for a task, before it waits at all."""
        return self._ahead(self._states(), _holding())

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look, less often the more chains are ahead; an Airflow that does not answer is asked again."""
        await asyncio.sleep(SETTLE_S)
        ahead = 1
        while time.time() < self.until:
            try:
                # As Airflow's own triggers ask: its channel belongs to the event loop of this process.
                states = await sync_to_async(self._states)()
                ahead = self._ahead(states, await asyncio.to_thread(_holding))
            except Exception as error:
                self.log.warning("whose turn it is cannot be told: %r", error)
            if not ahead:
                break
            await asyncio.sleep(LOOK_S * min(ahead, SLOWEST))
        yield TriggerEvent({"late": bool(ahead)})

    def _states(self) -> Mapping[str, str | None]:
        return dag_runs.task_states(self.dag_id, self.run_id, CERTIFY)

    def _ahead(self, states: Mapping[str, str | None], holding: Collection[str]) -> int:
        chain = dag_id_of(self.before)
        runs = [
            run_id_of(chain, child_run_id(self.run_id, number), self.run_after)
            for number in range(1, MOST_RUNS + 1)
        ]
        return ahead_of(self.index, states, runs, holding)


def _holding() -> set[str]:
    """The runs that have slots."""
    from tipcflow.store import Store

    with Store.open() as store:
        return {lease.run for lease in store.leases()}
