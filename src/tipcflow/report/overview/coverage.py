"""Coverage: which chains are declared, ran and passed, and what no run proves."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class Gap(StrEnum):
    """What no run proves about a chain, worst first."""

    NO_FRAMEWORK = "no framework"
    NEVER_RUN = "never run"
    NEVER_PASSED = "never passed"
    STALE = "not run lately"
    NO_HISTORY = "no history"
    NO_TARGET = "no accuracy target"
    NO_GOLDEN = "no golden"
    LEGS = "legs not run"
    UNDECLARED = "not declared"

    @property
    def is_severe(self) -> bool:
        """Whether the chain has no current result at all."""
        return self in (Gap.NO_FRAMEWORK, Gap.NEVER_RUN, Gap.NEVER_PASSED, Gap.STALE)


# The meaning of each gap for readers, worst first.
GAPS = {
    Gap.NO_FRAMEWORK: "not_run: the framework that the suite needs is not available on any cluster",
    Gap.NEVER_RUN: "declared in configs/chains, but no run",
    Gap.NEVER_PASSED: "runs, but none that passed",
    Gap.STALE: "the newest run is older than the limit",
    Gap.NO_HISTORY: "fewer accepted runs than a comparison needs, in at least one environment class",
    Gap.NO_TARGET: "no target in configs/references",
    Gap.NO_GOLDEN: "no reviewed predictions in configs/goldens",
    Gap.LEGS: "the newest run could not run all legs",
    Gap.UNDECLARED: "runs, but no file in configs/chains",
}
_ORDER = {gap: place for place, gap in enumerate(GAPS)}


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


@dataclass(frozen=True, slots=True)
class ChainCoverage:
    """The coverage of one chain, over its modes and environment classes.

    Not a model, because the page creates thousands of them.

    Attributes:
        lines: number of its (mode, environment class) with runs; `passing` is the number whose newest run passed
            without a quarantined failure.
        legs: number of legs in the plans of the newest runs, how many of them ran, and how many passed.
        not_run: reason -> number of legs.
        newest_at: start of its newest run with a verdict, seconds since the epoch; None if it never ran.
        no_framework: why no cluster can run it, one reason per cluster; empty if one can.
    """

    chain: str
    suite: str
    declared: bool
    lines: int
    passing: int
    legs: int
    legs_ran: int
    legs_passed: int
    not_run: dict[str, int]
    newest_run: str
    newest_at: float | None
    gaps: tuple[Gap, ...]
    no_framework: tuple[str, ...] = ()


class Reason(_Model):
    """A reason why legs did not run."""

    reason: str
    legs: int
    chains: tuple[str, ...]


class Coverage(_Model):
    """Everything that the page and the command show.

    Attributes:
        totals: what -> number of chains (`chains`, `declared`, `ran`, `passed`, `passing`) or legs (`legs`,
            `legs_ran`, `legs_passed`).
        gaps: gap -> number of chains.
        problems: configuration files that could not be read, and stored names that are not names of chains.
        selection: the false-green rate of the selection for pull requests, one line; '' without repositories.
    """

    schema_version: int = 1
    at: float
    days: float
    totals: dict[str, int]
    gaps: dict[str, int]
    reasons: tuple[Reason, ...]
    chains: tuple[ChainCoverage, ...]
    problems: tuple[str, ...] = ()
    selection: str = ""


def make_coverage(
    chains: Sequence[ChainCoverage], passed: int, *, at: float, days: float, problems: Sequence[str] = ()
) -> Coverage:
    """Return the coverage of chains, with totals, and chains with the worst gaps first.

    Args:
        passed: number of chains with at least one passed run.
    """
    totals = {
        "chains": len(chains),
        "declared": sum([chain.declared for chain in chains]),
        "ran": sum([chain.lines > 0 for chain in chains]),
        "passed": passed,
        "passing": sum([chain.lines > 0 and chain.passing == chain.lines for chain in chains]),
        "legs": sum([chain.legs for chain in chains]),
        "legs_ran": sum([chain.legs_ran for chain in chains]),
        "legs_passed": sum([chain.legs_passed for chain in chains]),
    }
    counts = Counter(gap for chain in chains for gap in chain.gaps)
    return Coverage(
        at=at,
        days=days,
        totals=totals,
        gaps={gap: counts[gap] for gap in GAPS if counts[gap]},
        reasons=_reasons(chains),
        chains=tuple(sorted(chains, key=_worst)),
        problems=tuple(problems),
    )


def _worst(chain: ChainCoverage) -> tuple[list[int], str]:
    return [*sorted([_ORDER[gap] for gap in chain.gaps]), len(_ORDER)], chain.chain


def _reasons(chains: Sequence[ChainCoverage]) -> tuple[Reason, ...]:
    counts: Counter[str] = Counter()
    names: dict[str, list[str]] = {}
    for chain in chains:
        for reason, count in chain.not_run.items():
            counts[reason] += count
            names.setdefault(reason, []).append(chain.chain)
    return tuple(
        Reason(reason=reason, legs=count, chains=tuple(names[reason])) for reason, count in counts.most_common()
    )
