"""Trigger that waits for another step of the run."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from tipcflow_operators.airflow.log_fields import name_fields
from tipcflow_operators.countdown import Countdown
from tipcflow_operators.triggers.waits import QUERY_S, SETTLE_S


class StepTrigger(BaseTrigger):
    """Waits until another step of the run has ended. Fires the fields `step` and `resume` of a
    `JobPayload`.

    Args:
        run: run of both steps.
        step, awaited: the waiting step and the step it waits for.
        until: deadline by the database's clock, after which the waiting step continues.
    """

    def __init__(self, *, run: str, step: str, awaited: str, until: float) -> None:
        super().__init__()
        self.run_id = run
        self.step = step
        self.awaited = awaited
        self.until = until

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments, for the triggerer."""
        return (
            "tipcflow_operators.triggers.StepTrigger",
            {"run": self.run_id, "step": self.step, "awaited": self.awaited, "until": self.until},
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Poll every few seconds."""
        name_fields(self.run_id, self.step)
        await asyncio.sleep(SETTLE_S)
        end = Countdown(self.until)
        while not await end.over() and not await self._has_ended():
            await asyncio.sleep(SETTLE_S * random.uniform(0.3, 0.5))
        yield TriggerEvent({"step": self.step, "resume": None})

    async def _has_ended(self) -> bool:
        """Whether the step has ended; False if the database does not respond."""
        try:
            return await asyncio.wait_for(asyncio.to_thread(self._ended), QUERY_S)
        except Exception as error:
            self.log.warning("cannot read whether %s has ended: %r", self.awaited, error)
            return False

    def _ended(self) -> bool:
        from tipcflow.store.polls.pool import poll_store

        with poll_store() as store:
            return self.awaited in store.steps.statuses(self.run_id)
