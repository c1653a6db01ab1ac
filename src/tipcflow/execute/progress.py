"""What an execution tells whoever watches it: a terminal, a task log, a test."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from tipcflow.domain import Status


class Kind(StrEnum):
    """What happened."""

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
    """One thing that happened. `text` is for a person; `at` is seconds since the epoch on the controller."""

    kind: Kind
    text: str = ""
    step: str = ""
    node: str = ""
    leg: str = ""
    status: Status | None = None
    at: float = field(default_factory=time.time)


Listener = Callable[[Event], None]


def silent(_: Event) -> None:
    """Listens to nothing."""
