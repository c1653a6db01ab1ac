"""Trigger that watches a job on a node."""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, NamedTuple, Self

from airflow.triggers.base import BaseTrigger, TriggerEvent

from tipcflow.config.settings import settings
from tipcflow.config.waits import Waits
from tipcflow.domain import Node, SlurmStep, StoppedBy
from tipcflow.domain.run.job_event import JobEnd, JobGone, JobHang, JobLog, JobTrained, LegEnd, RunnerAlive, decode
from tipcflow.execute.job.listening import progress_event
from tipcflow.execute.progress import Kind, Listener
from tipcflow.remote import commands
from tipcflow.remote.slurm import commands as slurm
from tipcflow.remote.slurm.output import is_over
from tipcflow.remote.stillness import Stalled, Stillness
from tipcflow_operators.airflow.async_connect import connect_async
from tipcflow_operators.airflow.events import TaskLog, listener
from tipcflow_operators.airflow.log_fields import name_fields
from tipcflow_operators.countdown import Countdown
from tipcflow_operators.triggers.cancelled import is_by_user
from tipcflow_operators.triggers.waits import SETTLE_S

WATCH_S = 60.0
STOP_S = 20.0
# Interval of queries whether the trainers of other nodes have succeeded; the last one to do so does not wait.
TRAINED_EVERY_S = 10.0


class JobPayload(NamedTuple):
    """The payload of a `JobTrigger`; Airflow stores it, and an earlier version may have written it.

    Attributes:
        step: step of the job.
        resume: leg -> bytes of its log already read, in this attempt; None if the task did not wait for a job.
        attempt: the number of the job's attempt; 0 in payloads of earlier versions and of other triggers.
        stalled: the runner, if it stopped responding.
        hung, hang_number: the reason and the number of the last hang that the runner reported.
    """

    step: str
    resume: dict[str, int] | None = None
    attempt: int = 0
    stalled: Stalled | None = None
    hung: str = ""
    hang_number: int = 0

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> Self:
        """Read the payload of a `JobTrigger`, or of a `StepTrigger`, which has fewer fields."""
        stalled = event.get("stood")
        return cls(
            step=event["step"],
            resume=event.get("resume"),
            attempt=int(event.get("attempt") or 0),
            stalled=Stalled(stalled["up"], float(stalled["still_s"])) if stalled else None,
            hung=event.get("hung") or "",
            hang_number=int(event.get("hang_number") or 0),
        )

    def fired(self) -> TriggerEvent:
        """Return the event to fire."""
        fields = self._asdict()
        stalled = fields.pop("stalled")
        return TriggerEvent({**fields, "stood": stalled and stalled._asdict()})


class JobTrigger(BaseTrigger):
    """Watches a job on a node until it has ended, and writes its log lines into the task's log.

    Fires a `JobPayload`. The task queries the result; a hang makes it collect evidence from all nodes, which wait.

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
        hang_number: the number of the reported hang that the task knows already: it does not fire again for that.
        hung: its reason, which identifies the hangs of runners of earlier versions.
        attempt: the number of the job's attempt; 0 in triggers of earlier versions.
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
        hung: str = "",
        hang_number: int = 0,
        attempt: int = 0,
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
        self.hung = hung
        self.hang_number = hang_number
        self.attempt = attempt
        self._stillness = Stillness(silence_s)
        self._stalled: Stalled | None = None
        self._legs: set[str] = set()
        self._trained = self._servers_ended = False

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments, for the triggerer."""
        return (
            "tipcflow_operators.triggers.JobTrigger",
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
                "hung": self.hung,
                "hang_number": self.hang_number,
                "attempt": self.attempt,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Watch the job; fire when it has ended, is late or hangs, or when its runner or node is lost."""
        begun = time.monotonic()
        name_fields(self.run_id, self.step, self.node.name)
        task_log = TaskLog(self.log)
        listen = listener(settings().home, self.run_id, task_log)
        lost_at: float | None = None
        pause = 1.0
        renewed_at, end = begun, Countdown(self.until)
        while not await end.over():
            try:
                if await self._watch(listen, self._watch_s(time.monotonic() - renewed_at)):
                    break
                lost_at, pause = None, 1.0
                if self._waits_for_trainers and not await self._end_servers():
                    await asyncio.sleep(TRAINED_EVERY_S)
                if time.monotonic() - renewed_at >= self.peers_every_s:
                    renewed_at = time.monotonic()
                    await self._renew_peers()
            except Exception as error:
                now = time.monotonic()
                lost_at = lost_at or now
                self.log.warning("cannot watch node %s (%r); its job keeps running", self.node.name, error)
                if now - lost_at > self.lost_after_s or await self._is_allocation_over():
                    break
                # Not tenacity: the time since the loss is counted over watches, and the countdown ends the loop.
                await asyncio.sleep(pause * random.uniform(0.7, 1.3))
                pause = min(15.0, pause * 2)
        task_log.flush()
        await asyncio.sleep(max(0.0, SETTLE_S - (time.monotonic() - begun)))
        stalled, hang = self._stalled, (self.hung, self.hang_number)
        yield JobPayload(self.step, self.resume, self.attempt, stalled, *hang).fired()

    async def on_kill(self) -> None:
        """Stop all members of the attempt if a user marked or cleared the task."""
        if not await is_by_user(self):
            return
        tasks = [self._stop(Node.model_validate(node), job) for node, job in self.peers]
        for (node, _), result in zip(
            self.peers, await asyncio.gather(*tasks, return_exceptions=True), strict=True
        ):
            if isinstance(result, BaseException):
                self.log.warning("could not send the stop request to node %s: %r", node["name"], result)

    def _others(self) -> list[tuple[Node, str]]:
        """Return (node, job folder) of the other members."""
        return [(Node.model_validate(node), job) for node, job in self.peers if node["name"] != self.node.name]

    def _watch_s(self, since_s: float) -> float:
        """Return how long to watch before the next renewal for the other members is due.

        Args:
            since_s: seconds since the last renewal.
        """
        return max(1.0, min(WATCH_S, self.peers_every_s - since_s)) if self._others() else WATCH_S

    async def _renew_peers(self) -> None:
        """Renew the controller's lease on the other members' nodes; unreachable nodes are left to their own tasks.

        Takes no longer than the renewal interval: an unresponsive node costs the others one renewal at most, and a
        lease outlives two.
        """
        within = min(STOP_S, max(1.0, self.peers_every_s))
        await asyncio.gather(
            *(self._query(node, commands.poll(node, job), within) for node, job in self._others()),
            return_exceptions=True,
        )

    @staticmethod
    async def _query(node: Node, command: str, within_s: float) -> str:
        async with asyncio.timeout(within_s):
            async with connect_async(node) as transport:
                done = await transport.run(command)
        return done.stdout.decode("utf-8", "replace")

    @property
    def _waits_for_trainers(self) -> bool:
        """Whether the parameter servers of the node only run for trainers of other nodes, as far as known."""
        return self._trained and not self._servers_ended

    async def _end_servers(self) -> bool:
        """Request the end of all parameter servers if all trainers have succeeded; return whether they have.

        Raises:
            Exception: a node does not respond.
        """
        for node, job in self._others():
            reported = json.loads(await self._query(node, commands.poll(node, job), STOP_S))
            record = reported["record"] or {}
            if not (reported["heartbeat"] or {}).get("trained") and record.get("exit_code") != 0:
                return False
        for node, job in [(self.node, self.job), *self._others()]:
            await self._query(node, commands.finish(node, job), STOP_S)
        self._servers_ended = True
        return True

    async def _watch(self, listen: Listener, seconds: float) -> bool:
        """Watch for `seconds`, or until the servers may have to end; return whether the job has ended."""
        self._stillness.begin_watch()
        watch = commands.watch(self.node, self.job, seconds=seconds, resume=self.resume)
        has_output = False
        async with (
            connect_async(self.node) as transport,
            aclosing(transport.lines(watch, silence_s=self.silence_s)) as lines,
        ):
            async for line in lines:
                has_output = True
                if self._take(json.loads(line), listen):
                    return True
                if self._waits_for_trainers:
                    return False
        if not has_output:
            raise ConnectionError("the node's runner sent no data")
        return False

    async def _is_allocation_over(self) -> bool:
        """Return whether Slurm has ended the node's allocation, and with it the job; False if unknown."""
        place = self.node.slurm
        if place is None or not place.job:
            return False
        # Slurm's commands run where the connection leads, not on the node.
        login = self.node.model_copy(update={"slurm": SlurmStep(login=True, local=place.local)})
        try:
            async with asyncio.timeout(STOP_S):
                async with connect_async(login) as transport:
                    done = await transport.run(slurm.state(self.node))
        except Exception as error:
            self.log.warning("cannot query the allocation of node %s: %r", self.node.name, error)
            return False
        output, errors = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
        return is_over(done.exit_code, output, errors, name=place.name)

    def _take(self, message: dict[str, Any], listen: Listener) -> bool:
        """Handle an event of the runner; return True for the last one."""
        event = decode(message)
        if isinstance(event, RunnerAlive):
            if still_s := self._stillness.beyond(event.beat):
                self._stalled = Stalled(event.beat["up"], still_s)
            return self._stalled is not None
        if isinstance(event, LegEnd) and event.record is not None:
            if event.record.leg in self._legs:
                return False  # every watch repeats all legs
            self._legs.add(event.record.leg)
        if isinstance(event, JobTrained):
            self._trained = True
        if isinstance(event, JobLog):
            self.resume[event.leg] = event.end
        shown = progress_event(event, step=self.step, node=self.node.name)
        # The task's log and its display show the state of the task instead.
        if shown is not None and shown.kind is not Kind.STATE:
            listen(shown)
        if isinstance(event, JobHang) and not event.is_known(self.hang_number, self.hung):
            self.hung, self.hang_number = event.why, event.number
            return bool(self._others())  # one node's evidence is collected by its runner
        return isinstance(event, JobEnd | JobGone)

    async def _stop(self, node: Node, job: str) -> None:
        async with asyncio.timeout(STOP_S):
            async with connect_async(node) as transport:
                command = commands.stop(node, job, "stopped from Airflow", StoppedBy.USER)
                await transport.run(command, check=True)
