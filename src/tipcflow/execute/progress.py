"""Events of an execution, for listeners: a terminal, a task log, a test."""

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tipcflow.domain import Status
from tipcflow.domain.masking import LineMask, mask


class Kind(StrEnum):
    """The kind of an event."""

    RUN = "run"
    NOTE = "note"
    NODE = "node"
    STEP_STARTED = "step_started"
    STATE = "state"
    LOG = "log"
    LEG = "leg"
    STEP_ENDED = "step_ended"
    CHECKS = "checks"


@dataclass(frozen=True)
class Event:
    """One event. `text` is for the user; `at` is seconds since the epoch on the controller."""

    kind: Kind
    text: str = ""
    step: str = ""
    node: str = ""
    leg: str = ""
    status: Status | None = None
    at: float = field(default_factory=time.time)


Listener = Callable[[Event], None]


# What a node prints instead of output that it cannot transfer in time. A private key may begin or end there.
_GAP = re.compile(r"\n\[tipcflow: \d+ bytes of this log are not shown")


def silent(_: Event) -> None:
    """Ignore the event."""


class MaskedListener:
    """Masks secrets in the text of events before other listeners receive them.

    Output of a job is passed on line by line, because a part of it may end within a secret. An incomplete line is
    passed on when another event of that node's part follows, and by `flush`.
    """

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._lock = threading.Lock()
        self._open: dict[tuple[str, str, str], tuple[LineMask, Event]] = {}

    def __call__(self, event: Event) -> None:
        """Process one event."""
        with self._lock:
            if event.kind is not Kind.LOG:
                self._flush(event)
                self._listener(replace(event, text=mask(event.text)))
                return
            key = (event.step, event.node, event.leg)
            if _GAP.match(event.text):
                self._flush(event)
                self._open.pop(key, None)
            # A task that continues a step does not know what the node has printed before.
            lines = self._open[key][0] if key in self._open else LineMask(cut=True)
            self._open[key] = (lines, event)
            if shown := lines.feed(event.text):
                self._listener(replace(event, text=shown))

    def flush(self) -> None:
        """Pass on all incomplete lines."""
        with self._lock:
            self._flush(None)

    def _flush(self, ended: Event | None) -> None:
        """Pass on the incomplete lines of all sources, or of the source of an event."""
        for key, (lines, event) in list(self._open.items()):
            of_it = ended is None or (ended.step in ("", key[0]) and set(ended.node.split(",")) & {"", key[1]})
            if of_it and (rest := lines.flush()):
                self._listener(replace(event, text=rest))
