"""Check results grouped by check and status."""

from collections.abc import Iterable
from dataclasses import dataclass

from tipcflow.domain import CheckResult, Status

# Statuses of which many results of one check are summarized.
_ALIKE = frozenset({Status.PASS, Status.IMPROVEMENT, Status.INSUFFICIENT_DATA, Status.NOT_RUN})


@dataclass(frozen=True)
class Answers:
    """All results of one check with one status, in their original order."""

    check: str
    status: Status
    gating: bool
    results: tuple[CheckResult, ...]

    @property
    def one(self) -> CheckResult:
        """The first result, which represents the group."""
        return self.results[0]


def answers(results: Iterable[CheckResult]) -> list[Answers]:
    """Groups with the worst status first and non-gating ones last; a bad result is never grouped."""
    groups: dict[tuple[str, Status, bool, int], list[CheckResult]] = {}
    for number, result in enumerate(results):
        own = -1 if result.status in _ALIKE else number
        groups.setdefault((result.check, result.status, result.gating, own), []).append(result)
    found = [Answers(check, status, gating, tuple(alike)) for (check, status, gating, _), alike in groups.items()]
    return sorted(found, key=lambda one: (not one.gating, -one.status.severity))
