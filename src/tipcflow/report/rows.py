"""Steps, legs and checks as rows for tables: the same rows for the terminal, Markdown and pages."""

from collections.abc import Iterable
from dataclasses import dataclass

from tipcflow.domain import CheckResult, Facts, Failure, Leg, LegKey, MetricKey, Status, Step, medians_of
from tipcflow.domain.numbers.units import counted
from tipcflow.report.result_groups import group_results
from tipcflow.report.sections import leg_status, step_status
from tipcflow.report.text.plain import one_line

NOT_GATING = "not gating"


@dataclass(frozen=True)
class VerdictRow:
    """One row of the verdict table; represents `count` similar results of the check."""

    check: str
    about: str
    status: Status
    reason: str
    gating: bool = True
    count: int = 1

    @property
    def name(self) -> str:
        """The check, with the number of its results: `parity.onednn × 4`."""
        return self.check if self.count == 1 else f"{self.check} × {self.count}"

    @property
    def text(self) -> str:
        """The reason, marked if the result does not affect the run's status."""
        return self.reason if self.gating else f"({NOT_GATING}) {self.reason}"


@dataclass(frozen=True)
class StepRow:
    """One step: kind, nodes, wall seconds of its longest job (0 if it did not run), status and reason,
    and the failure of its last attempt."""

    step: str
    kind: str
    nodes: str
    status: Status
    reason: str
    seconds: float = 0.0
    failure: Failure | None = None


@dataclass(frozen=True)
class LegRow:
    """One leg; settings as text, `latency_ms` None if not measured."""

    step: str
    leg: str
    settings: str
    status: Status
    reason: str
    latency_ms: float | None = None


def verdict_rows(results: Iterable[CheckResult]) -> list[VerdictRow]:
    """One row per group of `group_results`, worst first."""
    return [_verdict_row(list(group.results)) for group in group_results(results)]


def _verdict_row(alike: list[CheckResult]) -> VerdictRow:
    first = alike[0]
    about = " ".join(part for part in (first.step, first.leg) if part)
    reason = first.reason
    if len(alike) > 1:
        places = len({(result.step, result.leg) for result in alike})
        about = f"{places} steps and legs" if places > 1 else about
        reasons = {result.reason for result in alike}
        reason = reason if len(reasons) == 1 else f"first ({first.leg or first.step}): {reason}"
    return VerdictRow(first.check, about, first.status, one_line(reason), first.gating, len(alike))


def step_rows(facts: Facts) -> list[StepRow]:
    """Every planned step, in the order of the plan."""
    return [_step_row(facts, step) for step in facts.plan.steps]


def _step_row(facts: Facts, step: Step) -> StepRow:
    seconds = [record.duration_s for record in facts.records if record.step == step.id and not record.leg]
    return StepRow(
        step=step.id,
        kind=step.kind.value,
        nodes=", ".join(step.nodes),
        status=step_status(facts, step),
        reason=one_line(facts.step_reason.get(LegKey(step.id)) or step.not_run),
        seconds=max(seconds, default=0.0),
        failure=facts.failures.get(step.id),
    )


def leg_rows(facts: Facts) -> list[LegRow]:
    """Every planned leg, in the order of the plan."""
    medians = medians_of(facts.measurements)
    return [_leg_row(facts, step, leg, medians) for step in facts.plan.steps for leg in step.legs]


def _leg_row(facts: Facts, step: Step, leg: Leg, medians: dict[MetricKey, float]) -> LegRow:
    reason = facts.step_reason.get(LegKey(step.id, leg.id)) or leg.not_run or step.not_run
    return LegRow(
        step=step.id,
        leg=leg.id,
        settings=settings(leg),
        status=leg_status(facts, step, leg),
        reason=one_line(reason),
        latency_ms=medians.get(MetricKey(step.id, leg.id, "inference_time")),
    )


def settings(leg: Leg) -> str:
    """A leg's declared settings as text: `cpu, oneDNN on, fp32, 1 thread, batch 4`."""
    settings: list[str] = [leg.device]
    if leg.onednn is not None and leg.device == "cpu":
        settings.append(f"oneDNN {'on' if leg.onednn else 'off'}")
    if leg.tensorrt is not None and leg.device == "gpu":
        settings.append(f"TensorRT {'on' if leg.tensorrt else 'off'}")
    if leg.precision:
        settings.append(leg.precision)
    if leg.threads is not None:
        settings.append(counted(leg.threads, "thread"))
    if leg.batch_size is not None:
        settings.append(f"batch {leg.batch_size}")
    return ", ".join(settings)
