"""One run of one chain, from a request to a verdict.

resolve -> connect -> lease -> preflight -> deploy -> steps -> release -> judge. In every case the run gets a
status with a reason, the leases are released and the nodes are listed for leftovers.
"""

import contextlib
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.domain import InfraError, Run, Status, TipcflowError, new_run_id
from tipcflow.execute.attempt.finalize import StepCloser
from tipcflow.execute.attempt.steps import StepRunner
from tipcflow.execute.job.spec import slots_needed
from tipcflow.execute.leases.claims import NodeClaims
from tipcflow.execute.leases.keeper import LeaseKeeper
from tipcflow.execute.leases.messages import names_of
from tipcflow.execute.node.nodes import Nodes
from tipcflow.execute.progress import Event, Kind, Listener, silent
from tipcflow.execute.request import RunRequest
from tipcflow.execute.resolve.resolve import Resolved, create_run, resolve
from tipcflow.execute.run import status_spool as spool
from tipcflow.execute.run.deploy import deploy
from tipcflow.execute.run.inspection import inspect, settle
from tipcflow.execute.verdict import confirm
from tipcflow.execute.verdict import judge as judgement

if TYPE_CHECKING:
    from tipcflow.store import Store


class ChainRun:
    """Executes one request. A signal handler may set `cancel`: the run then stops and cleans up."""

    def __init__(
        self,
        request: RunRequest,
        store: "Store",
        *,
        home: Path,
        listener: Listener = silent,
        cancel: threading.Event | None = None,
        run: str = "",
    ) -> None:
        self.request = request
        self._store = store
        self._home = home
        self._say = listener
        self.cancel = cancel or threading.Event()
        stem = Path(request.params).parent.name or Path(request.params).stem
        self.id = run or new_run_id(stem)

    def execute(self) -> Run:
        """Run to the verdict.

        Returns:
            the finished run, with status and reason. Errors of a chain, a node or a configuration are not raised:
            they become the run's status. Errors that are raised are defects of tipcflow or of the database.
        """
        # A confirmation run exists since it joined the queue for its slots.
        if not self.request.confirms:
            create_run(self._store, self.request, self.id)
        self._say(Event(Kind.RUN, self.id))
        spool.reserve(self._home, self.id)
        try:
            run = self._guarded()
        except TipcflowError as error:
            status = Status.CANCELLED if self.cancel.is_set() else error.status
            if status is Status.INFRA_FAILURE:
                with contextlib.suppress(Exception):  # a failing database is reported by the following code
                    StepCloser.keep_before(self._store, self.id, error)
            run = self._finish_or_keep(status, str(error))
        except BaseException as error:
            with contextlib.suppress(Exception):  # if the database fails, the original error reports it
                self._finish_or_keep(Status.INFRA_FAILURE, f"tipcflow itself failed: {error!r}")
            raise
        return run

    def _guarded(self) -> Run:
        resolved, plan = resolve(self._store, self.request, self.id, home=self._home)
        suite = resolved.suite
        slots = slots_needed(plan, resolved.cluster, whole_nodes=resolved.policy.whole_nodes)
        budget_s = (suite.budget_minutes or resolved.policy.budget_minutes) * 60
        with Nodes(resolved.cluster, plan.nodes, waits=resolved.policy.waits) as nodes:
            self._note(f"connecting to {', '.join(plan.nodes)}")
            nodes.connect()
            with LeaseKeeper(
                self._store,
                self.id,
                slots,
                owner=self.request.owner,
                wait_s=self.request.waits_s(resolved.policy),
                ttl_s=resolved.policy.waits.lease_ttl_s,
                empty=nodes.holds_nothing_of,
                claims=NodeClaims(self._store, nodes, self.id, slots, owner=self.request.owner, budget_s=budget_s),
                names=names_of(resolved.cluster),
                say=self._note,
                cancel=self.cancel,
            ) as lease:
                try:
                    facts = inspect(self._store, self.id, resolved, nodes, self._note)
                    plan = settle(self._store, self.id, resolved, facts, nodes)
                    deploy(self._store, self.id, resolved, plan, nodes)
                    self._check_cancel()
                    StepRunner(
                        plan,
                        nodes,
                        self._store,
                        run=self.id,
                        home=self._home,
                        fence=lease.fence,
                        listener=self._say,
                        cancel=self.cancel,
                        log_format=suite.log_format,
                        budget_s=self.request.left_s(budget_s, self._store.now()),
                        policy=resolved.policy,
                    ).run()
                finally:
                    leftovers = nodes.clean(self.id)
                    lease.keep = nodes.may_hold(self._store.attempts(self.id))
                judged = self._judged(resolved)
                once_more = self._ask(resolved, slots)
            for line in leftovers:
                self._note(line)
            run = self._verdict(resolved, judged, leftovers, once_more)
            if run.status in (Status.PASS, Status.IMPROVEMENT) and not self.request.keep:
                nodes.remove_run(self.id)
            return run

    def _check_cancel(self) -> None:
        if self.cancel.is_set():
            raise InfraError("stopped by a user")

    def _judged(self, resolved: Resolved) -> judgement.Judged:
        self._note("judging")
        return judgement.judge_run(self._store, self.id, rules=resolved.policy, references=resolved.references)

    def _ask(self, resolved: Resolved, slots: Sequence[tuple[str, int]]) -> "ChainRun | None":
        """Create the run that re-measures suspected regressions; None if there are none.

        It joins the queue while this run still holds the slots: otherwise a waiting run would get them first, and
            on a busy cluster the confirmation would start after that run, possibly too late.
        """
        if self.cancel.is_set():
            return None
        run, child = self._store.get_run(self.id), new_run_id(self._store.get_run(self.id).model)
        asked = confirm.ask(self._store, run, resolved.policy, child)
        if asked is None:
            return None
        self._note(f"confirming {', '.join(asked.keys)}: run {child}")
        request = confirm.request_for(self.request, run, asked, self._store.now())
        create_run(self._store, request, child)
        ttl_s = resolved.policy.waits.lease_ttl_s
        self._store.queue_for_leases(child, slots, owner=request.owner, ttl_s=ttl_s)
        # Its steps have the names of this run's steps: only its messages are shown.
        listener = confirm.in_words(self._note)
        return ChainRun(request, self._store, home=self._home, listener=listener, cancel=self.cancel, run=child)

    def _verdict(
        self,
        resolved: Resolved,
        judged: judgement.Judged,
        leftovers: list[str],
        once_more: "ChainRun | None",
    ) -> Run:
        if once_more:
            once_more.execute()
        if confirm.asked_of(self._store, self.id):
            judged = self._judged(resolved)
        status, reason = judged.status, judged.reason
        if status is Status.CANCELLED:
            reason = f"stopped by a user{self._where_stopped()}"
        self._store.put_document(self.id, "leftovers", leftovers)
        if leftovers and status.severity < Status.INFRA_FAILURE.severity:
            status, reason = Status.INFRA_FAILURE, leftovers[0]
        run = self._finish(status, reason)
        judgement.write_certificate(self._store, self.id, self._home)
        self._say(Event(Kind.CHECKS, reason, status=status))
        return run

    def _where_stopped(self) -> str:
        stopped = [
            step for step, (status, _) in self._store.step_statuses(self.id).items() if status is Status.CANCELLED
        ]
        return f" in {stopped[0]}" if stopped else ""

    def _finish(self, status: Status, reason: str) -> Run:
        if self.request.confirms:
            self._store.leave_queue(self.id)  # if it ended before its slots were granted
        self._store.finish_run(self.id, status, reason, time.time())
        spool.release(self._home, self.id)
        return self._store.get_run(self.id)

    def _finish_or_keep(self, status: Status, reason: str) -> Run:
        """As `_finish`; a status that the database rejects is stored in a file for a later command."""
        try:
            return self._finish(status, reason)
        except Exception:
            spool.keep(self._home, self.id, status, reason)
            raise

    def _note(self, text: str) -> None:
        self._say(Event(Kind.NOTE, text))


def owner_of_this_process() -> str:
    """Return the owner of a lease: `user@host pid N`."""
    import getpass
    import os
    import socket

    return f"{getpass.getuser()}@{socket.gethostname()} pid {os.getpid()}"
