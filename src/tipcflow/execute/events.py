"""A run's events as a file, so that other processes can follow the run.

`<home>/runs/<run>/events.jsonl`: one JSON object per line, appended by every task of the run. Each line is written
with one call in append mode, so that lines of concurrent writers stay intact. With an object store, other machines
see the end of this machine's file.
"""

import json
import os
from dataclasses import replace
from pathlib import Path

from tipcflow.domain import Status
from tipcflow.domain.numbers.units import size
from tipcflow.execute.objects.shared_events import events_of_others, shared_events
from tipcflow.execute.progress import Event, Kind, Listener

EVENTS = "events.jsonl"
# Longer pieces of a log are in the log itself; followers only need to see progress.
_LONGEST = 16 * 1024
# Size of the file above which output of jobs is no longer repeated in it, bytes; the logs themselves are fetched.
OUTPUT_LIMIT = 64 << 20
# Other machines see these as soon as possible.
_URGENT = (Kind.STEP_STARTED, Kind.STEP_ENDED)
_NO_MORE = f"(progress shows {size(OUTPUT_LIMIT)} of output per run; for the rest see the step's logs)\n"


def events_path(home: Path, run: str) -> Path:
    """Return the path of the run's events."""
    return home / "runs" / run / EVENTS


def event_writer(home: Path, run: str) -> Listener:
    """Return a listener that appends events to the run's file.

    From `OUTPUT_LIMIT` on, the file grows by events other than output only; its last piece of output states it.
    """
    path = events_path(home, run)
    path.parent.mkdir(parents=True, exist_ok=True)
    shared = shared_events(run, home, path)

    full = False

    def write(event: Event) -> None:
        """Append an event, without output beyond the limit."""
        nonlocal full
        if full and event.kind is Kind.LOG:
            return
        full = full or (path.exists() and path.stat().st_size >= OUTPUT_LIMIT)
        if full and event.kind is Kind.LOG:
            event = replace(event, text=_NO_MORE)
        line = {
            "kind": event.kind.value,
            "text": event.text[-_LONGEST:],
            "step": event.step,
            "node": event.node,
            "leg": event.leg,
            "status": event.status.value if event.status else None,
            "at": event.at,
        }
        data = json.dumps({key: value for key, value in line.items() if value not in ("", None)}) + "\n"
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, data.encode())
        finally:
            os.close(file)
        if shared is not None:
            shared.follow(urgent=event.kind in _URGENT)

    return write


def flush_events(home: Path, run: str) -> None:
    """Write the last events of this machine to the object store, if there is one; takes a few seconds at most."""
    shared = shared_events(run, home, events_path(home, run))
    if shared is not None:
        shared.flush()


def latest_events(home: Path, run: str, most: int) -> list[Event]:
    """Return the latest events of the run, in order: of this machine from at most `most` bytes, and of others."""
    path = events_path(home, run)
    events: list[Event] = []
    if path.is_file():
        events, _ = read_events(home, run, max(0, path.stat().st_size - most))
    others = [event for data in events_of_others(run, home) for event in _events(data)]
    return sorted([*events, *others], key=lambda event: event.at) if others else events


def read_events(home: Path, run: str, offset: int = 0) -> tuple[list[Event], int]:
    """Read the run's events from a byte offset; return them and the next offset. No file: no events.

    An incomplete last line is left for the next call; lines that are not events are skipped.
    """
    path = events_path(home, run)
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read()
    except FileNotFoundError:
        return [], offset
    whole = data[: data.rfind(b"\n") + 1]
    return _events(whole), offset + len(whole)


def _events(data: bytes) -> list[Event]:
    return [event for event in map(_event, data.splitlines()) if event is not None]


def _event(line: bytes) -> Event | None:
    try:
        payload = json.loads(line)
        return Event(
            Kind(payload["kind"]),
            str(payload.get("text", "")),
            step=str(payload.get("step", "")),
            node=str(payload.get("node", "")),
            leg=str(payload.get("leg", "")),
            status=Status(payload["status"]) if payload.get("status") else None,
            at=float(payload.get("at", 0.0)),
        )
    except (ValueError, KeyError, TypeError):
        return None
