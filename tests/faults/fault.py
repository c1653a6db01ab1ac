"""One kind of fault: what is done, when, and which verdicts are right."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tests.faults.world import World

from tipcflow.domain.run.failure import FailureClass

Act = Callable[[World], None]
Door = Literal["cli", "airflow"]
BOTH: frozenset[Door] = frozenset({"cli", "airflow"})
CLI: frozenset[Door] = frozenset({"cli"})
AIRFLOW: frozenset[Door] = frozenset({"airflow"})


# What is run after a run that ended without a status: the next command gives it one; `nodes reap` also collects
# what a killed controller left on nodes (docs/reference/store.md).
StatusBy = Literal["runs", "reap"]


def nothing(_world: World) -> None:
    """No act."""


@dataclass(frozen=True)
class Fault:
    """A row of the injector's catalogue.

    Attributes:
        name: short, unique.
        does: for a reader.
        right: run statuses that are right when the fault takes effect; `pass` is also checked against the ledger.
        prepare: before the run starts (edits of the suite, the node or the policy).
        strike: at the chosen moment of the run.
        heal: `away_s` seconds after the strike; the world is healthy afterwards.
        healed: whether a pass is right when the whole training happened (a retry, or a fault that heals).
        names_node: whether the reason or the failure names the node that was hit.
        classes: the classes (docs/reference/failures.md) that are right for every stored failure of the run;
            `NO_CLASS` where a failed run may have none.
        names_rank: whether the failure, or the reason of a run without one, names the rank that was hit.
        loses_logs: whether the fault destroys the training logs of the node that was hit.
        unfetched: whether the controller could not fetch anything: what it lacks must still be on the nodes.
        codes: exit codes of `tipcflow run` that are right for a run without a status; -N for signal N.
        status_by: what gives a status to a run that ended without one.
        in_training: whether the moment is within the training; otherwise anywhere in the run.
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
    names_rank: bool = False
    loses_logs: bool = False
    unfetched: bool = False
    codes: frozenset[int] = frozenset()
    status_by: StatusBy = "runs"
    in_training: bool = True
    doors: frozenset[Door] = BOTH
    alone: bool = False
    paddle: bool = True
    shared: bool = False


FAILED = frozenset({"failed"})
INFRA = frozenset({"infra_failure"})
CANCELLED = frozenset({"cancelled"})

# A run without a failure: it passed, a user stopped it, or a check after its steps found the fault.
NO_CLASS = ""
NONE = frozenset({NO_CLASS})
CODE_ERROR = frozenset({FailureClass.CODE_ERROR.value})
HANG = frozenset({FailureClass.HANG.value})
KILLED = frozenset({FailureClass.KILLED.value})
NODE_LOST = frozenset({FailureClass.NODE_LOST.value})
OOM = frozenset({FailureClass.OOM_HOST.value})
OUTPUT_MISSING = frozenset({FailureClass.OUTPUT_MISSING.value})
INTERRUPTED = frozenset({FailureClass.INTERRUPTED.value})
BUDGET = frozenset({FailureClass.BUDGET.value})
DISK = frozenset({FailureClass.DISK.value})
EVIDENCE_LOST = frozenset({FailureClass.EVIDENCE_LOST.value})
# A node that is unreachable for a while: before its part has started it is unready; its peers may notice first.
UNREADY = frozenset({FailureClass.NODE_UNREADY.value})
GONE = NODE_LOST | {FailureClass.NODE_UNREADY.value, FailureClass.COMMUNICATION.value}
