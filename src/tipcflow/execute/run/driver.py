"""One run of one chain in one process, from a request to a verdict, by the phases that Airflow runs as tasks.

resolve -> connect -> lease -> preflight -> deploy -> steps -> release -> judge. In every case the run gets a
status with a reason, the leases are released and the nodes are listed for leftovers.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from tipcflow.domain import DatabaseLostError, InfraError, JobSpec, Run, Status, TipcflowError, new_run_id
from tipcflow.domain.run_documents import LeftoversDocument
from tipcflow.execute.allocation import hold
from tipcflow.execute.attempt.finalize import StepCloser
from tipcflow.execute.leases.claims import NodeClaims
from tipcflow.execute.leases.keeper import WAITER_S, LeaseKeeper
from tipcflow.execute.leases.messages import names_of
from tipcflow.execute.node.nodes import Nodes
from tipcflow.execute.progress import Event, Kind, Listener, silent
from tipcflow.execute.request import RunRequest
from tipcflow.execute.resolve.resolve import create_run, resolve
from tipcflow.execute.run import phases
from tipcflow.execute.run import status_spool as spool
from tipcflow.execute.run.confirmation import queue_confirmation
from tipcflow.execute.run.context import TaskContext
from tipcflow.execute.verdict import confirm
from tipcflow.execute.verdict.signature import signing_key
from tipcflow.transport.connect import connect

if TYPE_CHECKING:
    from tipcflow.store import Store


class ChainRun:
    """Executes one request. A signal handler may set `cancel`: the run then stops and cleans up.

    Args:
        run: the run's id; '' for a new one. The run may exist already.
        heir: creates the run that takes over the leases when this run's steps have ended, and returns its id.
    """

    def __init__(
        self,
        request: RunRequest,
        store: "Store",
        *,
        home: Path,
        listener: Listener = silent,
        cancel: threading.Event | None = None,
        run: str = "",
        heir: Callable[[], str] | None = None,
    ) -> None:
        self.request = request
        self._store = store
        self._home = home
        self._report = listener
        self.cancel = cancel or threading.Event()
        stem = Path(request.params).parent.name or Path(request.params).stem
        self.id = run or new_run_id(stem)
        self._created: Run | None = None
        self._held: BinaryIO | None = None
        self._heir = heir
        # Whether it keeps a place in the queue for a further confirm run.
        self._followed = False

    def execute(self) -> Run:
        """Run to the verdict.

        Returns:
            the finished run, with status and reason. Errors of a chain, a node or a configuration are not raised:
            they become the run's status. Errors that are raised are defects of tipcflow or of the database.
        """
        # A confirm run exists since it joined the queue, the second run of a pair since it got the leases.
        if not self._store.runs.known([self.id]):
            create_run(self._store, self.request, self.id)
        self._created = self._store.runs.get(self.id)
        self._report(Event(Kind.RUN, self.id))
        self._held = spool.reserve(self._home, self.id)
        try:
            run = self._guarded()
        except TipcflowError as error:
            # The lease's thread cancels a run that lost its database.
            stopped = self.cancel.is_set() and not isinstance(error, DatabaseLostError)
            status = Status.CANCELLED if stopped else error.status
            if status is Status.INFRA_FAILURE:
                with contextlib.suppress(Exception):  # a failing database is reported by the following code
                    StepCloser.store_failure(self._store, self.id, error)
            run = self._finish_or_keep(status, str(error))
        except BaseException as error:
            from tipcflow.store.trouble import database_error_message

            why = database_error_message(error) or f"tipcflow itself failed: {error!r}"
            with contextlib.suppress(Exception):  # if the database fails, the original error reports it
                self._finish_or_keep(Status.INFRA_FAILURE, why)
            raise
        return run

    def _guarded(self) -> Run:
        signing_key()  # an unusable key is an error before hours of training
        resolved, plan = resolve(self._store, self.request, self.id, home=self._home)
        wait_s = self.request.waits_s(resolved.policy)
        with hold.held(
            self._store, self.id, resolved, plan, connect, wait_s=wait_s, note=self._note, cancel=self.cancel
        ) as held:
            return self._on_nodes(held)

    def _on_nodes(self, held: hold.Held) -> Run:
        context = self._context()
        with context.nodes() as nodes:
            self._note(f"connecting to {', '.join(context.plan.nodes)}")
            nodes.connect()
            with self._lease(context, nodes, held) as lease:
                try:
                    context.keep_fence(lease.fence)
                    phases.settle_and_deploy(context, held.resolved, nodes)
                    if self.cancel.is_set():
                        raise InfraError("stopped by a user")
                    phases.run_steps(self._context(), nodes, cancel=self.cancel)  # with the settled plan
                finally:
                    leftovers, lease.keep = phases.clean_nodes(context, nodes)
                lease.heir = self._heir
                if confirm.may_be_followed(self._store, self.request, self.id, context.policy):
                    lease.queue_s, self._followed = WAITER_S, True
                self._store.documents.put(self.id, LeftoversDocument(tuple(leftovers)))
                self._note("judging")
                phases.judge_run(context)
                child = self._request_confirmation(context)
            for line in leftovers:
                self._note(line)
            if child is None and confirm.confirm_request_of(self._store, self.id):
                phases.judge_run(context)
            while child is not None:
                child.execute()
                phases.judge_run(context)
                child = self._request_confirmation(context)
            run = self._ended(phases.finish_run(context))
            self._report(Event(Kind.CHECKS, run.reason, status=run.status))
            if run.status in (Status.PASS, Status.IMPROVEMENT) and not self.request.keep:
                nodes.remove_run(self.id)
            return run

    def _context(self) -> TaskContext:
        barrier_s = JobSpec.model_fields["barrier_s"].default
        return TaskContext(self.id, self._store, self._home, connect, self._report, barrier_s=barrier_s)

    def _lease(self, context: TaskContext, nodes: Nodes, held: hold.Held) -> LeaseKeeper | hold.AllocatedSlots:
        """Return the keeper of the run's leases, which renews them as long as this process runs."""
        if context.cluster.slurm is not None:
            return hold.AllocatedSlots(held.fence)
        request, policy, slots = self.request, context.policy, context.slots
        return LeaseKeeper(
            self._store,
            self.id,
            slots,
            owner=request.owner,
            wait_s=request.waits_s(policy),
            ttl_s=policy.waits.lease_ttl_s,
            empty=nodes.has_nothing_of,
            claims=NodeClaims(
                self._store, nodes, self.id, slots, owner=request.owner, budget_s=context.budget.seconds
            ),
            names=names_of(context.cluster),
            report=self._note,
            cancel=self.cancel,
        )

    def _request_confirmation(self, context: TaskContext) -> "ChainRun | None":
        """Create the run that re-measures suspected regressions; None if there are none."""
        if self.cancel.is_set():
            return None
        run = self._store.runs.get(self.id)
        queued = queue_confirmation(
            self._store,
            self.id,
            self.request,
            context.slots,
            ttl_s=context.policy.waits.lease_ttl_s,
            send_request=lambda: confirm.request_confirmation(
                self._store, run, context.policy, new_run_id(run.model)
            ),
        )
        if queued is None:
            return None
        requested, request = queued
        self._note(f"confirming {', '.join(map(str, requested.keys))}: run {requested.run}")
        # Its steps have the names of this run's steps: only its messages are shown.
        listener = confirm.note_listener(self._note)
        return ChainRun(
            request, self._store, home=self._home, listener=listener, cancel=self.cancel, run=requested.run
        )

    def _finish(self, status: Status, reason: str) -> Run:
        self._store.runs.finish(self.id, status, reason, time.time())
        return self._ended(self._store.runs.get(self.id))

    def _ended(self, run: Run) -> Run:
        if self.request.confirms and not self._followed:
            self._store.queue.leave(self.id)  # if it ended before its slots were granted
        spool.release(self._home, self.id, self._held)
        return run

    def _finish_or_keep(self, status: Status, reason: str) -> Run:
        """As `_finish`; a status that the database rejects is stored in a file for a later command."""
        try:
            return self._finish(status, reason)
        except DatabaseLostError as error:
            database = self._store.url, self._created
            spool.keep(self._home, self.id, Status.INFRA_FAILURE, str(error), lost=database)
            raise
        except Exception:
            spool.keep(self._home, self.id, status, reason)
            raise

    def _note(self, text: str) -> None:
        self._report(Event(Kind.NOTE, text))


def owner_of_this_process() -> str:
    """Return the owner of a lease: `user@host pid N`."""
    import getpass
    import os
    import socket

    return f"{getpass.getuser()}@{socket.gethostname()} pid {os.getpid()}"
