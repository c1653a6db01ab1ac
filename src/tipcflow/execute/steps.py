"""The steps of a plan, one after the other, each stored as soon as it has ended."""

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.domain import ExitRecord, InfraError, Plan, RankReport, Status, Step
from tipcflow.execute import outcome
from tipcflow.execute.collect import Collected, collect
from tipcflow.execute.gang import Gang, culprit
from tipcflow.execute.jobs import job_spec
from tipcflow.execute.member import Member
from tipcflow.execute.nodes import Nodes
from tipcflow.execute.progress import Event, Kind, Listener
from tipcflow.parse import error_excerpt

if TYPE_CHECKING:
    from tipcflow.store import Store


class StepRunner:
    """Executes a plan's steps and stores what they gave.

    A step that does not end well blocks those that need it; the others go on. Legs of one device run one after
    the other inside one job, and CPU and GPU legs one job after the other: both would disturb each other's
    times on one node.
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
    ) -> None:
        self._plan = plan
        self._nodes = nodes
        self._store = store
        self._run = run
        self._home = home
        self._fence = fence
        self._say = listener
        self._cancel = cancel
        self._budget_s = budget_s
        self._log_format = log_format
        self._ends_at = time.monotonic() + budget_s
        self._statuses: dict[str, Status] = {}
        self._predictions: dict[str, dict[str, tuple[float, ...]]] = {}
        self._autolog: dict[str, dict[str, str]] = {}
        self._engine: dict[str, dict[str, str]] = {}
        self._ranks: dict[str, list[RankReport]] = {}
        self._reporter = ""

    def run(self) -> None:
        """Execute every step; afterwards each has a status in the store."""
        for step in self._plan.steps:
            skipped = self._why_not(step)
            if skipped is not None:
                self._end(step, *skipped)
                self._skip_legs(step, *skipped)
            else:
                self._execute(step)

    def _why_not(self, step: Step) -> tuple[Status, str] | None:
        if step.not_run:
            return Status.NOT_RUN, step.not_run
        if step.legs and all(leg.not_run for leg in step.legs):
            return Status.NOT_RUN, step.legs[0].not_run
        if self._cancel.is_set():
            return Status.CANCELLED, "stopped by a person"
        if time.monotonic() >= self._ends_at:
            return Status.FAILED, f"not started: {self._budget_words()}"
        missing = [need for need in step.after if self._statuses.get(need) is not Status.PASS]
        if missing:
            said = ", ".join(f"{need} is {self._statuses.get(need, Status.BLOCKED).value}" for need in missing)
            return Status.BLOCKED, f"not started: {said}"
        return None

    def _budget_words(self) -> str:
        return f"the run's budget of {self._budget_s / 60:g} min is used up"

    def _skip_legs(self, step: Step, status: Status, reason: str) -> None:
        for leg in step.legs:
            word = Status.NOT_RUN if leg.not_run or status is Status.NOT_RUN else Status.BLOCKED
            self._store.set_leg(self._run, step.id, leg.id, 1, word, leg.not_run or reason, None)

    def _execute(self, step: Step) -> None:
        started = time.time()
        left = self._ends_at - time.monotonic()
        cut = left < step.deadline_s
        step = step.model_copy(update={"deadline_s": max(1.0, left)}) if cut else step
        attempt = self._store.open_attempt(self._run, step.id, step.nodes, started)
        self._say(Event(Kind.STEP_STARTED, step=step.id, node=",".join(step.nodes)))
        members = [
            Member(
                self._nodes[name],
                job_spec(
                    self._plan, step, self._nodes[name].node, run=self._run, attempt=attempt, fence=self._fence
                ),
                listener=self._say,
                reconnect_s=self._nodes.reconnect_s,
            )
            for name in step.nodes
        ]
        trouble = ""
        try:
            Gang(members, self._cancel).run()
        except InfraError as error:
            trouble = str(error)
        collected = collect(
            step, members, self._nodes, home=self._home, attempt=attempt, log_format=self._log_format
        )
        self._store.add_measurements(collected.measurements)
        self._remember(step, collected)
        status, reason = self._judge_step(step, members, collected, attempt, trouble)
        if cut and status is Status.FAILED and time.monotonic() >= self._ends_at:
            reason = f"{self._budget_words()}: {reason}"
        if collected.lost and status is Status.PASS:
            status, reason = Status.INFRA_FAILURE, "; ".join(collected.lost)
        elif status is Status.PASS and collected.notes:
            reason = "; ".join(collected.notes)
        records = [member.record for member in members if member.record is not None]
        self._store.close_attempt(self._run, step.id, attempt, status, reason, records, time.time())
        for note in collected.notes:
            self._say(Event(Kind.NOTE, note, step=step.id))
        self._end(step, status, reason)

    def _judge_step(
        self, step: Step, members: list[Member], collected: Collected, attempt: int, trouble: str
    ) -> tuple[Status, str]:
        cancelled = self._cancel.is_set()
        if trouble and not cancelled:
            self._skip_legs(step, Status.BLOCKED, trouble)
            return Status.INFRA_FAILURE, trouble
        if not step.legs:
            status, reason = outcome.step_outcome(members, collected.tails, cancelled=cancelled)
            if status is Status.FAILED:
                excerpt = error_excerpt(collected.tails.get(self._blamed(members), ""))
                reason = f"{reason}: {excerpt}" if excerpt else reason
            return status, reason
        member = members[0]
        whole = (Status.PASS, "")
        if member.record is None:
            whole = (Status.INFRA_FAILURE, member.lost)
        elif not _ended_by_itself(member.record):
            whole = outcome.status_of(member.record)
        results = []
        for leg in step.legs:
            tail = collected.tails.get(leg.id, "")
            status, reason = outcome.leg_outcome(leg, member, tail, cancelled=cancelled)
            if status is Status.FAILED:
                excerpt = error_excerpt(tail)
                reason = f"{reason}: {excerpt}" if excerpt else reason
            results.append((status, reason))
            record = member.legs.get(leg.id)
            status = outcome.said_of_leg(status)
            self._store.set_leg(self._run, step.id, leg.id, attempt, status, reason, record)
            self._say(Event(Kind.LEG, reason, step=step.id, node=member.name, leg=leg.id, status=status))
        return outcome.legs_outcome(results, (Status.CANCELLED, "stopped by a person") if cancelled else whole)

    @staticmethod
    def _blamed(members: list[Member]) -> str:
        member = culprit(members)
        return member.name if member else ""

    def _end(self, step: Step, status: Status, reason: str) -> None:
        self._statuses[step.id] = status
        self._store.set_step(self._run, step.id, status, reason)
        self._say(Event(Kind.STEP_ENDED, reason, step=step.id, status=status))

    def _remember(self, step: Step, collected: Collected) -> None:
        if collected.ranks:
            self._ranks[step.id] = collected.ranks
        for leg, log in collected.inference.items():
            key = f"{step.id}/{leg}"
            if log.predictions:
                self._predictions[key] = log.predictions
            if log.autolog:
                self._autolog[key] = log.autolog
            if log.engine:
                self._engine[key] = log.engine
            self._reporter = log.reporter or self._reporter
        self._store_documents()

    def _store_documents(self) -> None:
        """What checks need beyond numbers: predictions, reports, settings, ranks."""
        put = self._store.put_document
        put(self._run, "predictions", self._predictions)
        put(self._run, "autolog", self._autolog)
        put(self._run, "engine", self._engine)
        ranks = {step: [report.model_dump() for report in reports] for step, reports in self._ranks.items()}
        put(self._run, "ranks", ranks)
        put(self._run, "reporter", self._reporter)


def _ended_by_itself(record: ExitRecord) -> bool:
    return record.reason.value in ("exited", "signaled")
