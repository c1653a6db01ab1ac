"""A comparison of runs, as the CLI, the pages, JSON and CSV show it. The first run is the base of all changes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from tipcflow.check.baseline.detector_limits import MetricLimits
from tipcflow.domain import MetricKey, Run
from tipcflow.report.comparison.differences import FactRow, fact_rows
from tipcflow.report.comparison.metrics import MetricRow, metric_rows
from tipcflow.report.comparison.parts import CheckRow, LegRow, StepRow, check_rows, leg_rows, step_rows
from tipcflow.report.run.data import RunData

# Runs in one comparison.
LEAST, MOST = 2, 3


class Basis(StrEnum):
    """Whether changes between runs are evaluated."""

    SAME = "same"
    OTHER_ENVIRONMENT = "other environment class"
    OTHER_MODE = "other mode"


@dataclass(frozen=True)
class ComparedRun:
    """One of the runs.

    Attributes:
        numbers: metric values, named as in `numbers_of`; `exact` as in `RunNumbers`.
        policy: name of the policy that the run was evaluated with; '' if unknown.
        settings: what its suite file set (`Suite.settings`); None if unknown.
        units: units in the run's log, by step, leg and plain metric.
    """

    data: RunData
    numbers: Mapping[MetricKey, float]
    exact: bool = True
    policy: str = ""
    settings: Mapping[str, Any] | None = None
    units: Mapping[MetricKey, str] = field(default_factory=dict)

    @property
    def run(self) -> Run:
        """The run itself."""
        return self.data.run


@dataclass(frozen=True)
class Comparison:
    """The comparison.

    Attributes:
        basis: of each run after the first, whether its changes are evaluated.
        policy: name of the policy whose limits apply.
        history: number of accepted runs that the noise is estimated from, at most.
        needed: number of accepted runs from which on the noise is known.
        notes: restrictions of the comparison, as sentences.
    """

    runs: tuple[ComparedRun, ...]
    basis: tuple[Basis, ...]
    policy: str
    history: int
    needed: int
    facts: tuple[FactRow, ...]
    metrics: tuple[MetricRow, ...]
    steps: tuple[StepRow, ...]
    legs: tuple[LegRow, ...]
    checks: tuple[CheckRow, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The comparison in types of JSON."""
        runs = [compared.run.model_dump(mode="json") | {"policy": compared.policy} for compared in self.runs]
        parts = ("facts", "metrics", "steps", "legs", "checks")
        return {
            "runs": runs,
            "policy": self.policy,
            "history": self.history,
            "needed": self.needed,
            "notes": list(self.notes),
            **{name: [asdict(row) for row in getattr(self, name)] for name in parts},
        }


def comparison(
    runs: Sequence[ComparedRun],
    limits: Callable[[MetricKey], MetricLimits],
    *,
    policy: str,
    history: int,
    needed: int,
) -> Comparison:
    """Compare runs of one chain.

    Args:
        limits: the baseline, noise and limit of a metric in the history of the last run.
        history, needed: number of accepted runs in that history, and from which on the noise is known.
    """
    basis = tuple(_basis(runs[0].run, compared.run) for compared in runs[1:])
    data = [compared.data for compared in runs]
    evaluated = [value is Basis.SAME for value in basis]
    numbers, units = [compared.numbers for compared in runs], [compared.units for compared in runs]
    metrics = metric_rows(numbers, limits, evaluated, units)
    return Comparison(
        runs=tuple(runs),
        basis=basis,
        policy=policy,
        history=history,
        needed=needed,
        facts=tuple(fact_rows(data, [own.policy for own in runs], [own.settings for own in runs])),
        metrics=tuple(metrics),
        steps=tuple(step_rows(data)),
        legs=tuple(leg_rows(data)),
        checks=tuple(check_rows(data)),
        notes=(*_notes(runs, basis), *_unit_notes(metrics)),
    )


def _basis(first: Run, other: Run) -> Basis:
    if first.mode != other.mode or first.compat != other.compat:
        return Basis.OTHER_MODE
    return Basis.SAME if first.environment == other.environment else Basis.OTHER_ENVIRONMENT


def _notes(runs: Sequence[ComparedRun], basis: Sequence[Basis]) -> list[str]:
    notes = [
        f"Changes of {compared.run.id} are not evaluated: {word.value} than {runs[0].run.id}."
        for compared, word in zip(runs[1:], basis, strict=True)
        if word is not Basis.SAME
    ]
    running = [compared.run.id for compared in runs if compared.run.status is None]
    if running:
        notes.append(f"Still running: {', '.join(running)}.")
    coarse = [compared.run.id for compared in runs if not compared.exact]
    if coarse:
        notes.append(f"Medians of whole series, which include the warm-up: {', '.join(coarse)}.")
    return notes


def _unit_notes(rows: Sequence[MetricRow]) -> list[str]:
    """Metrics whose values have different units, each once."""
    differing = {
        row.metric: f"Units of {row.metric} differ between the runs: {', '.join(u or 'none' for u in row.units)}."
        for row in rows
        if len({unit for unit, value in zip(row.units, row.values, strict=True) if value is not None}) > 1
    }
    return list(differing.values())
