"""Writes the events of a run to the task's log and to the run's event file."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tipcflow.execute.events import event_writer, flush_events
from tipcflow.execute.progress import Event, Kind, MaskedListener
from tipcflow.execute.sweeps.old_events import trim_events
from tipcflow_operators.airflow.log_fields import log_fields


class Log(Protocol):
    """The logger methods in use; Airflow's loggers are not the standard library's."""

    def info(self, event: str, *args: object) -> object:
        """Log a line at level INFO."""
        ...

    def warning(self, event: str, *args: object) -> object:
        """Log a line at level WARNING."""
        ...


class TaskLog:
    """Writes events as whole lines into a task's log."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._rest: dict[str, str] = {}
        self._sources: dict[str, Event] = {}
        self.before_flush: Callable[[], None] = lambda: None

    def take(self, event: Event) -> None:
        """Write one event."""
        with log_fields(step=event.step, node=event.node):
            self._write(event)

    def _write(self, event: Event) -> None:
        where = " ".join(word for word in (event.node, event.leg) if word)
        if event.kind is Kind.LOG:
            *lines, rest = (self._rest.get(where, "") + event.text).split("\n")
            # A progress bar that never ends its line must not grow without limit.
            self._rest[where], self._sources[where] = rest[-4096:], event
            for line in lines:
                self._log.info("%s | %s", where, line.rstrip("\r"))
        elif event.kind is Kind.NOTE:
            self._log.info("%s", event.text)
        elif event.kind is Kind.STATE:
            self._log.info("%s: %s", where, event.text)
        elif event.kind is Kind.LEG and event.status is not None:
            self._log.info("leg %s: %s%s", where, event.status.value, f": {event.text}" if event.text else "")
        elif event.kind is Kind.STEP_ENDED and event.status is not None:
            self._log.info("%s: %s%s", event.step, event.status.value, f": {event.text}" if event.text else "")

    def flush(self) -> None:
        """Write lines that have no line end yet."""
        self.before_flush()
        for where, rest in self._rest.items():
            if rest:
                source = self._sources[where]
                with log_fields(step=source.step, node=source.node):
                    self._log.info("%s | %s", where, rest)
        self._rest.clear()
        self._sources.clear()


def listener(home: Path, run: str, task_log: TaskLog) -> MaskedListener:
    """Return a listener that writes to both, with secrets masked; `task_log.flush` flushes the event file too."""
    write = event_writer(home, run)
    trim_events(home)

    def take(event: Event) -> None:
        with log_fields(run=run):
            task_log.take(event)
        write(event)

    masked = MaskedListener(take)

    def before_flush() -> None:
        masked.flush()
        flush_events(home, run)

    task_log.before_flush = before_flush
    return masked
