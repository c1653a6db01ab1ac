"""When each step ran on each node, as bars on one time axis."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from tipcflow.domain import Attempt, ExitRecord, Run, Status


@dataclass(frozen=True)
class Bar:
    """One attempt of a step on one node. Times are seconds since the run's start; `status` None while running."""

    step: str
    node: str
    attempt: int
    status: Status | None
    start_s: float
    seconds: float
    record: ExitRecord | None = None


def bars(run: Run, attempts: Iterable[Attempt], *, now: float) -> list[Bar]:
    """One bar per attempt and node, in the order given.

    A job's own times are by its node's clock; they are moved into the attempt's, which are by the controller's.

    Args:
        now: seconds since the epoch; the end of running attempts.
    """
    return [_bar(run, attempt, node, now) for attempt in attempts for node in attempt.nodes]


def span_s(run: Run, drawn: Iterable[Bar], *, now: float) -> float:
    """Seconds that the axis covers, never 0."""
    ends = [bar.start_s + bar.seconds for bar in drawn]
    return max([run.elapsed_s(now), *ends, 0.001])


def _bar(run: Run, attempt: Attempt, node: str, now: float) -> Bar:
    end = max(attempt.started_at, attempt.ended_at if attempt.ended_at is not None else now)
    record = next(
        (candidate for candidate in attempt.records if candidate.node == node and not candidate.leg), None
    )
    start, seconds = attempt.started_at, end - attempt.started_at
    if record is not None and record.started_at:
        seconds = min(record.duration_s, seconds)
        start = min(max(record.started_at, attempt.started_at), end - seconds)
    return Bar(
        attempt.step, node, attempt.attempt, attempt.status, max(0.0, start - run.created_at), seconds, record
    )


# Readable distances between two marks, seconds.
_DISTANCES = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400)


def ticks(span: float, *, most: int = 6) -> list[float]:
    """Marks for a time axis of that many seconds: round times, 0 first, at most `most`."""
    distance = next((step for step in _DISTANCES if span / step < most), None)
    distance = distance or 86400 * math.ceil(span / 86400 / most)
    return [float(number * distance) for number in range(int(span // distance) + 1)][:most]
