"""The earlier runs that a run is worth comparing with."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcflow.domain import Run

if TYPE_CHECKING:
    from tipcflow.store import Store


@dataclass(frozen=True)
class Predecessors:
    """IDs of earlier runs of the same chain and mode; '' for none.

    Attributes:
        accepted: the last accepted run in the same environment class.
        previous: the last judged run, of any status and environment class.
    """

    accepted: str = ""
    previous: str = ""

    @property
    def best(self) -> str:
        """The accepted run, otherwise the previous one; '' for none."""
        return self.accepted or self.previous


def predecessors_of(store: "Store", run: Run) -> Predecessors:
    """Return the predecessors of a run."""
    previous = store.history.earlier(run, 1)
    return Predecessors(accepted_before(store, run), "".join(before.id for before in previous))


def accepted_before(store: "Store", run: Run) -> str:
    """Return the last accepted run before a run in the same environment class; '' for none."""
    accepted = store.history.accepted(
        run.chain, run.mode, run.environment, compat=run.compat, exclude=run.id, ended_by=run.created_at, limit=1
    )
    return "".join(accepted)
