"""The DAG runs that a weekly run starts: their ids, what to do about those that there are, whose turn it is."""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tipcflow.domain import InfraError, Status

# A chain's run that says one of these has a verdict on the chain: it is not run again in the same week.
VERDICTS = frozenset({Status.PASS, Status.IMPROVEMENT, Status.REGRESSION, Status.FAILED, Status.CONFIG_ERROR})
# States of a DAG run that goes on (Airflow's DagRunState).
LIVING = frozenset({"queued", "running"})
# The task that is mapped over the chains, and the states that it ends in.
CERTIFY = "certify"
_FINISHED = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
# More often than that nobody starts a chain in one week.
MOST_RUNS = 50
_LONGEST = 200


class Move(StrEnum):
    """What a weekly run does about a chain."""

    START = "start"
    WAIT = "wait"
    KEEP = "keep"


@dataclass(frozen=True)
class Seen:
    """What is known of a DAG run.

    Attributes:
        state: Airflow's; None when there is no such DAG run.
        known: whether it is a run of ours.
        status: of our run, None while it has none.
    """

    state: str | None = None
    known: bool = False
    status: Status | None = None


def child_run_id(parent: str, number: int = 1, *, word: str = "weekly") -> str:
    """The id of the `number`th DAG run that the DAG run `parent` starts, of a chain that is its trigger `word`.

    Source of the rule: Airflow's `[core] allowed_run_id_pattern`, and its column of 250 characters.
    """
    safe = re.sub(r"[^A-Za-z0-9_.~:+-]+", "_", parent)
    if len(safe) > _LONGEST:
        safe = f"{safe[:_LONGEST]}-{hashlib.sha256(parent.encode()).hexdigest()[:8]}"
    return f"{word}__{safe}" + (f"~{number}" if number > 1 else "")


def next_move(parent: str, look: Callable[[str], Seen]) -> tuple[Move, str]:
    """What to do about a chain, and the DAG run that it is about.

    A run with a verdict keeps it; one that goes on is waited for; after one that a person or a broken node ended,
    or that ended without a status, there is another one.

    Args:
        look: tells what is known of the chain's DAG run of an id.

    Raises:
        InfraError: it was started too often.
    """
    for number in range(1, MOST_RUNS + 1):
        run_id = child_run_id(parent, number)
        seen = look(run_id)
        if seen.state in LIVING:
            return Move.WAIT, run_id
        if seen.status in VERDICTS:
            return Move.KEEP, run_id
        if seen.state is None and not seen.known:
            return Move.START, run_id
    raise InfraError(
        f"the chain was started {MOST_RUNS} times in this weekly run and never got a verdict",
        hint="start a new run of the DAG `weekly`",
    )


def ahead_of(index: int, states: Mapping[str, str | None], at_once: int) -> int:
    """How many chains must end before the one at `index` may start; 0 when it is its turn.

    Args:
        states: of the tasks `certify`, by `certify_<index>` as Airflow names them.
        at_once: how many may be on their way at once.
    """
    unfinished = sum(states.get(f"{CERTIFY}_{other}") not in _FINISHED for other in range(index))
    return max(0, unfinished - at_once + 1)
