"""Rules of a policy about actions: quarantines by users, and bisections that tipcflow starts."""

from typing import Literal

from pydantic import Field

from tipcflow.config.base import ConfigModel


class QuarantineRule(ConfigModel):
    """Limits of quarantines (docs/reference/quarantine.md).

    Attributes:
        per_day: maximum number of new ones within 24 hours, over all chains; 0 allows none.
        max_days: maximum days until one expires.
    """

    per_day: int = Field(default=3, ge=0)
    max_days: float = Field(default=30.0, gt=0, le=366)


class AbRule(ConfigModel):
    """A/B comparisons that the planner of pull requests chooses (docs/reference/ab.md).

    Attributes:
        when: `never`, or `noisy` for chains whose history is too noisy for the gate.
        above: a history is too noisy if the smallest change of a gating speed that the change-point detector finds
            is larger (0.2 is 20 %).
    """

    when: Literal["never", "noisy"] = "never"
    above: float = Field(default=0.2, gt=0, le=10)


class BisectRule(ConfigModel):
    """Bisections that tipcflow starts (docs/reference/bisection.md).

    Attributes:
        start: `never`, `regressions` for those of alerts, `all` also for chains that fail.
        at_once: maximum number of active runs of the DAG `bisect`, with those that users started.
        parallel: maximum number of runs of a bisection at the same time.
        max_runs: maximum number of runs of a bisection.
        budget_minutes: maximum duration of all its runs together.
    """

    start: Literal["never", "regressions", "all"] = "never"
    at_once: int = Field(default=1, ge=1, le=16)
    parallel: int = Field(default=1, ge=1, le=8)
    max_runs: int = Field(default=30, ge=1)
    budget_minutes: float = Field(default=240.0, ge=1)
