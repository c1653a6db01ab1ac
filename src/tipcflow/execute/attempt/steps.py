"""The steps of a plan, one after the other in one process; each is stored as soon as it has ended."""

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.config.policy import Policy
from tipcflow.domain import InfraError, Plan, Status, Step
from tipcflow.execute.attempt.finalize import StepCloser
from tipcflow.execute.attempt.gang import Gang
from tipcflow.execute.attempt.retry import Retries
from tipcflow.execute.failure.dependencies import why_not
from tipcflow.execute.job.evidence import gather
from tipcflow.execute.job.hang import hang_limit
from tipcflow.execute.job.member import Member
from tipcflow.execute.job.spec import job_spec
from tipcflow.execute.node.nodes import Nodes
from tipcflow.execute.progress import Event, Kind, Listener

if TYPE_CHECKING:
    from tipcflow.store import Store


class StepRunner:
    """Executes a plan's steps and stores their results.

    A failed step blocks its dependents; other steps continue. Legs of one device run sequentially in one job, CPU
    legs and GPU legs in consecutive jobs, because concurrent legs on one node would distort each other's timings.
    """

    def __init__(
        self,
        plan: Plan,
        nodes: Nodes,
        store: "Store",
        *,
        run: str,
        home: Path,
        fence: int,
        listener: Listener,
        cancel: threading.Event,
        budget_s: float,
        log_format: str,
        policy: Policy,
    ) -> None:
        self._plan = plan
        self._nodes = nodes
        self._store = store
        self._run = run
        self._fence = fence
        self._say = listener
        self._cancel = cancel
        self._budget_s = budget_s
        self._ends_at = time.monotonic() + budget_s
        self._statuses: dict[str, Status] = {}
        self._policy = policy
        self._last: list[Member] = []
        self._closer = StepCloser(
            store,
            run=run,
            home=home,
            log_format=log_format,
            say=listener,
            retries=Retries(store, run, policy),
            left_s=lambda: self._ends_at - time.monotonic(),
        )

    def run(self) -> None:
        """Execute every step; afterwards each step has a status in the store."""
        for step in self._plan.steps:
            skipped = self._why_not(step)
            if skipped is not None:
                self._closer.leave_out(step, *skipped)
                self._statuses[step.id] = skipped[0]
            else:
                self._statuses[step.id] = self._execute(step)

    def _why_not(self, step: Step) -> tuple[Status, str] | None:
        reason = why_not(step, self._statuses)
        if reason is not None and reason[0] is Status.NOT_RUN:
            return reason
        if self._cancel.is_set():
            return Status.CANCELLED, "stopped by a user"
        if reason is None and time.monotonic() >= self._ends_at:
            return Status.INFRA_FAILURE, f"not started: {budget_words(self._budget_s)}"
        return reason

    def _execute(self, step: Step) -> Status:
        """Attempt a step until it succeeds, a user stops it, or no retry is allowed."""
        self._last = []
        while True:
            status, attempt = self._attempt(step)
            if self._cancel.is_set() or not self._closer.again(step, attempt):
                return status

    def _attempt(self, step: Step) -> tuple[Status, int]:
        started = time.time()
        left = self._ends_at - time.monotonic()
        cut = left < step.deadline_s
        step = step.model_copy(update={"deadline_s": max(1.0, left)}) if cut else step
        attempt = self._store.open_attempt(self._run, step.id, step.nodes, started)
        self._say(Event(Kind.STEP_STARTED, step=step.id, node=",".join(step.nodes)))
        hang_s = hang_limit(self._store, self._run, self._plan, self._policy)
        members = [
            Member(
                self._nodes[name],
                job_spec(
                    self._plan,
                    step,
                    self._nodes[name].node,
                    run=self._run,
                    attempt=attempt,
                    fence=self._fence,
                    hang_s=hang_s,
                    lease_s=self._policy.waits.node_lease_s,
                ),
                listener=self._say,
                reconnect_s=self._nodes.reconnect_s,
                silence_s=self._nodes.silence_s,
            )
            for name in step.nodes
        ]
        self._closer.fetch_late(step, attempt - 1, self._last, self._nodes)
        self._last = members
        trouble: InfraError | None = None
        try:
            together = step.is_gang or len(members) == 1
            Gang(members, self._cancel, together=together, look=lambda: self._look(step, attempt, members)).run()
        except InfraError as error:
            trouble = error
        status, _ = self._closer.close(
            step,
            attempt,
            members,
            self._nodes,
            cancelled=self._cancel.is_set(),
            trouble=trouble,
            late=budget_words(self._budget_s) if cut and time.monotonic() >= self._ends_at else "",
        )
        return status, attempt

    def _look(self, step: Step, attempt: int, members: list[Member]) -> None:
        """Collect evidence from all nodes of the attempt."""
        for node, why in gather(members, self._closer.folder(step, attempt)).items():
            self._say(Event(Kind.NOTE, f"no evidence from node {node}: {why}", step=step.id))


def budget_words(budget_s: float) -> str:
    """Return the message for work that comes after the run's budget."""
    return f"the run's budget of {budget_s / 60:.3g} min is used up"
