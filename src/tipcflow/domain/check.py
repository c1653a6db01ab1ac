"""Check results, and the facts of a run that checks evaluate."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from pydantic import ValidationInfo, field_validator

from tipcflow.domain.base import Frozen
from tipcflow.domain.keys import LegKey, PartKey, PredictionKey
from tipcflow.domain.masking import Masked, MaskedTexts, MaskedValues
from tipcflow.domain.node import NodeFacts
from tipcflow.domain.numbers.measured import Measured
from tipcflow.domain.numbers.measurement import Measurement
from tipcflow.domain.plan import Plan
from tipcflow.domain.run.exit_record import ExitRecord
from tipcflow.domain.run.failure import Failure
from tipcflow.domain.status import Status


class CheckFamily(StrEnum):
    """Checks that compare measured values, by the first part of their names (`accuracy.final`)."""

    ACCURACY = "accuracy"
    BASELINE = "baseline"
    MEMORY = "memory"
    SPEED = "speed"


def family_of(check: str) -> CheckFamily | None:
    """Return the family of a check; None for a check of no family, or one that proves that work was done."""
    first, dot, _ = check.partition(".")
    return next((family for family in CheckFamily if dot and family == first), None)


def is_accuracy(check: str) -> bool:
    """Whether a check evaluates an accuracy."""
    return family_of(check) is CheckFamily.ACCURACY


class CheckResult(Frozen):
    """Result of one check.

    Attributes:
        check: the check's name (`loss.finite`, `parity.onednn`, …).
        step, leg, metric: scope of the result; '' for the whole run.
        reason: reason in one sentence, with the numbers.
        gating: whether the result affects the run's status.
        values: the values that the check evaluated, for the page and the certificate (`ValueKey`).
    """

    schema_version: int = 1
    check: str
    status: Status
    reason: Masked
    step: str = ""
    leg: str = ""
    metric: str = ""
    gating: bool = True
    values: MaskedValues = {}

    @property
    def measured(self) -> Measured:
        """Typed access to `values`."""
        return Measured(self.values)


class RankReport(Frozen):
    """Report of one training process about its place in the process group ('' and None for unreported fields)."""

    node: str = ""
    rank: int
    world_size: int
    backend: Masked = ""
    device: Masked = ""
    precision: Masked = ""
    seed: int | None = None


class AutologReport(Frozen):
    """The last AutoLog report of a leg.

    Attributes:
        at: time of its first line, seconds since the epoch in an unknown time zone; -1 if its lines have no date.
        timed: whether it contains a time; a truncated report has none.
    """

    at: float = -1.0
    timed: bool = True


class LogLines(Frozen):
    """Number of recognized lines of a training's logs, over all nodes and ranks, without empty lines.

    Attributes:
        recognised: lines of training or evaluation.
        unknown: lines of unknown kind.
    """

    recognised: int = 0
    unknown: int = 0

    def __add__(self, other: "LogLines") -> "LogLines":
        recognised, unknown = self.recognised + other.recognised, self.unknown + other.unknown
        return LogLines(recognised=recognised, unknown=unknown)

    @property
    def share(self) -> float:
        """Return the share of recognized lines; 0 without lines."""
        return self.recognised / max(1, self.recognised + self.unknown)


class PrintedProgress(Frozen):
    """The last training line of a rank that prints how many iterations there are.

    Attributes:
        iteration, total: as printed, of the epoch or of the whole training.
    """

    node: str
    rank: int
    iteration: int
    total: int


class Facts(Frozen):
    """All facts of a finished run, before checks evaluate them.

    Attributes:
        records: exit records of all jobs and legs, last attempt of each.
        step_status, leg_status: step id, and leg, -> status.
        step_reason: step or leg -> reason, if there is one.
        predictions: step or leg -> class scores and results.
        autolog: leg -> AutoLog fields as printed.
        reports: leg -> time of that report, and whether it is complete.
        reporter: the AutoLog that wrote the reports: 'auto_log <version>' or 'tipcflow-sample', '' if none.
        engine: leg -> the effective settings reported by the inference process.
        ranks: step id -> reports of its training processes, over all nodes.
        lines: step id -> number of recognized lines of its training logs.
        progress: step id -> the last printed progress of its ranks.
        cut: step id -> the unread part of its files, as text.
        failures: step id -> why its last attempt failed, for failed steps.
    """

    run: str
    plan: Plan
    records: tuple[ExitRecord, ...] = ()
    node_facts: tuple[NodeFacts, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    step_status: dict[str, Status] = {}
    leg_status: dict[LegKey, Status] = {}
    step_reason: dict[LegKey, str] = {}
    predictions: dict[LegKey, dict[PredictionKey, tuple[float, ...]]] = {}
    autolog: dict[LegKey, MaskedTexts] = {}
    reports: dict[LegKey, AutologReport] = {}
    reporter: Masked = ""
    engine: dict[LegKey, MaskedTexts] = {}
    ranks: dict[str, tuple[RankReport, ...]] = {}
    lines: dict[str, LogLines] = {}
    progress: dict[str, tuple[PrintedProgress, ...]] = {}
    cut: dict[str, tuple[str, ...]] = {}
    failures: dict[str, Failure] = {}

    @field_validator("leg_status", "step_reason", "predictions", "autolog", "reports", "engine", mode="before")
    @classmethod
    def _typed(cls, value: Any, info: ValidationInfo) -> Any:
        """Resolve the keys of stored documents; only the plan distinguishes steps from legs."""
        if not isinstance(value, Mapping):
            return value
        plan = info.data.get("plan")
        steps = {step.id for step in plan.steps} if plan else set()
        steps |= info.data.get("step_status", {}).keys()
        parts = {PartKey(key) if isinstance(key, str) else key: entry for key, entry in value.items()}
        return {key.within(steps) if isinstance(key, PartKey) else key: entry for key, entry in parts.items()}
