"""Check results grouped by check and status."""

from collections.abc import Iterable
from dataclasses import dataclass

from tipcflow.domain import CheckResult, Status

# Statuses of which many results of one check are summarized.
_ALIKE = frozenset({Status.PASS, Status.INSUFFICIENT_DATA, Status.NOT_RUN})


@dataclass(frozen=True)
class ResultGroup:
    """All results of one check with one status, in their original order."""

    check: str
    status: Status
    gating: bool
    results: tuple[CheckResult, ...]

    @property
    def first(self) -> CheckResult:
        """The first result, which represents the group."""
        return self.results[0]


def group_results(results: Iterable[CheckResult]) -> list[ResultGroup]:
    """Groups by status, worst first, non-gating results last; results to review or worse are never grouped."""
    groups: dict[tuple[str, Status, bool, int], list[CheckResult]] = {}
    for number, result in enumerate(results):
        own = -1 if result.status in _ALIKE else number
        groups.setdefault((result.check, result.status, result.gating, own), []).append(result)
    result_groups = [
        ResultGroup(check, status, gating, tuple(alike)) for (check, status, gating, _), alike in groups.items()
    ]
    return sorted(result_groups, key=lambda group: (not group.gating, -group.status.severity))
