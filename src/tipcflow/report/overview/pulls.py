"""Pull requests and pushed commits: what was certified, and how it ended."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from tipcflow.domain import MetricKey, Status
from tipcflow.domain.numbers.metric_groups import Group, group_of
from tipcflow.domain.numbers.metrics import metric
from tipcflow.domain.numbers.units import minutes, percent


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class MetricChange(_Model):
    """The relative change of a metric against the base: 0.1 is 10 % more."""

    step: str
    leg: str
    metric: str
    change: float
    is_worse: bool

    @property
    def text(self) -> str:
        """The change as text."""
        return f"{' '.join(filter(None, (self.metric, self.leg)))} {percent(self.change)}"


class PullChain(_Model):
    """A chain of an attempt.

    Attributes:
        run: '' if it was not started; `reason` then is the problem.
        status: None while it is running.
        base: the run that it is compared with, its chain's newest green run before it; '' without one.
        changes: of each group of metrics the one that is worse by most, or better by least, than on the base.
        selected: why the chain was selected.
        predicted_s, took_s: predicted seconds of its steps, and real ones of an ended run; 0 if unknown.
    """

    chain: str
    run: str
    status: Status | None
    reason: str
    base: str
    selected: str
    changes: tuple[MetricChange, ...] = ()
    predicted_s: float = 0.0
    took_s: float = 0.0

    @property
    def minutes(self) -> str:
        """Real and predicted minutes; '' if both are unknown."""
        took = [minutes(self.took_s)] if self.took_s else []
        return ", ".join(took + ([f"predicted {minutes(self.predicted_s)}"] if self.predicted_s else []))


class PullRow(_Model):
    """An attempt of a commit.

    Attributes:
        number: pull request; 0 for pushes and merge groups.
        mode: of its runs; '' if unknown.
        why: why it is held, or was cancelled.
    """

    repository: str
    number: int
    head_sha: str
    attempt: int
    state: str
    why: str
    created_at: float
    ended_at: float | None
    chains: tuple[PullChain, ...]
    mode: str = ""

    @property
    def worst(self) -> Status | None:
        """The worst status of the chains that have one."""
        known = [chain.status for chain in self.chains if chain.status is not None]
        return max(known, key=lambda status: status.severity, default=None)


class Pulls(_Model):
    """Attempts, newest first; chains of an attempt, the worst first."""

    schema_version: int = 1
    repository: str
    number: int | None
    attempts: tuple[PullRow, ...]


_COMPARED = (Group.SPEED, Group.LATENCY, Group.ACCURACY, Group.MEMORY)


def changes_of(base: Mapping[MetricKey, float], new: Mapping[MetricKey, float]) -> tuple[MetricChange, ...]:
    """Return of each group of metrics the change that is worse by most, or better by least.

    Args:
        base, new: metric values of two runs.
    """
    worst: dict[Group, tuple[float, MetricChange]] = {}
    for key in sorted(base.keys() & new.keys()):
        better = metric(key.plain_metric).better
        if better == "none" or not base[key]:
            continue
        change = (new[key] - base[key]) / abs(base[key])
        badness = -change if better == "higher" else change
        group = group_of(key)
        if group in _COMPARED and (group not in worst or badness > worst[group][0]):
            row = MetricChange(step=key.step, leg=key.leg, metric=key.metric, change=change, is_worse=badness > 0)
            worst[group] = badness, row
    return tuple(worst[group][1] for group in _COMPARED if group in worst)
