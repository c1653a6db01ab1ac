"""Policies: how strictly a run is judged and how long it may take (configs/policies/<name>.yaml)."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from tipcflow.config.base import ConfigModel
from tipcflow.domain.metrics import judged, metric


class Floors(ConfigModel):
    """The smallest relative change that counts at all, by family of metrics (0.2 is 20 %)."""

    speed: float = Field(default=0.25, gt=0)
    memory: float = Field(default=0.15, gt=0)
    quality: float = Field(default=0.05, gt=0)


class MetricRule(ConfigModel):
    """What one metric has of its own. `floor` replaces the family's; `gating` false shows without counting."""

    floor: float | None = Field(default=None, gt=0)
    gating: bool = True


class ParityRule(ConfigModel):
    """When two engines' scores count as equal: |a - b| <= atol + rtol * |b|, and the same class everywhere."""

    rtol: float = Field(default=1e-4, ge=0)
    atol: float = Field(default=1e-5, ge=0)
    min_classes: int = Field(default=2, ge=1)


class LossRule(ConfigModel):
    """How training losses are judged.

    Attributes:
        reproducible: `exact` compares as printed, `tolerance` with `rtol`, `off` does not gate.
        min_points: fewer logged iterations than this say nothing about falling.
        falling: whether a loss that does not fall counts (whole-data runs that resume near the optimum may not).
    """

    reproducible: Literal["exact", "tolerance", "off"] = "exact"
    rtol: float = Field(default=1e-5, ge=0)
    min_points: int = Field(default=4, ge=2)
    falling: bool = True


class AccuracyRule(ConfigModel):
    """`too_good`: this many tolerances above the target is suspect (training that silently did less work)."""

    too_good: float = Field(default=3.0, gt=0)


_JUDGED = {
    "batch_cost": MetricRule(),
    "ips": MetricRule(),
    "inference_time": MetricRule(),
    "peak_rss": MetricRule(),
    "peak_gpu": MetricRule(),
    "loss": MetricRule(),
}


class Policy(ConfigModel):
    """How a run is judged.

    Attributes:
        budget_minutes: what a whole run may take.
        step_deadline_minutes: what one step may take before it is stopped.
        lease: what a run leases: the `slots` that it uses, or `nodes` as a whole, so that nobody disturbs what is
            measured; not said, nodes when a metric of speed counts.
        lease_wait_s: how long a run may wait for them, seconds.
        history: how many of the last accepted runs make the baseline.
        min_history: how many of them there must be before a change counts.
        z: how many robust standard deviations (1.4826 * MAD of the runs' medians) a change must exceed as well.
        metrics: the metrics that are compared with the baseline; others are stored and shown.
    """

    schema_version: int = 1
    name: str
    description: str = ""
    budget_minutes: float = Field(default=15, gt=0)
    step_deadline_minutes: float = Field(default=15, gt=0)
    lease: Literal["slots", "nodes"] | None = None
    lease_wait_s: float = Field(default=86400, gt=0)
    history: int = Field(default=20, ge=1)
    min_history: int = Field(default=5, ge=2)
    z: float = Field(default=5.0, gt=0)
    floors: Floors = Floors()
    metrics: dict[Annotated[str, AfterValidator(judged)], MetricRule] = _JUDGED
    parity: ParityRule = ParityRule()
    loss: LossRule = LossRule()
    accuracy: AccuracyRule = AccuracyRule()

    @property
    def whole_nodes(self) -> bool:
        """Whether a run leases its nodes as a whole."""
        if self.lease is not None:
            return self.lease == "nodes"
        return any(rule.gating and metric(name).family == "speed" for name, rule in self.metrics.items())
