"""Close an attempt exactly once: fetch and parse its logs, store its metrics, set its status."""

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcflow.config.formats import PredictionRule
from tipcflow.domain import AttemptKey, AutologReport, InfraError, LegKey, LogLines, MemberKey, Status, Step
from tipcflow.domain.run.failure import Failure, FailureClass, Suspicion
from tipcflow.domain.run_documents import (
    AutologDocument,
    CutDocument,
    Document,
    EngineDocument,
    FailuresDocument,
    LateLogs,
    LateLogsDocument,
    LinesDocument,
    PredictionsDocument,
    ProgressDocument,
    RanksDocument,
    ReportersDocument,
    ReportsDocument,
    SuspicionsDocument,
)
from tipcflow.execute.attempt.retry import Retries
from tipcflow.execute.collect.collect import Collected, collect
from tipcflow.execute.collect.folders import earlier_folder, step_folder
from tipcflow.execute.collect.kept_files import record_kept
from tipcflow.execute.collect.store_files import store_files
from tipcflow.execute.failure import outcome
from tipcflow.execute.failure.diagnosis import LogDiagnosis
from tipcflow.execute.failure.outcome import Outcome
from tipcflow.execute.failure.preparation import attributed_to_preparation, reported
from tipcflow.execute.failure.root_cause import is_failed
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
        rules: the suite's own lines of predictions.
    """

    def __init__(
        self,
        store: "Store",
        *,
        run: str,
        home: Path,
        log_format: str,
        report: Listener,
        retries: Retries | None = None,
        left_s: Callable[[], float] = lambda: 0.0,
        rules: Sequence[PredictionRule] = (),
    ) -> None:
        self._retries = retries
        self._left_s = left_s
        self._store = store
        self._run = run
        self._home = home
        self._log_format = log_format
        self._rules = rules
        self._report = report

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

    def fetch_late(
        self, step: Step, attempt: int, members: Sequence[Member], nodes: Nodes
    ) -> tuple[int, tuple[str, ...]]:
        """Fetch the logs of nodes that were lost and respond again; store them under the attempt they belong to.

        Call this before the next attempt starts, because its processes may overwrite the logs. The attempt stays
        closed with its status; nodes that still do not respond are skipped.

        Returns:
            (number of metric values stored, messages about files that are still missing).
        """
        lost_members = [member for member in members if member.record is None and member.lost]
        if not lost_members:
            return 0, ()
        added: list[int] = []
        with self._alone(step):
            folder = step_folder(self._home, self._run, step.id)
            mark = folder / ".attempt"
            if not mark.is_file() or mark.read_text() != str(attempt):
                folder = earlier_folder(folder, attempt)
            collected = collect(
                step,
                lost_members,
                nodes,
                home=self._home,
                attempt=attempt,
                log_format=self._log_format,
                rules=self._rules,
                keep=lambda series: added.append(self._store.series.add(series)),
                into=folder,
            )
            added.append(self._store.measurements.add(collected.measurements))
            self._keep_files(step, attempt, folder, late=True)
        for message in (*collected.notes, *collected.lost):
            self._report(Event(Kind.NOTE, f"attempt {attempt}: {message}", step=step.id))
        if not collected.lost:
            late = LateLogs(done=True, samples=sum(added), message="fetched before the next attempt")
            keys = {MemberKey(step.id, attempt, member.name): late for member in lost_members}
            self._store.documents.merge(self._run, LateLogsDocument, keys)
        return sum(added), tuple(collected.lost)

    def folder(self, step: Step, attempt: int) -> Path:
        """Return the folder of an attempt's files; files of an earlier attempt are moved aside first."""
        with self._alone(step):
            self._put_aside(step, attempt)
        return step_folder(self._home, self._run, step.id)

    def again(self, step: Step, attempt: int) -> bool:
        """Whether a closed attempt is followed by a retry."""
        failures = self._store.documents.get(self._run, FailuresDocument) or FailuresDocument()
        failure = failures.root.get(AttemptKey(step.id, attempt))
        return failure is not None and failure.again

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
            rules=self._rules,
            keep=self._store.series.add,
        )
        self._store.measurements.add(collected.measurements)
        self._remember(step, collected)
        judged = self._judge(step, members, collected, attempt, trouble, cancelled=cancelled, late=late)
        status, reason, failed = judged.status, judged.reason, judged.failure
        if collected.lost and failed is None and status in (Status.PASS, Status.INFRA_FAILURE):
            kind = FailureClass.NODE_LOST if collected.is_away else FailureClass.EVIDENCE_LOST
            failed = Failure(failure_class=kind, node=collected.lost_on)
        if collected.lost and status is Status.PASS:
            status, reason = Status.INFRA_FAILURE, "; ".join(collected.lost)
        elif status is Status.PASS and (collected.notes or collected.suspicions):
            reason = "; ".join(filter(None, [*collected.notes, reported(collected.suspicions)]))
        elif collected.lost and status is Status.FAILED:
            reason = "; ".join([reason, *collected.lost])  # the message of the error may be in what is missing
        failure = self._consequence(step, attempt, failed, nodes, final=final)
        if failure is not None and failure.then:
            reason = f"{reason}; {failure.then}"
        records = [member.record for member in members if member.record is not None]
        self._keep_files(step, attempt, step_folder(self._home, self._run, step.id))
        if self._store.attempts.close(self._run, step.id, attempt, status, reason, records, time.time()):
            for note in [*collected.notes, *collected.lost]:
                self._report(Event(Kind.NOTE, note, step=step.id))
            self.end(step, status, reason, again=failure is not None and failure.again)
            if failure is not None:
                headline = "; ".join(filter(None, (failure.headline, failure.then)))
                self._report(Event(Kind.NOTE, f"{step.id}: {headline}. {failure.remedy.advice}", step=step.id))
        return status, reason

    def _keep_files(self, step: Step, attempt: int, folder: Path, *, late: bool = False) -> None:
        """Record the attempt's files, and write them to the object store, before readers see its end."""
        record_kept(self._store, self._run, step.id, attempt, folder, late=late)
        key = AttemptKey(step.id, attempt)
        if problem := store_files(self._store, self._run, key, folder, self._home):
            self._report(Event(Kind.NOTE, f"attempt {attempt}: {problem}", step=step.id))

    def _consequence(
        self, step: Step, attempt: int, failure: Failure | None, nodes: Nodes, *, final: bool
    ) -> Failure | None:
        """Decide about a retry and store the decision before the attempt is closed, so that readers see both."""
        if failure is None:
            return None
        if self._retries is not None and not final:
            began = next(
                entry.started_at
                for entry in self._store.attempts.of(self._run)
                if (entry.step, entry.attempt) == (step.id, attempt)
            )
            took_s = time.time() - began
            failure = self._retries.decide(step, failure, nodes, took_s=took_s, left_s=self._left_s())
        key = AttemptKey(step.id, attempt)
        self._store.documents.merge(self._run, FailuresDocument, {key: failure})
        return failure

    @staticmethod
    def store_failure(store: "Store", run: str, error: Exception) -> None:
        """Store why a run ended before its first step, if a node caused it."""
        failure = outcome.before_the_first_step(error) if isinstance(error, InfraError) else None
        if failure is not None and not store.attempts.of(run):
            store.documents.merge(run, FailuresDocument, {FailuresDocument.BEFORE: failure})

    def store_unstarted(self, step: Step, kind: FailureClass) -> None:
        """Store why a step is not started, as the failure of its attempt 0."""
        failure = {AttemptKey(step.id, 0): Failure(failure_class=kind)}
        self._store.documents.merge(self._run, FailuresDocument, failure)

    @contextlib.contextmanager
    def _alone(self, step: Step) -> Iterator[None]:
        """Serialize closers of a step: concurrent ones would fetch the same logs into the same files."""
        folder = step_folder(self._home, self._run, step.id)
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Also across machines that do not share this folder: both would fetch from the nodes at once.
        name = f"close {self._run} {step.id}"
        with (
            locked(folder.with_name(f".{folder.name}.closing"), seconds=CLOSING_S),
            self._store.locks.held(name, seconds=CLOSING_S),
        ):
            yield

    def _put_aside(self, step: Step, attempt: int) -> None:
        """Move an earlier attempt's files aside, so that they are not read as this attempt's."""
        folder = step_folder(self._home, self._run, step.id)
        mark = folder / ".attempt"
        if folder.is_dir():
            before = mark.read_text() if mark.is_file() else "0"
            if before != str(attempt):
                aside = earlier_folder(folder, before)
                shutil.rmtree(aside, ignore_errors=True)
                folder.rename(aside)
        folder.mkdir(parents=True, exist_ok=True)
        mark.write_text(str(attempt))

    def _closed(self, step: Step, attempt: int) -> tuple[Status, str] | None:
        for known in self._store.attempts.of(self._run):
            if (known.step, known.attempt) == (step.id, attempt) and known.status is not None:
                return known.status, known.reason
        return None

    def end(self, step: Step, status: Status, reason: str, *, again: bool = False) -> None:
        """Store the status of a step; a step that is retried sends no STEP_ENDED event."""
        self._store.steps.set(self._run, step.id, status, reason)
        if not again:
            self._report(Event(Kind.STEP_ENDED, reason, step=step.id, status=status))

    def leave_out(self, step: Step, status: Status, reason: str) -> None:
        """Store why a step and its legs are not started."""
        self.end(step, status, reason)
        self.skip_legs(step, status, reason)

    def skip_legs(self, step: Step, status: Status, reason: str) -> None:
        """Mark all legs of a step as not started."""
        for leg in step.legs:
            word = Status.NOT_RUN if leg.not_run or status is Status.NOT_RUN else Status.BLOCKED
            self._store.steps.set_leg(self._run, step.id, leg.id, 0, word, leg.not_run or reason, None)

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
            result = self._judge_legs(step, members[0], collected, attempt, cancelled=cancelled, late=late)
        else:
            facts = self._store.nodes.facts(self._run) if any(map(is_failed, members)) else []
            skew = {fact.node: fact.clock_skew_s for fact in facts}
            result = outcome.step_outcome(members, collected.diagnoses, cancelled=cancelled, skew=skew, late=late)
            result = outcome.with_short_rank(result, collected.losses)
            result = attributed_to_preparation(result, self._suspicions())
        folder = step_folder(self._home, self._run, step.id)
        return outcome.with_evidence(result, *gathered(folder, step.nodes), root=folder.parent)

    def _suspicions(self) -> list[Suspicion]:
        document = self._store.documents.get(self._run, SuspicionsDocument) or SuspicionsDocument()
        return [suspicion for suspicions in document.root.values() for suspicion in suspicions]

    def _judge_legs(
        self, step: Step, member: Member, collected: Collected, attempt: int, *, cancelled: bool, late: str
    ) -> Outcome:
        results = []
        for leg in step.legs:
            diagnosis = collected.diagnoses.get(leg.id, LogDiagnosis())
            garbled = "; ".join(collected.garbled)
            result = outcome.leg_outcome(leg, member, diagnosis, cancelled=cancelled, late=late, garbled=garbled)
            result = attributed_to_preparation(result, self._suspicions())
            results.append(result)
            record = member.legs.get(leg.id)
            status = outcome.stored_leg_status(result.status)
            self._store.steps.set_leg(self._run, step.id, leg.id, attempt, status, result.reason, record)
            self._report(Event(Kind.LEG, result.reason, step=step.id, node=member.name, leg=leg.id, status=status))
        return outcome.legs_outcome(results, outcome.whole_job(member, cancelled=cancelled, late=late))

    def _remember(self, step: Step, collected: Collected) -> None:
        """Store what checks need beyond metrics (predictions, reports, settings, ranks). Only the last attempt
        counts: entries of an earlier attempt are removed even if this attempt has none."""
        logs = {LegKey(step.id, leg): log for leg, log in collected.inference.items()}
        predictions = {key.part: log.predictions for key, log in logs.items() if log.predictions}
        if collected.predictions:
            predictions[LegKey(step.id).part] = collected.predictions
        documents: dict[type[Document], Mapping[Any, Any]] = {
            PredictionsDocument: predictions,
            AutologDocument: {key: log.autolog for key, log in logs.items() if log.autolog},
            ReportsDocument: {
                key: AutologReport(at=log.blocks[-1].at, timed=log.blocks[-1].timed)
                for key, log in logs.items()
                if log.blocks
            },
            EngineDocument: {key: log.engine for key, log in logs.items() if log.engine},
            ReportersDocument: {key: log.reporter for key, log in logs.items() if log.reporter},
            LinesDocument: {step.id: collected.lines} if collected.lines != LogLines() else {},
            ProgressDocument: {step.id: tuple(collected.progress)} if collected.progress else {},
            RanksDocument: {step.id: collected.ranks} if collected.ranks else {},
            SuspicionsDocument: {step.id: tuple(collected.suspicions)} if collected.suspicions else {},
            CutDocument: {step.id: collected.lost} if collected.lost else {},
        }
        own = [step.id, *(LegKey(step.id, leg.id) for leg in step.legs)]
        for kind, entries in documents.items():
            self._store.documents.merge(self._run, kind, entries, without=own)
