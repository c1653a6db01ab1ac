"""`tipcflow bisect --parallel`: several runs at the same time, with a line per event instead of a live display."""

import contextlib
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tipcflow.cli.commands import signals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tipcflow.domain import Cluster, Run
    from tipcflow.execute.bisection.builds import Build
    from tipcflow.execute.bisection.commits import Commit
    from tipcflow.execute.bisection.loop import Bisection, Progress
    from tipcflow.execute.progress import Event
    from tipcflow.execute.request import RunRequest


class ParallelRuns:
    """Runs the chain with a version, in the thread that calls it.

    Args:
        request_of: returns the request of a version.
    """

    def __init__(
        self, request_of: "Callable[[Commit | Build], RunRequest]", store: Any, home: Path, cluster: "Cluster"
    ) -> None:
        self._request_of, self._store, self._home, self._cluster = request_of, store, home, cluster
        self._lock = threading.Lock()
        self._active: set[str] = set()
        self.cancel = threading.Event()

    def __call__(self, version: "Commit | Build") -> "Run":
        """Run to the verdict."""
        from tipcflow.cli.bus_error import report_bus_errors
        from tipcflow.domain import Status
        from tipcflow.execute.progress import MaskedListener
        from tipcflow.execute.run import status_spool as spool
        from tipcflow.execute.run.driver import ChainRun

        run = ChainRun(
            self._request_of(version),
            self._store,
            home=self._home,
            listener=MaskedListener(lambda event: self._take(version.short, event)),
            cancel=self.cancel,
        )
        with self._lock:
            self._active.add(run.id)
        try:
            with report_bus_errors(partial(spool.keep, self._home, run.id, Status.INFRA_FAILURE)):
                return run.execute()
        finally:
            with self._lock:
                self._active.discard(run.id)

    def may_start(self) -> bool:
        """Whether nodes for a further run are free."""
        from tipcflow.execute.bisection.parallel import has_free_nodes

        with self._lock:
            active = frozenset(self._active)
        return bool(active) and not self.cancel.is_set() and has_free_nodes(self._store, self._cluster, active)

    def note(self, text: str) -> None:
        """Print a line about all runs."""
        with self._lock, contextlib.suppress(OSError):  # the reader of the pipe is gone; the runs continue
            typer.echo(f"{time.strftime('%H:%M:%S')}  {text}", err=True)

    def _take(self, version: str, event: "Event") -> None:
        from tipcflow.execute.progress import Kind

        if event.kind is Kind.NOTE and event.text:
            self.note(f"{version}: {event.text}")
        elif event.kind is Kind.STEP_ENDED and event.status is not None:
            self.note(f"{version}: {event.step} {event.status.value} {event.text}".rstrip())


def rounds(bisection: "Bisection", runs: ParallelRuns, *, as_json: bool) -> "Iterator[Progress]":
    """Execute the search, print a line per start and end of a run, and yield the progress of each round.

    Signals cancel all active runs, which clean up; the search then ends with what is known.
    """
    from tipcflow.execute.bisection.parallel import run_in_parallel
    from tipcflow.execute.bisection.text import measure_line, value_line

    with signals.cancel_on_signals(runs.cancel, runs.note):
        for step in run_in_parallel(bisection, may_start=runs.may_start, stop=runs.cancel.set):
            for place, run in step.ended:
                typer.echo(value_line(bisection, run, place), err=as_json)
            for place in step.started:
                typer.echo(measure_line(bisection, step.progress, place, ahead=step.active), err=as_json)
            yield step.progress
