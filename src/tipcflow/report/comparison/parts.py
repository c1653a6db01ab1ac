"""Steps, legs and checks of runs side by side."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tipcflow.domain import CheckResult, LegKey, Status
from tipcflow.report.rows import leg_rows as legs_of
from tipcflow.report.rows import step_rows as steps_of
from tipcflow.report.run.data import RunData

K = TypeVar("K")


@dataclass(frozen=True)
class StepRow:
    """A step in each run: status word ('' where it is not planned) and seconds of its longest job (0: not
    started); `ratios` of the runs after the first to the first."""

    step: str
    statuses: tuple[str, ...]
    seconds: tuple[float | None, ...]
    ratios: tuple[float | None, ...]


@dataclass(frozen=True)
class LegRow:
    """A leg in each run: status word ('' where it is not planned) and median milliseconds per batch."""

    step: str
    leg: str
    settings: str
    statuses: tuple[str, ...]
    latencies_ms: tuple[float | None, ...]
    ratios: tuple[float | None, ...]


@dataclass(frozen=True)
class CheckRow:
    """The worst result of a check about one subject in each run; '' where a run has none."""

    check: str
    step: str
    leg: str
    metric: str
    statuses: tuple[str, ...]
    reasons: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether the status is not the same in all runs."""
        return len(set(self.statuses)) > 1


def step_rows(runs: Sequence[RunData]) -> list[StepRow]:
    """Every planned step, in the order of the plans."""
    known = [{row.step: row for row in steps_of(data.facts)} for data in runs]
    rows = []
    for step in _ordered(known):
        own = [rows_by_step.get(step) for rows_by_step in known]
        seconds = tuple(row.seconds if row else None for row in own)
        statuses = [
            data.status_word(LegKey(step), row.status) if row else "" for data, row in zip(runs, own, strict=True)
        ]
        rows.append(StepRow(step, tuple(statuses), seconds, _ratios(seconds)))
    return rows


def leg_rows(runs: Sequence[RunData]) -> list[LegRow]:
    """Every planned leg, in the order of the plans."""
    known = [{(row.step, row.leg): row for row in legs_of(data.facts)} for data in runs]
    rows = []
    for step, leg in _ordered(known):
        own = [rows_by_leg.get((step, leg)) for rows_by_leg in known]
        latencies = tuple(row.latency_ms if row else None for row in own)
        statuses = [
            data.status_word(LegKey(step, leg), row.status) if row else ""
            for data, row in zip(runs, own, strict=True)
        ]
        settings = next(row.settings for row in own if row)
        rows.append(LegRow(step, leg, settings, tuple(statuses), latencies, _ratios(latencies)))
    return rows


def check_rows(runs: Sequence[RunData]) -> list[CheckRow]:
    """Every check and its subject: those with different statuses first, and of each kind the worst first."""
    known = [_worst(data.checks) for data in runs]
    rows = []
    for subject in _ordered(known):
        own = [results.get(subject) for results in known]
        statuses = tuple(result.status.value if result else "" for result in own)
        reasons = tuple(result.reason if result else "" for result in own)
        rows.append(CheckRow(*subject, statuses, reasons))
    return sorted(rows, key=lambda row: (not row.differs, -_severity(row)))


def _severity(row: CheckRow) -> int:
    return max(Status(status).severity for status in row.statuses if status)


def _worst(results: Iterable[CheckResult]) -> dict[tuple[str, str, str, str], CheckResult]:
    worst: dict[tuple[str, str, str, str], CheckResult] = {}
    for result in results:
        subject = (result.check, result.step, result.leg, result.metric)
        before = worst.get(subject)
        if before is None or result.status.severity > before.status.severity:
            worst[subject] = result
    return worst


def _ordered(known: Iterable[Mapping[K, object]]) -> list[K]:
    return list(dict.fromkeys(key for rows in known for key in rows))


def _ratios(values: Sequence[float | None]) -> tuple[float | None, ...]:
    base = values[0]
    return tuple(value / base if base and value else None for value in values[1:])
