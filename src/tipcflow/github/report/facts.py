"""The content of a report on a commit."""

from dataclasses import dataclass
from enum import StrEnum

from tipcflow.domain import Status
from tipcflow.github.trust.decisions import RunKey, Why


class State(StrEnum):
    """State of a commit's certification."""

    HELD = "held"  # waiting for approval
    SKIPPED = "skipped"  # nothing runs, see `why`
    UNCONCERNED = "unconcerned"  # the change affects no chain
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"


@dataclass(frozen=True)
class Finding:
    """A changed or wrong value.

    Attributes:
        metric: name, or name of the check.
        where: step and leg.
        now, before: values with units; '' if unknown.
        noise: normal spread, with unit.
        file, line: place in the params file; '' and 0 if unknown.
    """

    metric: str
    where: str
    status: Status
    reason: str
    now: str = ""
    before: str = ""
    noise: str = ""
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class ChainFacts:
    """One chain of the run.

    Attributes:
        chain: name, with the mode if that is not the repository's.
        selected: why the chain runs.
        status: None before the verdict.
        step: the running step.
        url: page of the run.
        predicted_s, took_s: predicted and real seconds of its steps; 0 if unknown.
        quarantined: whether failures of the run are quarantined; the reason names them.
    """

    chain: str
    selected: str = ""
    status: Status | None = None
    reason: str = ""
    step: str = ""
    url: str = ""
    predicted_s: float = 0.0
    took_s: float = 0.0
    findings: tuple[Finding, ...] = ()
    quarantined: bool = False

    @property
    def is_plain_pass(self) -> bool:
        """Whether the chain passed and there is nothing to report."""
        return self.status is Status.PASS and not self.quarantined


@dataclass(frozen=True)
class PullFacts:
    """All facts of a report.

    Attributes:
        why, reason: why nothing runs (states held, skipped, unconcerned).
        place: place in the queue, 0 if unknown.
        start_s: expected seconds until the start; None if unknown.
        partial: the chains that the change affects did not run in `mode` on this commit, so they are unproven.
        mode: the mode of the repository's file.
        unproven: dropped legs and chains, one sentence each.
        compared: chains whose history is too noisy for the gate, one sentence each.
        problems: globs and labels of the repository's file that match no chain, one sentence each.
        accuracy: results against the targets, one line each.
        command: one command that reproduces the run.
        url: page of all runs of the commit.
    """

    key: RunKey
    state: State
    chains: tuple[ChainFacts, ...] = ()
    why: Why | None = None
    reason: str = ""
    place: int = 0
    start_s: float | None = None
    partial: bool = False
    mode: str = ""
    unproven: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    accuracy: tuple[str, ...] = ()
    command: str = ""
    url: str = ""
