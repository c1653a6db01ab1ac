"""A fault, what is expected of it, and what a test observed."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from tipcflow.domain import Status

Door = Literal["cli", "airflow"]
DOORS: tuple[Door, ...] = get_args(Door)
# Limit from the detection of a fault to the end of the last tipcflow process on reachable nodes.
CLEAN_S = 30.0
# A reason is a cell of the table.
REASON_LENGTH = 60


@dataclass(frozen=True)
class Fault:
    """One row of the table in docs/faults.md, and one test per front door.

    Attributes:
        name: a few words; the test's id.
        does: what happens, for a reader.
        scenario: makes it happen; takes a Case (an AirflowCase for Airflow).
        status: the expected status of the run.
        doors: front doors that this fault is tested through.
        reasons: for each other front door, why it is not tested through that door.
        goes_on: whether the run continues and the verdict shows no trace of the fault.
        failure: the failure class; '' if there is none.
        root_cause: the root cause (node, rank); '' if there is none.
        detect_s: limit from the fault to its detection by a controller or a runner; 0: nothing to detect.
        everyday: whether CI tests it, through the first of its doors; all other tests are in `make test-full`.
    """

    name: str
    does: str
    scenario: Callable[[Any], None]
    status: Status
    doors: tuple[Door, ...] = DOORS
    reasons: Mapping[Door, str] = field(default_factory=dict)
    goes_on: bool = False
    failure: str = ""
    root_cause: str = ""
    detect_s: float = 0.0
    everyday: bool = False


@dataclass(frozen=True)
class Seen:
    """What a test observed of a fault through one front door.

    Attributes:
        detect_s: seconds from the fault to its detection; None if nothing had to be detected.
        clean_s: seconds from the detection to the end of the last tipcflow process on reachable nodes.
        wrong: differences from the expectation; '' if there are none.
        commit: tested commit of this repository: short hash, `+` for uncommitted changes, and its date; '' if
            unknown.
    """

    status: str
    failure: str = ""
    root_cause: str = ""
    detect_s: float | None = None
    clean_s: float | None = None
    took_s: float = 0.0
    wrong: str = ""
    commit: str = ""


def door_errors(faults: Iterable[Fault]) -> list[str]:
    """Return one line for each fault and front door with neither a test nor a reason, or with both."""
    errors = []
    for fault in faults:
        for door in DOORS:
            reason, tested = fault.reasons.get(door), door in fault.doors
            if reason is None and not tested:
                errors.append(f"{fault.name}: no test and no reason for {door}")
            elif reason is not None and tested:
                errors.append(f"{fault.name}: a test and a reason for {door}")
            elif reason is not None and not 0 < len(reason.strip()) <= REASON_LENGTH:
                errors.append(
                    f"{fault.name}: the reason for {door} has {len(reason)} characters, not 1-{REASON_LENGTH}"
                )
    return errors
