"""Summary of a run without problems: what passed, was not evaluated or did not run."""

from collections import Counter
from collections.abc import Iterable

from tipcflow.check.select import leg_key
from tipcflow.domain import CheckFamily, CheckResult, Facts, Status, family_of

# Families of checks that compare with earlier runs; other checks are listed by metric.
_FAMILIES = (CheckFamily.SPEED, CheckFamily.MEMORY, CheckFamily.ACCURACY)


def summary(facts: Facts, results: Iterable[CheckResult]) -> list[str]:
    """Phrases: how many checks passed, what was not evaluated and why, what did not run."""
    all_results = tuple(results)
    counts = Counter(result.status for result in all_results)
    passed = counts[Status.PASS] + counts[Status.IMPROVEMENT]
    phrases = [f"{passed} checks passed"]
    if counts[Status.IMPROVEMENT]:
        phrases[0] += f", {counts[Status.IMPROVEMENT]} of them with an {Status.IMPROVEMENT}"
    open_ = [result for result in all_results if result.status is Status.INSUFFICIENT_DATA]
    return [*phrases, *_young(open_), *_others(open_), *_not_run(facts)]


def _too_short(result: CheckResult) -> bool:
    """Whether a result lacks earlier runs."""
    known = result.measured.earlier_runs
    return known is not None and known[0] < known[1]


def _young(open_: Iterable[CheckResult]) -> list[str]:
    young = [result for result in open_ if _too_short(result)]
    lapsed = [result for result in young if result.measured.searched]
    phrases = []
    if fresh := [result for result in young if not result.measured.searched]:
        most, needed = max(result.measured.earlier_runs or (0, 0) for result in fresh)
        history = f"{most} of {needed} earlier runs for a comparison" if most else "no earlier runs"
        phrases.append(f"not evaluated ({history}): {_names(fresh)}")
    if lapsed:
        searched = max(result.measured.searched or 0 for result in lapsed)
        left_out = f"left out of most of the last {searched} accepted runs"
        phrases.append(f"not evaluated ({left_out}): {_names(lapsed)}")
    return phrases


def _names(results: Iterable[CheckResult]) -> str:
    families = ((family_of(result.check), result) for result in results)
    return _listed(
        family.value if family in _FAMILIES and family else result.metric for family, result in families
    )


def _others(open_: Iterable[CheckResult]) -> list[str]:
    others = [result.check for result in open_ if not _too_short(result)]
    return [f"{Status.INSUFFICIENT_DATA}: {', '.join(dict.fromkeys(others))}"] if others else []


def _not_run(facts: Facts) -> list[str]:
    """Legs by device, and steps without legs, that the nodes do not support."""
    legs: Counter[str] = Counter()
    steps = []
    for step in facts.plan.steps:
        skipped = facts.step_status.get(step.id) is Status.NOT_RUN
        for leg in step.legs:
            legs[leg.device] += skipped or facts.leg_status.get(leg_key(step, leg.id)) is Status.NOT_RUN
        if skipped and not step.legs:
            steps.append(step.id)
    parts = [f"{number} {device.upper()} leg{'s' * (number > 1)} not run" for device, number in (+legs).items()]
    return [*parts, *([f"not run: {', '.join(steps)}"] if steps else [])]


def _listed(names: Iterable[str]) -> str:
    """`speed`, `speed and memory`, `speed, memory and loss`."""
    *most, last = dict.fromkeys(names)
    return f"{', '.join(most)} and {last}" if most else last
