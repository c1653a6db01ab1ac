"""What a fault is, what is expected of it, and what was seen."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from tipcflow.domain import Status

# From the moment that somebody could know of a fault to the last process of ours on nodes that can be reached.
CLEAN_S = 30.0


@dataclass(frozen=True)
class Fault:
    """One row of the table in docs/faults.md, and one test.

    Attributes:
        name: a few words; the test's id.
        does: what is done, for a reader.
        scenario: does it; takes a Case (cli) or an AirflowCase (airflow).
        status: what the run ends with.
        goes_on: whether the run goes on and the fault leaves no trace in its verdict.
        failure: the class of the failure, '' when there is none.
        culprit: who is to blame, '' for nobody.
        detect_s: the most seconds from the fault to the first sign that a controller or a runner has noticed it;
            0 when nothing has to be noticed.
        everyday: whether CI runs it; else only `make test-full`.
    """

    name: str
    does: str
    scenario: Callable[[Any], None]
    status: Status
    needs: Literal["cli", "airflow"] = "cli"
    goes_on: bool = False
    failure: str = ""
    culprit: str = ""
    detect_s: float = 0.0
    everyday: bool = False


@dataclass(frozen=True)
class Seen:
    """What a test saw of a fault: one row of the results.

    Attributes:
        detect_s: seconds from the fault to its detection, None when nothing had to be detected.
        clean_s: seconds from the detection to the last process of ours on nodes that could be reached.
        wrong: what was not as it should be, '' when all was.
        commit: which one of this repository was tested: short hash, `+` for changes on top of it, and its date; ''
            where nobody wrote it down.
    """

    status: str
    failure: str = ""
    culprit: str = ""
    detect_s: float | None = None
    clean_s: float | None = None
    took_s: float = 0.0
    wrong: str = ""
    commit: str = ""
