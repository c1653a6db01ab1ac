"""Times that all triggers share, and how they report what a run waits for."""

import asyncio
from typing import Protocol

from tipcflow.config.settings import settings

# If a trigger fires within seconds of its task's deferral, the scheduler may not have stored the deferral yet and
# marks the task failed (apache/airflow issues 72716 and 71580).
SETTLE_S = 5.0
# Timeout of a database query, which is then retried: a trigger has deadlines to keep.
QUERY_S = 60.0
# Timeout of a query of Airflow's API in `on_kill`, which has 30 s in all.
STATE_S = 8.0


class TriggerLog(Protocol):
    """The methods of a trigger's logger in use."""

    def info(self, event: str, *args: object) -> object:
        """Log a line at level INFO."""
        ...

    def warning(self, event: str, *args: object) -> object:
        """Log a line at level WARNING."""
        ...


async def report_wait(log: TriggerLog, run: str, why: str) -> None:
    """Write what a run waits for to the task's log and to the run's events, which its page shows."""
    log.info("%s", why)
    try:
        await asyncio.wait_for(asyncio.to_thread(_add_event, run, why), QUERY_S)
    except Exception as error:
        log.warning("the run's events could not be written: %r", error)


def _add_event(run: str, why: str) -> None:
    from tipcflow.execute.events import event_writer, flush_events
    from tipcflow.execute.progress import Event, Kind
    from tipcflow.execute.sweeps.old_events import trim_events

    if not run:  # a trigger of an earlier version
        return
    home = settings().home
    event_writer(home, run)(Event(Kind.NOTE, why))
    flush_events(home, run)
    trim_events(home)
