"""Trigger that waits for slots held by other runs."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple, Self

from airflow.triggers.base import BaseTrigger, TriggerEvent

from tipcflow.domain import ConfigError
from tipcflow_operators.airflow.log_fields import name_fields
from tipcflow_operators.countdown import Countdown
from tipcflow_operators.triggers.cancelled import is_by_user
from tipcflow_operators.triggers.waits import QUERY_S, SETTLE_S, report_wait

# How often a task inspects nodes that block its lease.
INSPECT_AGAIN_S = 30.0


class LeasePayload(NamedTuple):
    """The payload of a `LeaseTrigger`; `since` is the start of the wait by the database's clock."""

    since: float

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> Self:
        """Read the payload."""
        return cls(float(event["since"]))


class LeaseTrigger(BaseTrigger):
    """Keeps a run's place in the queue until it is the next one or the deadline has passed.

    Fires a `LeasePayload`.

    Args:
        run: run that requests the slots.
        slots: [node address, slot index] of the requested slots.
        since, until: start and end of the wait by the database's clock.
        owner: owner named in the queue.
        names: node address -> name, for messages.
        said: message that the task has logged already; the name is stored by Airflow.
        looked: whether the task has just inspected the nodes and found them in use.
        groups: addresses of nodes of which the run may use any instead of another.
    """

    def __init__(
        self,
        *,
        run: str,
        slots: list[list[Any]],
        since: float,
        until: float,
        owner: str,
        names: dict[str, str],
        said: str,
        looked: bool = False,
        groups: list[list[str]] | None = None,
    ) -> None:
        super().__init__()
        self.run_id = run
        self.slots = slots
        self.since = since
        self.until = until
        self.owner = owner
        self.names = names
        self.said = said
        self.looked = looked
        self.groups = groups or []

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments, for the triggerer."""
        names = ("slots", "since", "until", "owner", "names", "said", "looked", "groups")
        fields = {name: getattr(self, name) for name in names}
        return "tipcflow_operators.triggers.LeaseTrigger", {"run": self.run_id, **fields}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Renew the request every few seconds; fire when another attempt to acquire may succeed.

        Conditions that only the task can check on nodes (expired leases, runs of other controllers) resume it
        every half minute: each check occupies a worker for some seconds.
        """
        name_fields(self.run_id)
        await asyncio.sleep(SETTLE_S)
        begun, end = time.monotonic(), Countdown(self.until)
        while not await end.over():
            try:
                held, for_task = await asyncio.wait_for(asyncio.to_thread(self._held), QUERY_S)
            except ConfigError as error:
                # A restored database lacks runs that began after its backup: the task fails with this error.
                self.log.error("%s", error)
                break
            except Exception as error:
                self.log.warning("cannot read the slot queue: %r", error)
            else:
                if held and held != self.said:
                    await report_wait(self.log, self.run_id, held)
                    self.said = held
                if for_task and (not self.looked or time.monotonic() - begun > INSPECT_AGAIN_S):
                    break
            await asyncio.sleep(SETTLE_S * random.uniform(0.7, 1.3))
        yield TriggerEvent(LeasePayload(self.since)._asdict())

    async def on_kill(self) -> None:
        """Remove the request if a user marked or cleared the task; otherwise the run keeps its place."""
        if not await is_by_user(self):
            return
        try:
            await asyncio.wait_for(asyncio.to_thread(self._leave), QUERY_S)
        except Exception as error:
            # A request that is not renewed expires.
            self.log.warning("could not remove the slot request: %r", error)

    def _held(self) -> tuple[str, bool]:
        """Return (what the run waits for, as text; whether a check by the task may change that)."""
        from tipcflow.execute.leases.keeper import TASK_WAITER_S
        from tipcflow.execute.leases.messages import runs_in_the_way, triggers_of, waiting
        from tipcflow.store.polls.pool import poll_store

        slots = [(str(node), int(slot)) for node, slot in self.slots]
        with poll_store() as store:
            place = store.queue.join(self.run_id, slots, owner=self.owner, ttl_s=TASK_WAITER_S, groups=self.groups)
            # The task moves the run to these nodes once it may have them.
            self.slots = [list(slot) for slot in place.request.slots]
            if place.free:
                return "", True
            triggers = triggers_of(store, runs_in_the_way(place))
        return waiting(place, triggers, self.names), place.must_check_nodes

    def _leave(self) -> None:
        from tipcflow.store.polls.pool import poll_store

        with poll_store() as store:
            store.queue.leave(self.run_id)
