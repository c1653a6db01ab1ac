"""What happens in a run, as lines of a task's log and as the run's events."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tipcflow.execute.events import event_writer
from tipcflow.execute.progress import Event, Kind, MaskedListener


class Log(Protocol):
    """What is needed of a logger: Airflow's are not the standard library's."""

    def info(self, event: str, *args: object) -> object:
        """Write a line."""
        ...

    def warning(self, event: str, *args: object) -> object:
        """Write a warning."""
        ...


class TaskLog:
    """Writes events as whole lines into a task's log."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._rest: dict[str, str] = {}
        self.before_flush: Callable[[], None] = lambda: None

    def take(self, event: Event) -> None:
        """Take one event."""
        where = " ".join(word for word in (event.node, event.leg) if word)
        if event.kind is Kind.LOG:
            *lines, rest = (self._rest.get(where, "") + event.text).split("\n")
            # A progress bar that never ends its line must not grow for ever.
            self._rest[where] = rest[-4096:]
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
        """Write what has come of lines that did not end."""
        self.before_flush()
        for where, rest in self._rest.items():
            if rest:
                self._log.info("%s | %s", where, rest)
        self._rest.clear()


def listener(home: Path, run: str, task_log: TaskLog) -> MaskedListener:
    """One listener that writes both, with secrets masked; `task_log.flush` flushes it too."""
    write = event_writer(home, run)

    def take(event: Event) -> None:
        task_log.take(event)
        write(event)

    masked = MaskedListener(take)
    task_log.before_flush = masked.flush
    return masked
