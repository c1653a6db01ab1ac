"""Applies quarantines to check results: a covered failure stays red and visible, and does not block (ADR 25)."""

from collections.abc import Iterable, Sequence
from textwrap import shorten

from tipcflow.domain import CheckResult
from tipcflow.domain.numbers.measured import ValueKey
from tipcflow.domain.quarantine.entry import Quarantine
from tipcflow.domain.quarantine.signature import signature_of

_SHOWN = 3
_WIDTH = 300


def with_quarantines(results: Sequence[CheckResult], quarantines: Iterable[Quarantine]) -> list[CheckResult]:
    """Return the results; those that a quarantine covers keep their status and are not gating.

    Args:
        quarantines: in force.
    """
    active = tuple(quarantines)
    return [_applied(result, next((each for each in active if each.covers(result)), None)) for result in results]


def quarantined(results: Iterable[CheckResult]) -> tuple[int, ...]:
    """Return the numbers of the quarantines that cover results, sorted."""
    return tuple(sorted({number for result in results if (number := result.measured.quarantine) is not None}))


def quarantine_reasons(results: Iterable[CheckResult]) -> list[str]:
    """Return the part of a verdict about quarantined failures: the first three, and the number of the others."""
    covered = [result for result in results if result.measured.quarantine is not None]
    if not covered:
        return []
    parts = [_part(result) for result in covered[:_SHOWN]]
    more = [f"and {len(covered) - _SHOWN} more quarantined"] if len(covered) > _SHOWN else []
    return [*parts, *more]


def _part(result: CheckResult) -> str:
    about = " ".join(part for part in (result.step, result.leg) if part)
    text = f"quarantined: {result.check}{f' ({about})' if about else ''}: {result.reason}"
    return shorten(text, _WIDTH, placeholder=" …")


def _applied(result: CheckResult, quarantine: Quarantine | None) -> CheckResult:
    if quarantine is None:
        return result
    values = {**result.values, ValueKey.QUARANTINE: quarantine.number, ValueKey.SIGNATURE: signature_of(result)}
    reason = f"{quarantine.label}: {result.reason}"
    return result.model_copy(update={"gating": False, "reason": reason, "values": values})
