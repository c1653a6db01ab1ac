"""Which ends of a case are right. Pure: what was seen goes in, what is wrong comes out."""

from dataclasses import dataclass, field

from tests.faults.fault import Fault

GREEN = frozenset({"pass", "improvement"})
EXIT = {
    "pass": 0,
    "improvement": 0,
    "failed": 1,
    "regression": 1,
    "infra_failure": 2,
    "config_error": 2,
    "cancelled": 3,
    "unconfirmed": 4,
}


@dataclass
class Seen:
    """What a case ended with.

    Attributes:
        status: of the run; 'none' when it has none.
        code: exit code of `tipcflow run`; None in Airflow, or when the process was killed.
        complete: whether the ledger shows the whole training in the last attempt.
        differences: between what was printed and what is stored.
        left: processes of tipcflow on reachable nodes 30 s after the end, and leases.
        struck: whether the fault took effect before the run was over.
        second: status of a healthy run afterwards; '' when none was made.
    """

    status: str
    reason: str = ""
    failure: str = ""
    culprit: str = ""
    code: int | None = None
    complete: bool = False
    differences: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    traceback: bool = False
    struck: bool = True
    seconds: float = 0.0
    second: str = ""
    notes: list[str] = field(default_factory=list)


def _must_name_the_node(faults: tuple[Fault, ...], seen: Seen) -> bool:
    named = all(fault.names_node for fault in faults)
    return named and seen.struck and seen.status not in ("none", "cancelled")


def wrong(faults: tuple[Fault, ...], victim: str, seen: Seen) -> dict[str, str]:
    """Class of what is wrong -> what; empty when all is right.

    Of two faults at once either may decide the verdict.
    """
    found: dict[str, str] = {}
    right = frozenset().union(*(fault.right for fault in faults))
    healed = all(fault.healed for fault in faults) or not seen.struck
    if seen.status in GREEN:
        if not seen.complete:
            found["false pass"] = f"{seen.status}, but the ledger shows no whole training"
        elif not healed and not (right & GREEN):
            found["false pass"] = f"{seen.status}; right: {', '.join(sorted(right))}"
    elif seen.status not in right and not (len(faults) > 1 and seen.status == "infra_failure"):
        expected = ", ".join(sorted(right | ({"pass"} if healed else set())))
        found["wrong verdict"] = f"{seen.status} instead of {expected}: {seen.reason}"
    elif _must_name_the_node(faults, seen) and f"node {victim}" not in f"{seen.culprit} {seen.reason}":
        found["node not named"] = seen.reason
    if seen.differences:
        found["doubled or lost"] = "; ".join(seen.differences[:3])
    if seen.left:
        found["left behind"] = "; ".join(seen.left[:3])
    if seen.traceback:
        found["traceback"] = "a traceback was printed"
    if seen.code is not None and seen.status in EXIT and seen.code != EXIT[seen.status]:
        found["exit code"] = f"{seen.code} for {seen.status}"
    if seen.second and seen.second not in GREEN:
        found["next run"] = seen.second
    return found
