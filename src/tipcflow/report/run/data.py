"""Everything that is stored about a run, as one value for every medium; `execute.verdict.run_data` loads it."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tipcflow.domain import (
    Attempt,
    AttemptKey,
    CheckResult,
    Facts,
    Failure,
    LegKey,
    MetricKey,
    PartKey,
    Plan,
    Run,
    Status,
)
from tipcflow.domain.run_documents import JudgementDocument
from tipcflow.report.api import Confirming


@dataclass(frozen=True)
class RunData:
    """A run.

    Attributes:
        plan: None if the run ended before it had one, or if this version cannot read it (`plan_problem`).
        facts: with all measurements, or with one median latency per leg (`raw` of the loader).
        before: failure of a node before the first step.
        failures: (step, attempt) -> failure, of all failed attempts.
        medians: key -> median of the last attempt.
        confirmation: the request for a confirm run; None without one.
        confirms: the run that this run confirms; '' for none.
        only: the steps that a run of a bisection executes, with those that they need; empty for all.
        merge_base: the last commit whose runs a change is compared with; '' without a change.
        unlike_before: how its environment differs from the previous run's; '' if it does not.
        neutral: whether the run is `unconfirmed` and its policy does not block on that.
        judged: the verdict with the parts of its reason; None for a run without a verdict.
        now: time of reading, seconds since the epoch.
    """

    run: Run
    plan: Plan | None
    plan_problem: str
    facts: Facts
    attempts: tuple[Attempt, ...]
    checks: tuple[CheckResult, ...]
    medians: Mapping[MetricKey, float]
    certificate: Any = None
    before: Failure | None = None
    failures: Mapping[AttemptKey, Failure] = field(default_factory=dict)
    confirmation: Confirming | None = None
    confirms: str = ""
    only: tuple[PartKey, ...] = ()
    merge_base: str = ""
    unlike_before: str = ""
    neutral: bool = False
    judged: JudgementDocument | None = None
    now: float = field(default_factory=time.time)

    @cached_property
    def last(self) -> dict[str, Attempt]:
        """Last attempt by step id."""
        return {attempt.step: attempt for attempt in self.attempts}

    @property
    def waits_for_confirmation(self) -> bool:
        """Whether the verdict waits for a confirm run."""
        return self.run.status is None and self.confirmation is not None and self.now < self.confirmation.until

    @property
    def all_failures(self) -> dict[AttemptKey, Failure]:
        """Attempt -> failure, in chronological order. Attempt 0 of step '' is the phase before the first step."""
        before = {} if self.before is None else {AttemptKey("", 0): self.before}
        return {**before, **self.failures}

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """'steps', 'legs', 'checks' -> status -> count of those with a status, worst status first."""
        groups = {
            "steps": self.facts.step_status.values(),
            "legs": self.facts.leg_status.values(),
            "checks": [result.status for result in self.checks],
        }
        return {name: _worst_first(statuses) for name, statuses in groups.items()}

    def status_word(self, key: LegKey, default: Status) -> str:
        """The status of a step or leg; in an active run `running`, or `waiting` if not started."""
        known = self.facts.leg_status.get(key) if key.leg else self.facts.step_status.get(key.step)
        if known is not None or self.run.status is not None or default is Status.NOT_RUN:
            return (known or default).value
        attempt = None if key.leg else self.last.get(key.step)
        return "running" if attempt is not None and attempt.ended_at is None else "waiting"


def _worst_first(statuses: Any) -> dict[str, int]:
    counted = sorted(Counter(statuses).items(), key=lambda item: -item[0].severity)
    return {status.value: count for status, count in counted}
