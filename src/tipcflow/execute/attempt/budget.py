"""The time budget of a run's steps: one length, one clock, one start.

The clock is the database's, because tasks of one run may be on machines with different clocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tipcflow.config.policy import Policy
from tipcflow.config.suite import Suite
from tipcflow.domain import Attempt, Status, Step
from tipcflow.domain.numbers.units import limit
from tipcflow.execute.request import RunRequest


@dataclass(frozen=True)
class Budget:
    """The time budget of a run.

    Attributes:
        seconds: its length.
        ends: its end by the database's clock, seconds since the epoch; inf before the first attempt.
    """

    seconds: float
    ends: float = float("inf")

    def cut(self, step: Step, started_at: float) -> Step:
        """Return the step of an attempt that started then, with its deadline limited to the remaining budget."""
        left = self.ends - started_at
        return step if left >= step.deadline_s else step.model_copy(update={"deadline_s": max(1.0, left)})

    def cut_short(self, step: Step, started_at: float, now: float) -> str:
        """Return the message that the budget ended an attempt before its own deadline; '' if it did not."""
        return self.message if self.ends - started_at < step.deadline_s and now >= self.ends else ""

    def refusal(self, now: float) -> tuple[Status, str] | None:
        """Return (status, reason) of a step that would start after the end of the budget; None before it."""
        return (Status.INFRA_FAILURE, f"not started: {self.message}") if now > self.ends else None

    @property
    def message(self) -> str:
        """The message for work that comes after the budget."""
        return f"the run's budget of {limit(self.seconds)} is used up"


def budget_of(
    request: RunRequest, suite: Suite, policy: Policy, *, attempts: Sequence[Attempt] = (), leased_at: float = 0.0
) -> Budget:
    """Return the budget of a run.

    It starts with the first attempt under the present lease: neither the wait for slots nor a node failure after
    which a user clears the run counts. A confirm run has a deadline of its own.

    Args:
        attempts: all attempts of the run.
        leased_at: when the run received its present lease, by the database's clock.
    """
    if request.confirms:
        return Budget(policy.confirm_minutes * 60, request.ends_at or float("inf"))
    seconds = (suite.budget_minutes or policy.budget_minutes) * 60
    began = [attempt.started_at for attempt in attempts if attempt.started_at >= leased_at]
    return Budget(seconds, request.ends_at or (min(began) + seconds if began else float("inf")))
