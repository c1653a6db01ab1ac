"""Triggers of a run's tasks: wait for a job on a node, for slots held by another run, or for another step."""

import asyncio
import json
import logging
import random
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from operators.airflow.events import TaskLog, listener
from operators.countdown import Countdown
from tipcflow.config.settings import settings
from tipcflow.config.waits import Waits
from tipcflow.domain import Node, StoppedBy
from tipcflow.execute.progress import Event, Kind
from tipcflow.remote import commands
from tipcflow.remote.stillness import Stillness

if TYPE_CHECKING:
    import asyncssh
    from airflow.providers.ssh.hooks.ssh import SSHHookAsync

# If a trigger fires within seconds of its task's deferral, the scheduler may not have stored the deferral yet and
# marks the task failed (apache/airflow issues 72716 and 71580).
SETTLE_S = 5.0
WATCH_S = 60.0
STOP_S = 20.0
# How often a task inspects nodes that block its lease.
LOOK_AGAIN_S = 30.0
# Timeout of a database query, which is then retried: a trigger has deadlines to keep.
ASK_S = 60.0


class JobTrigger(BaseTrigger):
    """Watches a job on a node until it has ended, and writes its log lines into the task's log.

    Fires {"step", "resume", "attempt", "stood"}: `resume` holds the log offsets of that attempt, `stood` the
    argument of `Member.end_if_still` if the runner stopped responding, else None. The task queries the result.

    Args:
        run, step: run and step of the job.
        node: the node (domain.Node as JSON; contains no secret).
        job: the job's folder on the node.
        peers: (node as JSON, job folder) of all members, which are stopped together when a user stops the task.
        resume: leg -> bytes of its log already read.
        until: deadline of the job by the database's clock, over all its deadlines.
        lost_after_s: how long to retry a lost node.
        silence_s: a connection without data for this time counts as broken; a runner without a heartbeat and CPU
            use for this time has stopped responding.
        peers_every_s: how often to renew the controller's lease on the other members' nodes, so that a node does
            not end a member whose own task waits for a worker.
    """

    def __init__(
        self,
        *,
        run: str,
        step: str,
        node: dict[str, Any],
        job: str,
        peers: list[list[Any]],
        resume: dict[str, int],
        until: float,
        lost_after_s: float,
        silence_s: float = Waits().silence_s,
        peers_every_s: float = Waits().peers_every_s,
    ) -> None:
        super().__init__()
        self.run_id = run
        self.step = step
        self.node = Node.model_validate(node)
        self.job = job
        self.peers = peers
        self.resume = resume
        self.until = until
        self.lost_after_s = lost_after_s
        self.silence_s = silence_s
        self.peers_every_s = peers_every_s
        self._stillness = Stillness(silence_s)
        self._stood: dict[str, Any] | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Called by Airflow."""
        return (
            "operators.triggers.JobTrigger",
            {
                "run": self.run_id,
                "step": self.step,
                "node": self.node.model_dump(mode="json"),
                "job": self.job,
                "peers": self.peers,
                "resume": self.resume,
                "until": self.until,
                "lost_after_s": self.lost_after_s,
                "silence_s": self.silence_s,
                "peers_every_s": self.peers_every_s,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Watch the job; fire when it has ended or is late, or when its runner or node is lost."""
        begun = time.monotonic()
        task_log = TaskLog(self.log)
        say = listener(settings().home, self.run_id, task_log)
        lost_at: float | None = None
        pause = 1.0
        spoken, end = begun, Countdown(self.until)
        while not await end.over():
            try:
                if await self._watch(say, self._watch_s(time.monotonic() - spoken)):
                    break
                lost_at, pause = None, 1.0
                if time.monotonic() - spoken >= self.peers_every_s:
                    spoken = time.monotonic()
                    await self._speak_for_peers()
            except Exception as error:
                now = time.monotonic()
                lost_at = lost_at or now
                self.log.warning("cannot watch node %s (%r); its job keeps running", self.node.name, error)
                if now - lost_at > self.lost_after_s:
                    break
                await asyncio.sleep(pause * random.uniform(0.7, 1.3))
                pause = min(15.0, pause * 2)
        task_log.flush()
        await asyncio.sleep(max(0.0, SETTLE_S - (time.monotonic() - begun)))
        attempt = int(self.job.rpartition("/")[2])
        yield TriggerEvent({"step": self.step, "resume": self.resume, "attempt": attempt, "stood": self._stood})

    async def on_kill(self) -> None:
        """Stop all members of the attempt, because a user marked or cleared the task."""
        tasks = [self._stop(Node.model_validate(node), job) for node, job in self.peers]
        for (node, _), result in zip(
            self.peers, await asyncio.gather(*tasks, return_exceptions=True), strict=True
        ):
            if isinstance(result, BaseException):
                self.log.warning("could not send the stop request to node %s: %r", node["name"], result)

    def _others(self) -> list[tuple[Node, str]]:
        """Return (node, job folder) of the other members."""
        return [(Node.model_validate(node), job) for node, job in self.peers if node["name"] != self.node.name]

    def _watch_s(self, silent_s: float) -> float:
        """Return how long to watch before the next renewal for the other members is due.

        Args:
            silent_s: seconds since the last renewal.
        """
        return max(1.0, min(WATCH_S, self.peers_every_s - silent_s)) if self._others() else WATCH_S

    async def _speak_for_peers(self) -> None:
        """Renew the controller's lease on the other members' nodes; unreachable nodes are left to their own tasks.

        Takes no longer than the renewal interval: an unresponsive node costs the others one renewal at most, and a
        lease outlives two.
        """
        within = min(STOP_S, max(1.0, self.peers_every_s))
        await asyncio.gather(
            *(self._ask(node, commands.poll(node, job), within) for node, job in self._others()),
            return_exceptions=True,
        )

    @staticmethod
    async def _ask(node: Node, command: str, within_s: float) -> None:
        async with asyncio.timeout(within_s), await _connection(node) as connection:
            await connection.run(command)

    async def _watch(self, say: Any, seconds: float) -> bool:
        """Watch for `seconds`; return whether the job has ended."""
        self._stillness.begin_watch()
        command = commands.watch(self.node, self.job, seconds=seconds, resume=self.resume)
        async with await _connection(self.node) as connection:
            process = await connection.create_process(command, stdin=-3, encoding=None)
            async with process:
                heard = False
                while line := await asyncio.wait_for(process.stdout.readline(), self.silence_s):
                    heard = True
                    if self._take(json.loads(line), say):
                        return True
                if not heard:
                    raise ConnectionError("the node's runner sent no data")
        return False

    def _take(self, message: dict[str, Any], say: Any) -> bool:
        """Handle one event of the runner; return whether it is the last."""
        event = message.get("event")
        if event == "log":
            leg = str(message.get("leg", ""))
            self.resume[leg] = int(message["offset"]) + int(message["size"])
            say(Event(Kind.LOG, str(message.get("data", "")), step=self.step, node=self.node.name, leg=leg))
        elif event == "hang":
            said = f"node {self.node.name} hangs: {message.get('message', '')}; collecting evidence"
            say(Event(Kind.NOTE, said, step=self.step, node=self.node.name))
        elif event == "leg":
            record = message["record"] if isinstance(message["record"], dict) else {}
            code = json.dumps({"exit_code": record.get("exit_code")})
            say(Event(Kind.LEG, code, step=self.step, node=self.node.name, leg=str(record.get("leg", ""))))
        elif event == "alive" and (still_s := self._stillness.beyond(message)):
            self._stood = {"up": message["up"], "still_s": still_s}
            return True
        return event in ("end", "lost", "absent")

    async def _stop(self, node: Node, job: str) -> None:
        async with asyncio.timeout(STOP_S):
            async with await _connection(node) as connection:
                await connection.run(commands.stop(node, job, "stopped from Airflow", StoppedBy.USER), check=True)


class LeaseTrigger(BaseTrigger):
    """Keeps a run's place in the queue until it is the next one or the deadline has passed.

    Args:
        run: run that requests the slots.
        slots: [node address, slot index] of the requested slots.
        since, until: start and end of the wait by the database's clock.
        owner: owner named in the queue.
        names: node address -> name, for messages.
        said: message that the task has logged already.
        looked: whether the task has just inspected the nodes and found them in use.
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

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Called by Airflow."""
        names = ("slots", "since", "until", "owner", "names", "said", "looked")
        fields = {name: getattr(self, name) for name in names}
        return "operators.triggers.LeaseTrigger", {"run": self.run_id, **fields}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Renew the request every few seconds; fire when another attempt to acquire may succeed.

        Conditions that only the task can check on nodes (expired leases, runs of other controllers) resume it
        every half minute: each check occupies a worker for some seconds.
        """
        await asyncio.sleep(SETTLE_S)
        begun, end = time.monotonic(), Countdown(self.until)
        while not await end.over():
            try:
                held, for_task = await asyncio.wait_for(asyncio.to_thread(self._held), ASK_S)
            except Exception as error:
                self.log.warning("cannot read the slot queue: %r", error)
            else:
                if held and held != self.said:
                    self.log.info("%s", held)
                    self.said = held
                if for_task and (not self.looked or time.monotonic() - begun > LOOK_AGAIN_S):
                    break
            await asyncio.sleep(SETTLE_S * random.uniform(0.7, 1.3))
        yield TriggerEvent({"since": self.since})

    async def on_kill(self) -> None:
        """Remove the request, because a user marked or cleared the task."""
        try:
            await asyncio.wait_for(asyncio.to_thread(self._leave), ASK_S)
        except Exception as error:
            # A request that is not renewed expires.
            self.log.warning("could not remove the slot request: %r", error)

    def _held(self) -> tuple[str, bool]:
        """Return (what the run waits for, as text; whether a check by the task may change that)."""
        from tipcflow.execute.leases.keeper import TASK_WAITER_S
        from tipcflow.execute.leases.messages import runs_in_the_way, triggers_of, waiting
        from tipcflow.store import Store

        slots = [(str(node), int(slot)) for node, slot in self.slots]
        with Store.open_in_task(wait_s=0) as store:
            place = store.queue_for_leases(self.run_id, slots, owner=self.owner, ttl_s=TASK_WAITER_S)
            if place.free:
                return "", True
            triggers = triggers_of(store, runs_in_the_way(place))
        return waiting(place, triggers, self.names), place.for_nodes_to_say

    def _leave(self) -> None:
        from tipcflow.store import Store

        with Store.open_in_task(wait_s=0) as store:
            store.leave_queue(self.run_id)


class StepTrigger(BaseTrigger):
    """Waits until another step of the run has ended. Fires {"step", "resume"}.

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
        """Called by Airflow."""
        return (
            "operators.triggers.StepTrigger",
            {"run": self.run_id, "step": self.step, "awaited": self.awaited, "until": self.until},
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Poll every few seconds."""
        await asyncio.sleep(SETTLE_S)
        end = Countdown(self.until)
        while not await end.over() and not await self._look():
            await asyncio.sleep(SETTLE_S * random.uniform(0.3, 0.5))
        yield TriggerEvent({"step": self.step, "resume": None})

    async def _look(self) -> bool:
        """Whether the step has ended; False if the database does not respond."""
        try:
            return await asyncio.wait_for(asyncio.to_thread(self._ended), ASK_S)
        except Exception as error:
            self.log.warning("cannot read whether %s has ended: %r", self.awaited, error)
            return False

    def _ended(self) -> bool:
        from tipcflow.store import Store

        with Store.open_in_task(wait_s=0) as store:
            return self.awaited in store.step_statuses(self.run_id)


# Logs every packet of a connection at level INFO, which would fill the task's log.
logging.getLogger("asyncssh").setLevel(logging.WARNING)


async def _connection(node: Node) -> "asyncssh.SSHClientConnection":
    hook = (await asyncio.to_thread(_hook_class))(ssh_conn_id=node.connection)
    return await asyncio.wait_for(hook.get_conn(), 30)


def _hook_class() -> type["SSHHookAsync"]:
    """Import the hook; blocks for seconds, so call it outside of the event loop that all triggers share."""
    import asyncssh  # noqa: F401  # the hook imports it when it connects
    from airflow.providers.ssh.hooks.ssh import SSHHookAsync

    return SSHHookAsync
