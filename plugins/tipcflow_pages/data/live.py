"""Latest events of an active run, from the file to which its tasks append."""

from dataclasses import dataclass
from pathlib import Path

from tipcflow.domain import Status
from tipcflow.execute.events import latest_events
from tipcflow.execute.progress import Event, Kind
from tipcflow.parse import last_training_line
from tipcflow.remote.paths import safe_name

# Bytes read from the end of the file; a truncated first line is skipped.
_END = 512 * 1024
_SHOWN = 60


@dataclass(frozen=True)
class PageEvent:
    """An event as shown on the page."""

    at: float
    step: str
    text: str
    status: Status | None = None


@dataclass(frozen=True)
class Progress:
    """Events, newest first; the last training line of each node; time of the last heartbeat (0: none)."""

    events: tuple[PageEvent, ...] = ()
    training: tuple[tuple[str, str], ...] = ()
    last_at: float = 0.0


def progress(home: Path, run_id: str) -> Progress:
    """Return the latest events; empty without an event file (CLI runs write none)."""
    events = latest_events(home, run_id, _END) if safe_name(run_id) == run_id else []
    training: dict[str, str] = {}
    for event in events:
        if event.kind is Kind.LOG and (line := last_training_line(event.text)):
            training[event.node] = line
    shown = [entry for entry in map(_happened, events) if entry is not None]
    last = max((event.at for event in events), default=0.0)
    return Progress(tuple(reversed(shown[-_SHOWN:])), tuple(sorted(training.items())), last)


def _happened(event: Event) -> PageEvent | None:
    if event.kind is Kind.STEP_STARTED:
        return PageEvent(event.at, event.step, f"started on {event.node.replace(',', ', ')}")
    if event.kind is Kind.STEP_ENDED:
        return PageEvent(event.at, event.step, event.text, event.status)
    if event.kind is Kind.LEG and event.status is not None:
        return PageEvent(event.at, event.step, " ".join(filter(None, (event.leg, event.text))), event.status)
    if event.kind in (Kind.NOTE, Kind.NODE, Kind.CHECKS) and event.text:
        return PageEvent(event.at, event.step, " ".join(filter(None, (event.node, event.text))))
    return None
