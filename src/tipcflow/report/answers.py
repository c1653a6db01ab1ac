"""The answers of all checks, alike ones together, each with what it was judged by."""

from collections.abc import Iterable
from dataclasses import dataclass

from tipcflow.domain import CheckResult, Status

# Answers that a person need not read one by one when a check gave many of them.
_ALIKE = frozenset({Status.PASS, Status.IMPROVEMENT, Status.INSUFFICIENT_DATA, Status.NOT_RUN})


@dataclass(frozen=True)
class Answers:
    """All answers of one check with one status, in the order in which they were given."""

    check: str
    status: Status
    gating: bool
    results: tuple[CheckResult, ...]

    @property
    def one(self) -> CheckResult:
        """The first: for what is said only once it is the only one."""
        return self.results[0]


def answers(results: Iterable[CheckResult]) -> list[Answers]:
    """Worst first, those that do not count last; a bad answer always stands alone."""
    groups: dict[tuple[str, Status, bool, int], list[CheckResult]] = {}
    for number, result in enumerate(results):
        own = -1 if result.status in _ALIKE else number
        groups.setdefault((result.check, result.status, result.gating, own), []).append(result)
    found = [Answers(check, status, gating, tuple(alike)) for (check, status, gating, _), alike in groups.items()]
    return sorted(found, key=lambda one: (not one.gating, -one.status.severity))
