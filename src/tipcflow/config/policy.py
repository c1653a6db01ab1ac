"""Policies: how strictly a run is judged and how long it may take (configs/policies/<name>.yaml)."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from tipcflow.config.base import ConfigModel
from tipcflow.config.waits import Waits
from tipcflow.domain import plain_metric
from tipcflow.domain.failure import REMEDIES, FailureClass
from tipcflow.domain.metrics import judged, metric


class Floors(ConfigModel):
    """The smallest relative change that counts at all, by family of metrics (0.2 is 20 %)."""

    speed: float = Field(default=0.25, gt=0)
    memory: float = Field(default=0.15, gt=0)
    quality: float = Field(default=0.05, gt=0)


class MetricRule(ConfigModel):
    """What one metric has of its own. `floor` replaces the family's, `z` the policy's; `gating` false shows
    without counting. `part_of` names the metric that it is a part of (`reader_cost` of `batch_cost`): a change
    smaller than half of that metric's floor, relative to it, is no change."""

    floor: float | None = Field(default=None, gt=0)
    z: float | None = Field(default=None, gt=0)
    gating: bool = True
    part_of: str = ""


class Tolerance(ConfigModel):
    """When two sets of scores count as equal: |a - b| <= atol + rtol * |b|, and the same class everywhere."""

    rtol: float = Field(default=1e-4, ge=0)
    atol: float = Field(default=1e-5, ge=0)


def budget_of(budgets: Mapping[str, Tolerance], leg: str, precision: str) -> Tolerance:
    """What a leg may differ by: as its own id says (the first pattern that fits), else its precision, or fp32."""
    for pattern, budget in budgets.items():
        if fnmatchcase(leg, pattern):
            return budget
    return budgets.get(precision) or budgets.get("fp32") or Tolerance()


class ParityRule(Tolerance):
    """oneDNN on against oneDNN off. `min_classes`: with fewer different answers equality proves nothing."""

    min_classes: int = Field(default=2, ge=1)


# What rounding of that precision may do to a probability; a network that lost accuracy is far beyond it.
_BUDGETS = {
    "fp32": Tolerance(),
    "fp16": Tolerance(rtol=1e-2, atol=5e-3),
    "bf16": Tolerance(rtol=5e-2, atol=2e-2),
    "int8": Tolerance(rtol=1e-1, atol=5e-2),
}


class GoldenRule(ConfigModel):
    """Scores against stored goldens. `gating` false shows without counting.

    `budgets`: precision -> how far apart they may be. A float32 golden made by another framework version differs
    by more than two engines on one machine do: TIPC's own comparison allows 1e-3.
    """

    gating: bool = True
    budgets: dict[str, Tolerance] = {**_BUDGETS, "fp32": Tolerance(rtol=1e-3, atol=1e-3)}


class LossRule(ConfigModel):
    """How training losses are judged.

    Attributes:
        reproducible: how losses of equal seeds are compared. `learned`: as printed where the suite declares its
            training `deterministic`, else within `factor` times what earlier runs with that seed differed by, at
            least `floor`; with fewer than `min_history` of them a difference is shown and does not count. `exact`
            compares as printed, `tolerance` with `rtol`, `off` does not gate.
        min_points: fewer logged iterations than this say nothing about falling.
        falling: whether a loss that does not fall counts (whole-data runs that resume near the optimum may not).
    """

    reproducible: Literal["learned", "exact", "tolerance", "off"] = "learned"
    rtol: float = Field(default=1e-5, ge=0)
    floor: float = Field(default=1e-3, ge=0)
    factor: float = Field(default=3.0, ge=1)
    min_points: int = Field(default=4, ge=2)
    falling: bool = True


class AccuracyRule(ConfigModel):
    """How evaluations are judged.

    Attributes:
        too_good: this many tolerances above the target is suspect (training that silently did less work).
        history: whether a change against earlier runs counts; on the few images of lite runs it is only shown.
    """

    too_good: float = Field(default=3.0, gt=0)
    history: bool = True


class ComparisonRule(ConfigModel):
    """What a run is compared with (docs/reference/environments.md).

    Attributes:
        seeds: losses and accuracies are compared with runs of the same seed; where there are fewer of these than
            this, with one run of each seed once there are so many seeds; None is `min_history`.
        new_environment: `allow` shows that a chain with a history runs in an environment class without one; `fail`
            makes that run an `infra_failure`.
    """

    seeds: int | None = Field(default=None, ge=2)
    new_environment: Literal["allow", "fail"] = "allow"


class NodeRule(ConfigModel):
    """When a slow node, not the model, is to blame (docs/reference/checks.md).

    Attributes:
        gating: whether a sick node makes the run an `infra_failure`; what it explains is set aside either way.
        probe: the relative change of a node's own probes that counts, beyond `sigmas`.
        share: how much of what was measured on it, in the steps with slow probes, must be slower, beyond its floor
            and `sigmas`.
        sigmas: robust standard deviations of the earlier runs.
    """

    gating: bool = True
    probe: float = Field(default=0.2, gt=0)
    share: float = Field(default=0.5, gt=0, le=1)
    sigmas: float = Field(default=2.0, gt=0)


class DetectRule(ConfigModel):
    """When a series of runs has changed its level (docs/reference/detection.md).

    Scores are standard deviations of normal noise.

    Attributes:
        min_history: no run is judged before there are this many.
        window: how many of the last runs of a level are looked at.
        span: how many of them, at most, may belong to a new level.
        floor: the smallest relative change that counts.
        floor_sigmas: the same in standard deviations of one run.
        drift: the relative change per run that is no change of level (0.0002 are 1 % in a year of weeks).
        ask: score from which a confirm run is asked for.
        first: score that is enough of a run and its confirm run alone, where runs are hardly ever far off.
        confirmed: score that is enough with a confirm run that agrees, when more runs were looked at.
        alone: score that is enough where no confirm run is to be had.
        alone_runs: how many runs there must be of the new level then, one more where odd runs were seen before.
    """

    min_history: int = Field(default=8, ge=4)
    window: int = Field(default=45, ge=16, le=1000)
    span: int = Field(default=15, ge=1, le=500)
    floor: float = Field(default=0.012, gt=0)
    floor_sigmas: float = Field(default=1.0, ge=0)
    drift: float = Field(default=0.00015, ge=0)
    ask: float = Field(default=2.5, gt=0)
    first: float = Field(default=3.5, gt=0)
    confirmed: float = Field(default=3.8, gt=0)
    alone: float = Field(default=4.0, gt=0)
    alone_runs: int = Field(default=2, ge=1)


_JUDGED = {
    "batch_cost": MetricRule(),
    "ips": MetricRule(),
    "reader_cost": MetricRule(part_of="batch_cost"),
    "preprocess_time": MetricRule(part_of="inference_time"),
    "inference_time": MetricRule(),
    "peak_rss": MetricRule(),
    "peak_gpu": MetricRule(),
    "loss": MetricRule(),
}


class Override(ConfigModel):
    """What some suites or models have of their own.

    Attributes:
        suite, model: whom it is about, with `*` and `?`; '' for all.
        because: why they differ, for the person who reads the policy.
        set: the keys of the policy that differ, as deep as needed (`{metrics: {batch_cost: {floor: 0.1}}}`).
    """

    suite: str = ""
    model: str = ""
    because: str = Field(min_length=1)
    set: dict[str, Any] = Field(min_length=1)

    def about(self, suite: str, model: str) -> bool:
        """Whether it is about this model of this suite."""
        return fnmatchcase(suite, self.suite or "*") and fnmatchcase(model, self.model or "*")


def _merged(base: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(base)
    for key, value in other.items():
        below = made.get(key)
        deeper = isinstance(below, Mapping) and isinstance(value, Mapping)
        made[key] = _merged(below, value) if deeper else value  # type: ignore[arg-type]
    return made


def _none_or_a_minute(minutes: float) -> float:
    """Less than a minute is not even enough to start the processes of a chain."""
    if 0 < minutes < 1:
        raise ValueError("0 for no confirm runs, or at least 1")
    return minutes


class Policy(ConfigModel):
    """How a run is judged.

    Attributes:
        budget_minutes: what a whole run may take.
        step_deadline_minutes: what one step may take before it is stopped.
        hang_s: seconds without any progress of a rank after which a training hangs; None for what earlier runs of
            the chain suggest (docs/reference/failures.md), 0 to leave it to the deadline.
        hang_first_s: the same for a chain without an accepted training in this environment, with `hang_s` null: a
            first training may read a cold data set or build kernels for minutes.
        retries: failure class -> how often a step is tried again that ended so; what is not named has the class's
            own number.
        lease: what a run leases: the `slots` that it uses, or `nodes` as a whole, so that nobody disturbs what is
            measured; not said, nodes when a metric of speed counts.
        lease_wait_s: how long a run may wait for them, seconds.
        waits: how long a controller and its nodes wait for each other.
        history: how many of the last accepted runs make the baseline.
        confirm_minutes: what a confirm run may take, beyond the run's own budget, from the moment it is asked
            for: 0 for no confirm runs, else at least 1.
        unconfirmed: whether a number that is in doubt and was neither confirmed nor refuted blocks: `fail` (exit
            code 4, red DAG run) or `neutral` (exit code 0); the run's status is `unconfirmed` either way.
        min_history: how many of them there must be before a change counts.
        z: how many robust standard deviations (1.4826 * MAD of the runs' medians) a change must exceed as well.
        metrics: the metrics that are compared with the baseline; others are stored and shown.
        removed: whether the tested ref may declare fewer variants, steps or legs than the run before it: `fail`,
            or `allow`, which only shows what is gone.
        chain: precision, or a leg's id with `*` and `?`, -> how far its scores may be from those of the network
            before its export.
        golden: how legs are compared with stored goldens.
        comparison: which earlier runs count.
        overrides: what some suites or models have of their own.
    """

    schema_version: int = 1
    name: str
    description: str = ""
    budget_minutes: float = Field(default=15, gt=0)
    step_deadline_minutes: float = Field(default=15, gt=0)
    hang_s: float | None = Field(default=None, ge=0)
    hang_first_s: float = Field(default=600, ge=0)
    retries: dict[FailureClass, Annotated[int, Field(ge=0, le=5)]] = {}
    lease: Literal["slots", "nodes"] | None = None
    lease_wait_s: float = Field(default=86400, gt=0)
    waits: Waits = Waits()
    confirm_minutes: Annotated[float, AfterValidator(_none_or_a_minute)] = Field(default=15, ge=0)
    unconfirmed: Literal["fail", "neutral"] = "fail"
    history: int = Field(default=20, ge=1)
    min_history: int = Field(default=5, ge=2)
    z: float = Field(default=5.0, gt=0)
    floors: Floors = Floors()
    metrics: dict[Annotated[str, AfterValidator(judged)], MetricRule] = _JUDGED
    removed: Literal["fail", "allow"] = "fail"
    parity: ParityRule = ParityRule()
    chain: dict[str, Tolerance] = _BUDGETS
    golden: GoldenRule = GoldenRule()
    loss: LossRule = LossRule()
    accuracy: AccuracyRule = AccuracyRule()
    comparison: ComparisonRule = ComparisonRule()
    node_health: NodeRule = NodeRule()
    detect: DetectRule = DetectRule()
    overrides: tuple[Override, ...] = ()

    @property
    def whole_nodes(self) -> bool:
        """Whether a run leases its nodes as a whole."""
        if self.lease is not None:
            return self.lease == "nodes"
        return any(rule.gating and metric(name).family == "speed" for name, rule in self.metrics.items())

    def retries_of(self, kind: FailureClass) -> int:
        """How often a step is tried again that ended with that class of failure."""
        return self.retries.get(kind, REMEDIES[kind].retries)

    @model_validator(mode="after")
    def _overrides_fit(self) -> Self:
        for number, override in enumerate(self.overrides, 1):
            try:
                self._with([override])
            except ValidationError as error:
                first = error.errors()[0]
                where = ".".join(str(part) for part in first["loc"])
                raise ValueError(f"override {number}: {where}: {first['msg']}") from None
        return self

    def floor_of(self, name: str) -> float:
        """The smallest relative change of a metric, or of a number of one (`numbers_of`), that counts."""
        known = metric(plain_metric(name))
        rule = self.metrics.get(known.name)
        floors = {"speed": self.floors.speed, "memory": self.floors.memory}
        return (rule and rule.floor) or floors.get(known.family, self.floors.quality)

    def gate_of(self, name: str = "") -> DetectRule:
        """The gate's settings for a number, with its floor; without a name `detect` as it is."""
        return self.detect.model_copy(update={"floor": self.floor_of(name)}) if name else self.detect

    def rule_of(self, name: str) -> MetricRule | None:
        """How a number (as `numbers_of` names it) is compared with earlier runs; None when it is not.

        What evaluations say is always compared: it counts as `accuracy.history` says.
        """
        known = metric(plain_metric(name))
        rule = self.metrics.get(known.name)
        if not name.startswith("eval."):
            return rule
        if known.family != "quality" or known.better == "none":
            return None
        rule = rule or MetricRule()
        return rule.model_copy(update={"gating": rule.gating and self.accuracy.history})

    def showing_numbers(self) -> Self:
        """The same policy, with numbers that are compared with earlier runs shown and none of them counting."""
        metrics = {name: rule.model_copy(update={"gating": False}) for name, rule in self.metrics.items()}
        accuracy = self.accuracy.model_copy(update={"history": False})
        return self.model_copy(update={"metrics": metrics, "accuracy": accuracy})

    def settled(self, suite: str, model: str) -> Self:
        """The policy for one model: what overrides say of it replaces what stands above, the later one wins."""
        return self._with([one for one in self.overrides if one.about(suite, model)])

    def _with(self, overrides: list[Override]) -> Self:
        values = self.model_dump(exclude={"overrides"})
        for override in overrides:
            if {"name", "overrides", "schema_version"} & set(override.set):
                raise ValueError("an override cannot set name, overrides or schema_version")
            values = _merged(values, override.set)
        return type(self).model_validate(values)
