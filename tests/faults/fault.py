"""One kind of fault: what is done, when, and which verdicts are right."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tests.faults.world import World

Act = Callable[[World], None]
Door = Literal["cli", "airflow"]
BOTH: frozenset[Door] = frozenset({"cli", "airflow"})
CLI: frozenset[Door] = frozenset({"cli"})
AIRFLOW: frozenset[Door] = frozenset({"airflow"})


def nothing(_world: World) -> None:
    """No act."""


@dataclass(frozen=True)
class Fault:
    """A row of the injector's catalogue.

    Attributes:
        name: short, unique.
        does: for a reader.
        right: run statuses that are right when the fault takes effect; `pass` is judged by the ledger besides.
        prepare: before the run starts (edits of the suite, the node or the policy).
        strike: at the chosen moment of the run.
        heal: `away_s` seconds after the strike; the world is healthy afterwards.
        healed: whether a pass is right when the whole training happened (a retry, or a fault that heals).
        names_node: whether the reason or the failure names the node that was hit.
        classes: the failure classes that are right; empty for any.
        in_training: whether the moment lies inside the training; else anywhere in the run.
        doors: which front doors the fault is drawn for.
        alone: whether the fault is never drawn together with another one.
        paddle: whether it can be drawn for a real Paddle training.
        shared: whether it hits everything that runs in the same Airflow: no other case runs then.
    """

    name: str
    does: str
    right: frozenset[str]
    prepare: Act = nothing
    strike: Act = nothing
    heal: Act | None = None
    away_s: tuple[float, float] = (0.0, 0.0)
    healed: bool = False
    names_node: bool = True
    classes: frozenset[str] = frozenset()
    in_training: bool = True
    doors: frozenset[Door] = BOTH
    alone: bool = False
    paddle: bool = True
    shared: bool = False


FAILED = frozenset({"failed"})
INFRA = frozenset({"infra_failure"})
EITHER = FAILED | INFRA
CANCELLED = frozenset({"cancelled"})
