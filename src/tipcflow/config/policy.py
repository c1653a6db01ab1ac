"""Policies: tolerances of checks and time limits of runs (configs/policies/<name>.yaml)."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, ValidationInfo, model_validator

from tipcflow.config.automation.rules import AbRule, BisectRule, QuarantineRule
from tipcflow.config.base import ConfigModel
from tipcflow.config.policies.overrides import Override, merged, override_error
from tipcflow.config.policies.related_keys import require_enough_runs, require_wholes
from tipcflow.config.waits import Waits
from tipcflow.domain import ConfigError, plain_metric
from tipcflow.domain.base import is_stored
from tipcflow.domain.numbers.metrics import Scope, judged, metric, scope_of
from tipcflow.domain.run.failure import REMEDIES, FailureClass


class Floors(ConfigModel):
    """Smallest relative change that counts, by metric family (0.2 is 20 %)."""

    speed: float = Field(default=0.25, gt=0)
    memory: float = Field(default=0.15, gt=0)
    quality: float = Field(default=0.05, gt=0)


class MetricRule(ConfigModel):
    """Settings of one metric.

    Attributes:
        floor: replaces the family's floor.
        z: replaces the policy's `z`.
        gating: false shows the result without affecting the run's status.
        part_of: the metric that contains this one (`batch_cost` for `reader_cost`). A change counts only if it is,
            relative to that metric, at least half of its floor.
    """

    floor: float | None = Field(default=None, gt=0)
    z: float | None = Field(default=None, gt=0)
    gating: bool = True
    part_of: str = ""


class Tolerance(ConfigModel):
    """Scores are equal if |a - b| <= atol + rtol * |b| and all classes are the same.

    Attributes:
        other_class: share of the images that may have another class, with any scores.
    """

    rtol: float = Field(default=1e-4, ge=0)
    atol: float = Field(default=1e-5, ge=0)
    other_class: float = Field(default=0.0, ge=0, lt=1)


def budget_of(budgets: Mapping[str, Tolerance], leg: str, precision: str) -> Tolerance:
    """The tolerance of a leg: of the first pattern that matches its id, else of its precision, else of fp32."""
    for pattern, budget in budgets.items():
        if fnmatchcase(leg, pattern):
            return budget
    return budgets.get(precision) or budgets.get("fp32") or Tolerance()


class ParityRule(Tolerance):
    """oneDNN on against oneDNN off. With fewer than `min_classes` distinct classes, equality proves nothing."""

    min_classes: int = Field(default=2, ge=1)


# Rounding errors of a probability by precision; a network that lost accuracy differs by far more.
_BUDGETS = {
    "fp32": Tolerance(),
    "fp16": Tolerance(rtol=1e-2, atol=5e-3),
    "bf16": Tolerance(rtol=5e-2, atol=2e-2),
    "int8": Tolerance(rtol=1e-1, atol=5e-2),
}


class GoldenRule(ConfigModel):
    """Comparison of scores with stored goldens.

    Attributes:
        gating: false shows the result without affecting the run's status.
        budgets: precision -> tolerance. A float32 golden of another framework version differs by more than two
            engines on one machine do; TIPC's own comparison allows 1e-3.
    """

    gating: bool = True
    budgets: dict[str, Tolerance] = {**_BUDGETS, "fp32": Tolerance(rtol=1e-3, atol=1e-3)}


class LossRule(ConfigModel):
    """Checks of training losses.

    Attributes:
        reproducible: comparison of losses with equal seeds. `learned`: bit for bit if the suite declares its
            training `deterministic`, otherwise within `factor` times the differences of earlier runs with that
            seed, at least `floor`; with fewer than `min_history` such runs a difference is only shown. `exact`:
            bit for bit. `tolerance`: within `rtol`. `off`: not gating.
        min_points: minimum number of logged iterations for `loss.falling`.
        falling: whether `loss.falling` is gating (whole-data runs that resume near the optimum may not decrease).
    """

    reproducible: Literal["learned", "exact", "tolerance", "off"] = "learned"
    rtol: float = Field(default=1e-5, ge=0)
    floor: float = Field(default=1e-3, ge=0)
    factor: float = Field(default=3.0, ge=1)
    min_points: int = Field(default=4, ge=2)
    falling: bool = True


class AccuracyRule(ConfigModel):
    """Checks of evaluations.

    Attributes:
        too_good: number of tolerances above the target from which a result is suspicious (training that
            silently did less work).
        history: whether a change against earlier runs is gating; false in lite runs, which evaluate few images.
    """

    too_good: float = Field(default=3.0, gt=0)
    history: bool = True


class ComparisonRule(ConfigModel):
    """Selection of earlier runs for comparison (docs/reference/environments.md).

    Attributes:
        seeds: losses and accuracies are compared with runs of the same seed; with fewer such runs than this,
            with one run per seed if there are at least this many seeds. None means `min_history`.
        new_environment: for a run in an environment class without history, of a chain with history elsewhere:
            `allow` reports it, `fail` makes the run an `infra_failure`.
    """

    seeds: int | None = Field(default=None, ge=2)
    new_environment: Literal["allow", "fail"] = "allow"


class NodeRule(ConfigModel):
    """Detection of degraded nodes (docs/reference/checks.md).

    Attributes:
        gating: whether a degraded node makes the run an `infra_failure`; slowdowns are attributed to it either
            way.
        probe: smallest relative change of the node's probes that counts, in addition to `sigmas`.
        share: share of the kinds of speeds in steps with slow probes that must be slower by more than floor and
            `sigmas`.
        sigmas: robust standard deviations of the earlier runs.
    """

    gating: bool = True
    probe: float = Field(default=0.2, gt=0)
    share: float = Field(default=0.5, gt=0, le=1)
    sigmas: float = Field(default=2.0, gt=0)


class DetectRule(ConfigModel):
    """Change-point detector (docs/reference/detection.md).

    Scores are in standard deviations of normal noise.

    Attributes:
        min_history: number of runs before the first evaluated run.
        window: number of recent runs of a level that are evaluated.
        span: maximum number of these that may belong to a new level.
        floor: smallest relative change that counts.
        speed_floor: replaces `floors.speed` in the detector; None: the same floor. The floor of one run also
            serves histories that are too short to know their noise; the detector knows it.
        floor_sigmas: the same in standard deviations of one run.
        drift: relative change per run that is not a shift (0.0002 is 1 % in a year of weekly runs).
        ask: the score that triggers a confirm run.
        first: required score of a run and its confirm run alone, in a series with hardly any outliers.
        confirmed: required score with an agreeing confirm run, over more runs.
        alone: required score without a confirm run.
        alone_runs: required number of runs of the new level without a confirm run; one more after earlier
            outliers.
        better_runs: required number of runs of a new level that is better, unless it is far better: after a short
            improvement (another machine for some runs) the return to the level before would be a regression.
    """

    min_history: int = Field(default=8, ge=4)
    window: int = Field(default=60, ge=16, le=1000)
    span: int = Field(default=15, ge=1, le=500)
    floor: float = Field(default=0.012, gt=0)
    speed_floor: float | None = Field(default=None, gt=0)
    floor_sigmas: float = Field(default=1.0, ge=0)
    drift: float = Field(default=0.00015, ge=0)
    ask: float = Field(default=2.5, gt=0)
    first: float = Field(default=3.5, gt=0)
    confirmed: float = Field(default=3.8, gt=0)
    alone: float = Field(default=4.0, gt=0)
    alone_runs: int = Field(default=2, ge=1)
    better_runs: int = Field(default=10, ge=1)


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


def _none_or_a_minute(minutes: float) -> float:
    """Reject limits below a minute, which is too short to start the processes of a chain."""
    if 0 < minutes < 1:
        raise ValueError("0 for no confirm runs, or at least 1")
    return minutes


class Policy(ConfigModel):
    """Tolerances of checks and limits of runs.

    Attributes:
        budget_minutes: time limit of a run.
        step_deadline_minutes: time limit of a step.
        hang_s: seconds without progress of a rank after which a training counts as hung; None derives it from
            earlier runs of the chain (docs/reference/failures.md), 0 leaves hangs to the deadline.
        hang_first_s: the same for a chain without an accepted training in this environment, if `hang_s` is null: a
            first training may read a cold data set or build kernels for minutes.
        retries: failure class -> number of retries of a step; classes that are not listed have their default.
        lease: what a run leases: the `slots` that it uses, or whole `nodes`, so that other runs do not disturb
            measurements. Default: nodes if a speed metric is gating.
        lease_wait_s: maximum wait for the lease, seconds.
        waits: timeouts between a controller and its nodes.
        history: number of accepted runs in the baseline.
        confirm_minutes: time limit of a confirm run from its request, on top of the run's budget; 0 disables
            confirm runs, otherwise at least 1.
        confirm_runs: number of confirm runs, one after the other, that must show a regression. A further one is
            requested only if those before show it.
        unconfirmed: whether a suspected regression that is neither confirmed nor refuted fails the run: `fail`
            (exit code 4, failed DAG run) or `neutral` (exit code 0). The run's status is `unconfirmed` either
            way.
        min_history: number of earlier runs required for a comparison.
        z: robust standard deviations of the earlier runs that a change must exceed, in addition to the floor.
        metrics: metrics that are compared with the baseline; others are stored and shown.
        removed: `fail` or `allow` a tested ref that declares fewer variants, steps or legs than the last accepted
            run; `allow` only reports what is missing.
        chain: precision, or leg id with `*` and `?`, -> tolerance against the scores of the network before its
            export.
        golden: comparison of legs with stored goldens.
        comparison: selection of earlier runs.
        quarantine: limits of quarantines.
        ab: A/B comparisons that the planner of pull requests chooses.
        bisect: bisections that regressions and failures start.
        overrides: exceptions for suites or models.
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
    confirm_runs: int = Field(default=1, ge=1, le=5)
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
    quarantine: QuarantineRule = QuarantineRule()
    ab: AbRule = AbRule()
    bisect: BisectRule = BisectRule()
    overrides: tuple[Override, ...] = ()

    @property
    def whole_nodes(self) -> bool:
        """Whether a run leases whole nodes."""
        if self.lease is not None:
            return self.lease == "nodes"
        return any(rule.gating and metric(name).family == "speed" for name, rule in self.metrics.items())

    def retries_of(self, kind: FailureClass) -> int:
        """Number of retries of a step that failed with this class."""
        return self.retries.get(kind, REMEDIES[kind].retries)

    @model_validator(mode="after")
    def _keys_fit(self, info: ValidationInfo) -> Self:
        if is_stored(info):
            return self  # by a version that accepted it
        seeds, given = self.comparison.seeds, (info.context or {}).get("given", self.model_fields_set)
        require_enough_runs(history=self.history, min_history=self.min_history, seeds=seeds, given=given)
        require_wholes({name: rule.part_of for name, rule in self.metrics.items()})
        return self

    @model_validator(mode="after")
    def _overrides_fit(self) -> Self:
        for number, override in enumerate(self.overrides):
            try:
                self._with([override])
            except ValidationError as error:
                raise override_error(error, "overrides", number, "set") from None
        return self

    def floor_of(self, name: str) -> float:
        """The smallest relative change that counts, of a metric or of a name of `numbers_of`."""
        known = metric(plain_metric(name))
        rule = self.metrics.get(known.name)
        floors = {"speed": self.floors.speed, "memory": self.floors.memory}
        return (rule and rule.floor) or floors.get(known.family, self.floors.quality)

    def gate_of(self, name: str = "", rule: MetricRule | None = None) -> DetectRule:
        """Return the detector's settings for a metric; without a name, `detect` unchanged.

        A run is compared with `history` runs: with its confirm run, the detector sees at most two more. The floor
        of the metric replaces `detect.floor`; for a speed without a floor of its own, `detect.speed_floor` does.

        Args:
            rule: overrides the policy's rule of the metric.
        """
        if not name:
            return self.detect
        known = metric(plain_metric(name))
        rule = rule or self.metrics.get(known.name)
        wide = self.detect.speed_floor if known.family == "speed" else None
        floor = (rule and rule.floor) or wide or self.floor_of(name)
        window = min(self.detect.window, self.history + 2)
        return self.detect.model_copy(update={"floor": floor, "window": window})

    def with_window(self, runs: int) -> Self:
        """Return a copy in which a run is compared with up to this many earlier runs."""
        return self.model_copy(update={"history": runs, "detect": self.detect.model_copy(update={"window": runs})})

    def rule_of(self, name: str) -> MetricRule | None:
        """The comparison rule of a metric (named as in `numbers_of`); None if it is not compared.

        Evaluation metrics are always compared; `accuracy.history` sets whether they are gating.
        """
        known = metric(plain_metric(name))
        rule = self.metrics.get(known.name)
        if scope_of(name) is not Scope.EVALUATION:
            return rule
        if known.family != "quality" or known.better == "none":
            return None
        rule = rule or MetricRule()
        return rule.model_copy(update={"gating": rule.gating and self.accuracy.history})

    def showing_numbers(self) -> Self:
        """A copy of the policy in which comparisons with earlier runs are shown but not gating."""
        metrics = {name: rule.model_copy(update={"gating": False}) for name, rule in self.metrics.items()}
        accuracy = self.accuracy.model_copy(update={"history": False})
        return self.model_copy(update={"metrics": metrics, "accuracy": accuracy})

    def for_model(self, suite: str, model: str) -> Self:
        """The policy for one model, with its overrides applied in order.

        Raises:
            ConfigError: several overrides together are invalid.
        """
        applied = [override for override in self.overrides if override.about(suite, model)]
        try:
            return self._with(applied)
        except ValidationError as error:
            invalid = override_error(error)
            names = [f"overrides.{number}" for number, each in enumerate(self.overrides) if each in applied]
            raise ConfigError(
                f"{invalid.what} with {' and '.join(names)} of policy {self.name}",
                key=".".join(map(str, invalid.key)),
                found=invalid.found,
                expected=invalid.expected,
            ) from error

    def _with(self, overrides: list[Override]) -> Self:
        values = self.model_dump(exclude={"overrides"})
        for override in overrides:
            if {"name", "overrides", "schema_version"} & set(override.set):
                raise ValueError("an override cannot set name, overrides or schema_version")
            values = merged(values, override.set)
        return type(self).model_validate(
            values, context={"given": {key for each in overrides for key in each.set}}
        )
