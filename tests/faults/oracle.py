"""Which outcomes of a case are right. Pure: takes the observations, returns the violations."""

import re
from dataclasses import dataclass, field

from tests.faults.fault import NO_CLASS, Fault

GREEN = frozenset({"pass", "improvement"})
# Ends without a status of the run.
UNSTARTED, UNSAID = "not started", "none"
EXIT = {
    "pass": 0,
    "improvement": 0,
    "failed": 1,
    "regression": 1,
    "infra_failure": 5,
    "config_error": 2,
    "cancelled": 3,
    "unconfirmed": 4,
}


@dataclass
class Seen:
    """What a case ended with.

    Attributes:
        status: of the run; 'none' when it has none, 'not started' when there is no run.
        failure: class of the first stored failure; '' without one.
        root_cause: root cause of the first stored failure, such as `node b, rank 3`.
        classes: class of every stored failure, in the order of the attempts.
        certified: differences between the failures in the certificate and the stored ones.
        code: exit code of `tipcflow run`, -N when signal N ended it; None in Airflow, and when it was stuck.
        complete: whether the ledger shows the whole training in the last attempt.
        differences: between what was printed and what is stored.
        left: processes of tipcflow on reachable nodes 30 s after the end, and leases.
        struck: whether the fault took effect before the run was over.
        second: status of a healthy run afterwards; '' when none was made.
        later: status that the run got later, when it ended without one; 'none' when it got none.
        output: the last lines that `tipcflow run` printed; kept for cases that are wrong.
        leaked: files of the controller that hold what may never be fetched from a node.
    """

    status: str
    reason: str = ""
    failure: str = ""
    root_cause: str = ""
    classes: list[str] = field(default_factory=list)
    certified: list[str] = field(default_factory=list)
    code: int | None = None
    complete: bool = False
    differences: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    traceback: bool = False
    struck: bool = True
    seconds: float = 0.0
    second: str = ""
    later: str = ""
    output: str = ""
    leaked: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def wrong(faults: tuple[Fault, ...], target: str, seen: Seen, *, rank: int = -1) -> dict[str, str]:
    """Class of what is wrong -> what; empty when all is right.

    Of two faults at once either may decide the verdict.

    Args:
        rank: the rank that was hit; -1: not compared.
    """
    found = _verdict(faults, seen)
    if not found and _names(faults, seen):
        found = _root_cause(faults, target, rank, seen)
    found |= _classes(faults, seen)
    found |= _code(faults, seen)
    if seen.status == UNSAID and seen.later:
        found |= _later(faults, seen)
    if seen.differences:
        found["doubled or lost"] = "; ".join(seen.differences[:3])
    if seen.left:
        found["left behind"] = "; ".join(seen.left[:3])
    if seen.leaked:
        found["fetched a secret"] = "; ".join(seen.leaked[:3])
    if seen.traceback:
        found["traceback"] = "a traceback was printed"
    if seen.second and seen.second not in GREEN:
        found["next run"] = seen.second
    return found


def _right(faults: tuple[Fault, ...]) -> frozenset[str]:
    return frozenset().union(*(fault.right for fault in faults))


def _healed(faults: tuple[Fault, ...], seen: Seen) -> bool:
    return all(fault.healed for fault in faults) or not seen.struck


def _verdict(faults: tuple[Fault, ...], seen: Seen) -> dict[str, str]:
    right, healed = _right(faults), _healed(faults, seen)
    if seen.status in GREEN:
        if not seen.complete:
            return {"false pass": f"{seen.status}, but the ledger shows no whole training"}
        if not healed and not (right & GREEN):
            return {"false pass": f"{seen.status}; right: {', '.join(sorted(right))}"}
    elif seen.status not in right:
        expected = ", ".join(sorted(right | ({"pass"} if healed else set())))
        return {"wrong verdict": f"{seen.status} instead of {expected}: {seen.reason}"}
    return {}


def _names(faults: tuple[Fault, ...], seen: Seen) -> bool:
    """Whether the end has to name where the fault was made."""
    ended = seen.status not in (*GREEN, UNSAID, UNSTARTED, "cancelled")
    return seen.struck and ended and all(fault.names_node for fault in faults)


def _root_cause(faults: tuple[Fault, ...], target: str, rank: int, seen: Seen) -> dict[str, str]:
    """The stored failure names node and rank; where a check found the fault, the reason does."""
    report = seen.root_cause if seen.failure else seen.reason
    if not re.search(rf"\bnode {target}\b", report):
        return {"node not named": f"{report or 'no root cause'}: {seen.reason}"}
    if rank >= 0 and all(fault.names_rank for fault in faults) and not re.search(rf"\brank {rank}\b", report):
        return {"rank not named": f"{report}, not rank {rank}: {seen.reason}"}
    return {}


def _classes(faults: tuple[Fault, ...], seen: Seen) -> dict[str, str]:
    right = frozenset().union(*(fault.classes for fault in faults))
    expected = ", ".join(sorted(right - {NO_CLASS})) or "no class"
    outliers = [one for one in seen.classes if one not in right]
    if outliers:
        return {"wrong class": f"{', '.join(outliers)} instead of {expected}: {seen.reason}"}
    ended = seen.status in ("failed", "infra_failure") and seen.struck
    # All steps had succeeded; the release could not list the node, which no attempt failed by.
    released = "could not be listed for leftovers" in seen.reason
    if ended and not seen.classes and NO_CLASS not in right and not released:
        return {"wrong class": f"no class instead of {expected}: {seen.reason}"}
    if seen.certified:
        return {"wrong class": f"the certificate differs: {'; '.join(seen.certified)}"}
    return {}


def _code(faults: tuple[Fault, ...], seen: Seen) -> dict[str, str]:
    """The exit code is that of the status. Without a status, or with a signal, the fault explains it."""
    if seen.code is None:
        return {}
    of_faults = frozenset().union(*(fault.codes for fault in faults))
    known = EXIT.get(seen.status)
    right = {code for code in of_faults if code < 0} | {known} if known is not None else of_faults
    return {} if seen.code in right else {"exit code": f"{seen.code} for {seen.status}"}


def _later(faults: tuple[Fault, ...], seen: Seen) -> dict[str, str]:
    """A run that ended without a status gets one that is right."""
    if seen.later in _right(faults) - {UNSAID, UNSTARTED}:
        return {}
    if seen.later in GREEN and seen.complete and _healed(faults, seen):
        return {}
    by = ", ".join(sorted({fault.status_by for fault in faults}))
    return {"no status": f"{seen.later} after {by}"}
