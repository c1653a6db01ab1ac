"""A bisection as text, as JSON, and as a stored document."""

from typing import TYPE_CHECKING, Any

from tipcflow.bisect import Touches
from tipcflow.domain.errors import as_clause
from tipcflow.domain.numbers.units import counted, duration, percentage
from tipcflow.domain.run.bisection import BisectionDocument, Version
from tipcflow.execute.bisection.loop import Bisection, Progress

if TYPE_CHECKING:
    from tipcflow.domain import Run

_SHOWN = 5
_COVERED = 0.95
_TOUCHED = {
    Touches.CHAIN: "if it touches files of the chain",
    Touches.DOCUMENTATION: "if it touches documentation only",
    Touches.OTHER: "if it touches other files",
}


def opening(bisection: Bisection) -> str:
    """Return the first line: what is searched where."""
    first, last = bisection.versions[0], bisection.versions[-1]
    subject, count = bisection.subject, len(bisection.versions) - 1
    where = " ".join(filter(None, (subject.name, subject.step, subject.leg)))
    return f"{subject.chain}, {where}: {counted(count, bisection.noun)} after {first} up to {last}"


def prior_line(bisection: Bisection) -> str:
    """Return the prior probabilities by what commits touch; '' if all are the same."""
    kinds = [version.touches for version in bisection.versions[1:]]
    if len(set(kinds)) < 2:
        return ""
    known = dict(zip(kinds, bisection.priors, strict=True))
    parts = [
        f"{percentage(known[kind])} {text} ({counted(kinds.count(kind), bisection.noun)})"
        for kind, text in _TOUCHED.items()
        if kind in known
    ]
    return f"prior probability of a {bisection.noun}: {', '.join(parts)}"


def measure_line(bisection: Bisection, progress: Progress, place: int | None = None, *, ahead: int = 0) -> str:
    """Return the line before a run: what is measured and what is left.

    Args:
        place: index of the version; None for the next one.
        ahead: number of active runs.
    """
    place = progress.next if place is None else place
    version = bisection.versions[place or 0]
    number = progress.measured.count + 1 + ahead
    if progress.assessment is None:
        end = "good" if place == 0 else "bad"
        return f"run {number}: {version} (the {end} end)"
    left, covered = 0, 0.0
    for candidate in progress.assessment.candidates:
        if covered >= _COVERED:
            break
        left, covered = left + len(candidate.versions), covered + candidate.probability
    return f"run {number}: {version}; {left} of {counted(len(bisection.versions) - 1, bisection.noun)} left"


def value_line(bisection: Bisection, run: "Run", place: int = -1) -> str:
    """Return the line after a run: its value.

    Args:
        place: index of its version, -1 if the line before names it.
    """
    value = bisection.subject.measure(bisection.store, run)
    if bisection.subject.is_failure and value is not None:
        measured = "fails" if value else "works"
    else:
        measured = "nothing measured" if value is None else f"{value:.6g}"
    status = run.status.value if run.status else "running"
    of_version = f"{bisection.versions[place].short}: " if place >= 0 else ""
    return f"  {of_version}{measured} ({run.id}, {status}{_reason(run)})"


def _reason(run: "Run") -> str:
    reason = as_clause(run.reason)
    short = reason if len(reason) <= 120 else f"{reason[:119]}…"
    return f": {short}" if reason and run.status and run.status.value in ("failed", "infra_failure") else ""


def found_lines(bisection: Bisection, progress: Progress) -> list[str]:
    """Return the result."""
    lines = []
    measured, assessment = progress.measured, progress.assessment
    work = f"{counted(measured.count, 'run')}, {duration(measured.seconds)}"
    if assessment is None:
        lines.append(f"undecided: {progress.why} ({work})")
    elif assessment.certain:
        names = [str(bisection.versions[version]) for version in assessment.best.versions]
        several = f"one of {counted(len(names), bisection.noun)}: " if len(names) > 1 else ""
        lines.append(f"{percentage(assessment.best.probability, 0)}: {several}{', '.join(names)} ({work})")
        lines += _levels(bisection, progress)
    else:
        lines.append(f"undecided: {progress.why} ({work}); most probable:")
        for candidate in assessment.candidates[:_SHOWN]:
            names = [str(bisection.versions[version]) for version in candidate.versions]
            lines.append(f"  {percentage(candidate.probability, 0)} {', '.join(names)}")
    for version, why in sorted(measured.skipped.items()):
        lines.append(f"not measurable: {bisection.versions[version]}: {why}")
    return lines


def document_of(bisection: Bisection, progress: Progress) -> BisectionDocument:
    """Return the result for storage."""
    measured, assessment = progress.measured, progress.assessment
    best = assessment.best if assessment else None
    versions = [bisection.versions[version] for version in best.versions] if best else []
    lines = found_lines(bisection, progress)
    return BisectionDocument(
        chain=bisection.subject.chain,
        mode=bisection.subject.mode,
        metric=bisection.subject.name,
        step=bisection.subject.step,
        leg=bisection.subject.leg,
        good=bisection.versions[0].id,
        bad=bisection.versions[-1].id,
        is_certain=progress.is_certain,
        probability=best.probability if best else None,
        changes=tuple(Version(id=version.id, title=version.title) for version in versions),
        sentence="; ".join(lines[: 2 if progress.is_certain else 1]),
        runs=tuple(run.id for place in sorted(measured.runs) for run in measured.runs[place]),
        seconds=measured.seconds,
    )


def _levels(bisection: Bisection, progress: Progress) -> list[str]:
    """Return the metric before and since the change."""
    assert progress.assessment is not None
    change = progress.assessment.best.versions[-1]
    before = [value for place, values in progress.measured.values.items() if place < change for value in values]
    since = [value for place, values in progress.measured.values.items() if place >= change for value in values]
    if not before or not since:
        return []
    low, high = sum(before) / len(before), sum(since) / len(since)
    if bisection.subject.is_failure:
        return [f"failures: {sum(before):g} of {len(before)} runs before, {sum(since):g} of {len(since)} since"]
    ratio = f" ({high / low:.3f} x)" if low else ""
    return [f"{bisection.subject.name}: {low:.6g} before, {high:.6g} since{ratio}"]


def _version_json(bisection: Bisection, place: int) -> dict[str, Any]:
    version = bisection.versions[place]
    known = {"id": version.id, "title": version.title}
    return known | {"touches": version.touches.value} if prior_line(bisection) else known


def result_json(bisection: Bisection, progress: Progress) -> dict[str, Any]:
    """Return the result for `--json`."""
    versions, measured, assessment = bisection.versions, progress.measured, progress.assessment
    candidates, noun = assessment.candidates if assessment else (), bisection.noun
    return {
        "chain": bisection.subject.chain,
        "metric": bisection.subject.name,
        "good": versions[0].id,
        "bad": versions[-1].id,
        "certain": progress.is_certain,
        "why": progress.why,
        "candidates": [
            {
                f"{noun}s": [_version_json(bisection, place) for place in candidate.versions],
                "probability": candidate.probability,
            }
            for candidate in candidates
        ],
        "measurements": [
            {noun: versions[place].id, "values": values} for place, values in sorted(measured.values.items())
        ],
        "skipped": [{noun: versions[place].id, "why": why} for place, why in sorted(measured.skipped.items())],
        "runs": [run.id for place in sorted(measured.runs) for run in measured.runs[place]],
        "seconds": measured.seconds,
    }
