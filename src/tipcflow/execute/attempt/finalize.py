"""Close an attempt exactly once: fetch and parse its logs, store its metrics, set its status."""

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcflow.domain import AutologReport, InfraError, LogLines, Status, Step
from tipcflow.domain.run.failure import BEFORE, FAILURES, Failure, failure_key
from tipcflow.execute.attempt.retry import Retries
from tipcflow.execute.collect.collect import Collected, collect, step_folder
from tipcflow.execute.failure import outcome
from tipcflow.execute.failure.diagnosis import Telling
from tipcflow.execute.failure.outcome import Outcome
from tipcflow.execute.failure.root_cause import is_bad
from tipcflow.execute.job.evidence import gathered
from tipcflow.execute.job.member import Member
from tipcflow.execute.node.file_lock import locked
from tipcflow.execute.node.nodes import Nodes
from tipcflow.execute.progress import Event, Kind, Listener

if TYPE_CHECKING:
    from tipcflow.store import Store


# Maximum wait for another process that closes the same step; fetching large logs of many nodes takes minutes.
CLOSING_S = 600.0


class StepCloser:
    """Closes attempts of one run's steps.

    Args:
        retries: decides whether an attempt is retried; None: never.
        left_s: returns the remaining budget of the run, seconds.
    """

    def __init__(
        self,
        store: "Store",
        *,
        run: str,
        home: Path,
        log_format: str,
        say: Listener,
        retries: Retries | None = None,
        left_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._retries = retries
        self._left_s = left_s
        self._store = store
        self._run = run
        self._home = home
        self._log_format = log_format
        self._say = say

    def close(
        self,
        step: Step,
        attempt: int,
        members: Sequence[Member],
        nodes: Nodes,
        *,
        cancelled: bool = False,
        trouble: InfraError | None = None,
        late: str = "",
        final: bool = False,
    ) -> tuple[Status, str]:
        """Collect, store and judge an attempt whose members have all ended.

        Args:
            cancelled: whether a user stopped the attempt.
            trouble: the error that prevented the start of the attempt; None if it started.
            late: message about the run's budget if it cut the step short, else ''.
            final: whether no further attempt is possible.

        Returns:
            the stored status and reason of the step. An attempt that another process has already closed is not
            changed.
        """
        with self._alone(step):
            closed = self._closed(step, attempt)
            if closed is not None:
                return closed
            self._put_aside(step, attempt)
            return self._close(
                step, attempt, members, nodes, cancelled=cancelled, trouble=trouble, late=late, final=final
            )

    def fetch_late(self, step: Step, attempt: int, members: Sequence[Member], nodes: Nodes) -> None:
        """Fetch the logs of nodes that were lost and respond again; store them under the attempt they belong to.

        Call this before the next attempt starts, because its processes may overwrite the logs. The attempt stays
        closed with its status; nodes that still do not respond are skipped.
        """
        gone = [member for member in members if member.record is None and member.lost]
        if not gone:
            return
        with self._alone(step):
            folder = step_folder(self._home, self._run, step.id)
            mark = folder / ".attempt"
            if not mark.is_file() or mark.read_text() != str(attempt):
                folder = folder.with_name(f"{folder.name}~{attempt}")
            found = collect(
                step,
                gone,
                nodes,
                home=self._home,
                attempt=attempt,
                log_format=self._log_format,
                keep=self._store.add_series,
                into=folder,
            )
        for words in (*found.notes, *found.lost):
            self._say(Event(Kind.NOTE, f"attempt {attempt}: {words}", step=step.id))

    def folder(self, step: Step, attempt: int) -> Path:
        """Return the folder of an attempt's files; files of an earlier attempt are moved aside first."""
        with self._alone(step):
            self._put_aside(step, attempt)
        return step_folder(self._home, self._run, step.id)

    def again(self, step: Step, attempt: int) -> bool:
        """Whether a closed attempt is followed by a retry."""
        kept = (self._store.document(self._run, FAILURES) or {}).get(failure_key(step.id, attempt))
        return bool(kept) and Failure.model_validate(kept).again

    def _close(
        self,
        step: Step,
        attempt: int,
        members: Sequence[Member],
        nodes: Nodes,
        *,
        cancelled: bool,
        trouble: InfraError | None,
        late: str,
        final: bool,
    ) -> tuple[Status, str]:
        collected = collect(
            step,
            members,
            nodes,
            home=self._home,
            attempt=attempt,
            log_format=self._log_format,
            keep=self._store.add_series,
        )
        self._store.add_measurements(collected.measurements)
        self._remember(step, collected)
        judged = self._judge(step, members, collected, attempt, trouble, cancelled=cancelled, late=late)
        status, reason = judged.status, judged.reason
        if collected.lost and status is Status.PASS:
            status, reason = Status.INFRA_FAILURE, "; ".join(collected.lost)
        elif status is Status.PASS and collected.notes:
            reason = "; ".join(collected.notes)
        failure = self._consequence(step, attempt, judged.failure, nodes, final=final)
        if failure is not None and failure.then:
            reason = f"{reason}; {failure.then}"
        records = [member.record for member in members if member.record is not None]
        if self._store.close_attempt(self._run, step.id, attempt, status, reason, records, time.time()):
            for note in [*collected.notes, *collected.lost]:
                self._say(Event(Kind.NOTE, note, step=step.id))
            self.end(step, status, reason, again=failure is not None and failure.again)
            if failure is not None:
                words = "; ".join(filter(None, (failure.headline, failure.then)))
                self._say(Event(Kind.NOTE, f"{step.id}: {words}. {failure.remedy.advice}", step=step.id))
        return status, reason

    def _consequence(
        self, step: Step, attempt: int, failure: Failure | None, nodes: Nodes, *, final: bool
    ) -> Failure | None:
        """Decide about a retry and store the decision before the attempt is closed, so that readers see both."""
        if failure is None:
            return None
        if self._retries is not None and not final:
            began = next(
                one.started_at
                for one in self._store.attempts(self._run)
                if (one.step, one.attempt) == (step.id, attempt)
            )
            took_s = time.time() - began
            failure = self._retries.decide(step, failure, nodes, took_s=took_s, left_s=self._left_s())
        kept = failure.model_dump(mode="json")
        self._store.merge_document(self._run, FAILURES, {failure_key(step.id, attempt): kept})
        return failure

    @staticmethod
    def keep_before(store: "Store", run: str, error: Exception) -> None:
        """Store why a run ended before its first step, if a node caused it."""
        failure = outcome.before_the_first_step(error) if isinstance(error, InfraError) else None
        if failure is not None and not store.attempts(run):
            store.merge_document(run, FAILURES, {BEFORE: failure.model_dump(mode="json")})

    @contextlib.contextmanager
    def _alone(self, step: Step) -> Iterator[None]:
        """Serialise closers of a step: concurrent ones would fetch the same logs into the same files."""
        folder = step_folder(self._home, self._run, step.id)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.with_name(f".{folder.name}.closing"), seconds=CLOSING_S):
            yield

    def _put_aside(self, step: Step, attempt: int) -> None:
        """Move an earlier attempt's files to `<step>~<attempt>`, so that they are not read as this attempt's."""
        folder = step_folder(self._home, self._run, step.id)
        mark = folder / ".attempt"
        if folder.is_dir():
            before = mark.read_text() if mark.is_file() else "0"
            if before != str(attempt):
                aside = folder.with_name(f"{folder.name}~{before}")
                shutil.rmtree(aside, ignore_errors=True)
                folder.rename(aside)
        folder.mkdir(parents=True, exist_ok=True)
        mark.write_text(str(attempt))

    def _closed(self, step: Step, attempt: int) -> tuple[Status, str] | None:
        for known in self._store.attempts(self._run):
            if (known.step, known.attempt) == (step.id, attempt) and known.status is not None:
                return known.status, known.reason
        return None

    def end(self, step: Step, status: Status, reason: str, *, again: bool = False) -> None:
        """Store the status of a step; a step that is retried sends no STEP_ENDED event."""
        self._store.set_step(self._run, step.id, status, reason)
        if not again:
            self._say(Event(Kind.STEP_ENDED, reason, step=step.id, status=status))

    def leave_out(self, step: Step, status: Status, reason: str) -> None:
        """Store why a step and its legs are not started."""
        self.end(step, status, reason)
        self.skip_legs(step, status, reason)

    def skip_legs(self, step: Step, status: Status, reason: str) -> None:
        """Mark all legs of a step as not started."""
        for leg in step.legs:
            word = Status.NOT_RUN if leg.not_run or status is Status.NOT_RUN else Status.BLOCKED
            self._store.set_leg(self._run, step.id, leg.id, 0, word, leg.not_run or reason, None)

    def _judge(
        self,
        step: Step,
        members: Sequence[Member],
        collected: Collected,
        attempt: int,
        trouble: InfraError | None,
        *,
        cancelled: bool,
        late: str,
    ) -> Outcome:
        if trouble is not None and not cancelled:
            self.skip_legs(step, Status.BLOCKED, str(trouble))
            return outcome.unready(members, trouble)
        if step.legs:
            said = self._judge_legs(step, members[0], collected, attempt, cancelled=cancelled, late=late)
        else:
            facts = self._store.node_facts(self._run) if any(map(is_bad, members)) else []
            skew = {one.node: one.clock_skew_s for one in facts}
            said = outcome.step_outcome(members, collected.told, cancelled=cancelled, skew=skew, late=late)
        folder = step_folder(self._home, self._run, step.id)
        return outcome.with_evidence(said, *gathered(folder, step.nodes), root=folder.parent)

    def _judge_legs(
        self, step: Step, member: Member, collected: Collected, attempt: int, *, cancelled: bool, late: str
    ) -> Outcome:
        results = []
        for leg in step.legs:
            told = collected.told.get(leg.id, Telling())
            garbled = "; ".join(collected.garbled)
            said = outcome.leg_outcome(leg, member, told, cancelled=cancelled, late=late, garbled=garbled)
            results.append(said)
            record = member.legs.get(leg.id)
            status = outcome.said_of_leg(said.status)
            self._store.set_leg(self._run, step.id, leg.id, attempt, status, said.reason, record)
            self._say(Event(Kind.LEG, said.reason, step=step.id, node=member.name, leg=leg.id, status=status))
        return outcome.legs_outcome(results, outcome.whole_job(member, cancelled=cancelled, late=late))

    def _remember(self, step: Step, collected: Collected) -> None:
        """Store what checks need beyond metrics (predictions, reports, settings, ranks). Only the last attempt
        counts: entries of an earlier attempt are removed even if this attempt has none."""
        logs = {f"{step.id}/{leg}": log for leg, log in collected.inference.items()}
        answers = {key: log.predictions for key, log in logs.items() if log.predictions}
        if collected.predictions:
            answers[step.id] = collected.predictions
        found: dict[str, dict[str, Any]] = {
            "predictions": answers,
            "autolog": {key: log.autolog for key, log in logs.items() if log.autolog},
            "reports": {
                key: AutologReport(at=log.blocks[-1].at, timed=log.blocks[-1].timed).model_dump()
                for key, log in logs.items()
                if log.blocks
            },
            "engine": {key: log.engine for key, log in logs.items() if log.engine},
            "reporters": {key: log.reporter for key, log in logs.items() if log.reporter},
            "lines": {step.id: collected.lines.model_dump()} if collected.lines != LogLines() else {},
            "ranks": {step.id: [report.model_dump() for report in collected.ranks]} if collected.ranks else {},
            "cut": {step.id: collected.lost} if collected.lost else {},
        }
        own = [step.id, *(f"{step.id}/{leg.id}" for leg in step.legs)]
        for name, entries in found.items():
            self._store.merge_document(self._run, name, entries, without=own)
