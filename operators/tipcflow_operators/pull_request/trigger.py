"""Trigger that waits for work of the DAG `pull_request`."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple, Self

from airflow.triggers.base import BaseTrigger, TriggerEvent

from tipcflow_operators.triggers.waits import QUERY_S, SETTLE_S

POLL_S = 2.0


class PullRequestPayload(NamedTuple):
    """The payload of a `PullRequestTrigger`; `problem`: why nothing could be done, '' without a problem."""

    problem: str

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> Self:
        """Read the payload."""
        return cls(event["problem"])


class PullRequestTrigger(BaseTrigger):
    """Looks into the metrics database every two seconds; fires a `PullRequestPayload` when there is work, or
    after `seconds`.

    Args:
        seconds: longest wait.
        problem: why nothing can be done now; the trigger then only waits.
        alert_events: number of events of alerts that issues include; another number is work. None without issues.
    """

    def __init__(self, *, seconds: float, problem: str = "", alert_events: int | None = None) -> None:
        super().__init__()
        self.seconds = seconds
        self.problem = problem
        self.alert_events = alert_events

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments, for the triggerer."""
        return (
            "tipcflow_operators.pull_request.trigger.PullRequestTrigger",
            {"seconds": self.seconds, "problem": self.problem, "alert_events": self.alert_events},
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Errors of the database are retried: deliveries wait in it."""
        begun = time.monotonic()
        await asyncio.sleep(SETTLE_S)
        while time.monotonic() - begun < self.seconds:
            try:
                if not self.problem and await asyncio.wait_for(
                    asyncio.to_thread(waits, self.alert_events), QUERY_S
                ):
                    break
            except Exception as error:
                self.log.warning("cannot read the metrics database: %r", error)
            await asyncio.sleep(POLL_S)
        yield TriggerEvent(PullRequestPayload(self.problem)._asdict())

    async def _is_work(self) -> bool:
        return await asyncio.wait_for(asyncio.to_thread(waits, self.alert_events), QUERY_S)


def waits(alert_events: int | None = None) -> bool:
    """Whether there is work, or another number of events of alerts."""
    from tipcflow.github.flow import work_waits
    from tipcflow.store.polls.pool import poll_store

    with poll_store() as store:
        if alert_events is not None and store.tracked_alerts.event_count() != alert_events:
            return True
        return work_waits(store)
