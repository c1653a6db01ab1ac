"""Where a comparison is, from the DAG runs that it has started."""

from collections.abc import Callable
from dataclasses import dataclass

from tipcflow.domain import InfraError, Run
from tipcflow.domain.triggers import AB
from tipcflow.execute.ab.progress import Tried, next_order
from tipcflow_operators.airflow.certified import ChildRun
from tipcflow_operators.airflow.child_runs import child_run_id

# Upper limit of pairs in one DAG run, with the repeated ones.
MOST_PAIRS = 500


@dataclass(frozen=True)
class Position:
    """The pairs so far, and the run that is active or next.

    Attributes:
        tried: pairs that have ended.
        order: labels of the sides of the next or current pair in the order of their runs.
        started: ended runs of the current pair.
        dag_run_id: id of the DAG run that is active or next.
        is_active: whether it is active.
        following: id of the DAG run after it in its pair, '' for none.
    """

    tried: tuple[Tried, ...]
    order: tuple[str, str]
    started: tuple[Run, ...]
    dag_run_id: str
    is_active: bool
    following: str = ""

    @property
    def side(self) -> str:
        """Label of the side of the run that is active or next."""
        return self.order[len(self.started)]

    @property
    def labelled(self) -> tuple[tuple[str, Run], ...]:
        """All runs that have ended, each with the label of its side."""
        pairs = [*((pair.order, pair.runs) for pair in self.tried), (self.order, self.started)]
        return tuple((label, run) for order, runs in pairs for label, run in zip(order, runs, strict=False))

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs that have ended."""
        return tuple(run for _, run in self.labelled)


def position_of(parent: str, find_run: Callable[[str], ChildRun | None]) -> Position:
    """Return the position of the comparison of the DAG run `parent`.

    Its child runs are numbered from 1, across pairs. A pair whose first run was stopped or broken has no second
    one.

    Args:
        find_run: returns the DAG run with an id, None if it does not exist.

    Raises:
        InfraError: there are MOST_PAIRS pairs.
    """
    tried: list[Tried] = []
    number = 0
    while len(tried) < MOST_PAIRS:
        order, runs = next_order(tried), list[Run]()
        for _ in order:
            number += 1
            child = child_run_id(parent, number, word=AB)
            seen = find_run(child)
            if seen is None or seen.run is None:
                following = "" if runs else child_run_id(parent, number + 1, word=AB)
                return Position(tuple(tried), order, tuple(runs), child, seen is not None, following)
            runs.append(seen.run)
            if not Tried(order, tuple(runs)).is_usable:
                break
        tried.append(Tried(order, tuple(runs)))
    raise InfraError(f"{MOST_PAIRS} pairs were started without a result", hint="start a new run of the DAG `ab`")
