"""DAG runs that a DAG run starts: ids, whether to start or reuse one, and the order of starts."""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tipcflow.domain import InfraError, Status

# Statuses that are a verdict on the chain: a run with one is not repeated in the same week.
VERDICTS = frozenset({Status.PASS, Status.IMPROVEMENT, Status.REGRESSION, Status.FAILED, Status.CONFIG_ERROR})
# States of an active DAG run (Airflow's DagRunState).
ACTIVE_STATES = frozenset({"queued", "running"})
# The task mapped over the chains, and its final states.
CERTIFY = "certify"
_FINISHED = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
# Upper limit of runs of one chain in one week.
MOST_RUNS = 50
_LONGEST = 200


class Move(StrEnum):
    """What the DAGs `weekly` and `scaling` do with a chain."""

    START = "start"
    WAIT = "wait"
    KEEP = "keep"


@dataclass(frozen=True)
class ChildRun:
    """A chain's DAG run as Airflow and the metrics database describe it.

    Attributes:
        state: Airflow's state; None if the DAG run does not exist.
        known: whether the metrics database has the run.
        status: the run's status in the metrics database; None before the verdict.
    """

    state: str | None = None
    known: bool = False
    status: Status | None = None


def child_run_id(parent: str, number: int = 1, *, word: str = "weekly") -> str:
    """Return the id of the `number`th DAG run that the DAG run `parent` starts; `word` is the trigger.

    Source of the rule: Airflow's `[core] allowed_run_id_pattern` and the 250 characters of its run ID column.
    """
    safe = re.sub(r"[^A-Za-z0-9_.~:+-]+", "_", parent)
    if len(safe) > _LONGEST:
        safe = f"{safe[:_LONGEST]}-{hashlib.sha256(parent.encode()).hexdigest()[:8]}"
    return f"{word}__{safe}" + (f"~{number}" if number > 1 else "")


def next_move(parent: str, find_run: Callable[[str], ChildRun], *, word: str = "weekly") -> tuple[Move, str]:
    """Decide what to do with a chain, and with which DAG run ID.

    A run with a verdict is kept, an active run is awaited. A run that was cancelled, failed because of a node or
    ended without a status is followed by a new run.

    Args:
        find_run: returns the state of the chain's DAG run with the given id.
        word: the trigger of the started runs.

    Raises:
        InfraError: the chain has been started MOST_RUNS times.
    """
    for number in range(1, MOST_RUNS + 1):
        run_id = child_run_id(parent, number, word=word)
        seen = find_run(run_id)
        if seen.state in ACTIVE_STATES:
            return Move.WAIT, run_id
        if seen.status in VERDICTS:
            return Move.KEEP, run_id
        if seen.state is None and not seen.known:
            return Move.START, run_id
    raise InfraError(
        f"the chain was started {MOST_RUNS} times by {parent} without reaching a verdict",
        hint="start a new DAG run",
    )


def ahead_of(index: int, states: Mapping[str, str | None], at_once: int, *, task: str = CERTIFY) -> int:
    """Return how many chains must finish before the chain at `index` may start; 0 if it may start now.

    Args:
        states: task states by `<task>_<index>`, as Airflow names the mapped instances.
        at_once: maximum number of concurrent chains.
        task: id of the mapped task.
    """
    unfinished = sum(states.get(f"{task}_{other}") not in _FINISHED for other in range(index))
    return max(0, unfinished - at_once + 1)
