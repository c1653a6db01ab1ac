"""The measurements of both ends before the search: they must differ."""

import math
from collections.abc import Sequence
from statistics import fmean, median, stdev

from tipcflow.bisect import Noise
from tipcflow.domain import ConfigError
from tipcflow.domain.errors import KEYS_SEPARATOR
from tipcflow.execute.bisection.builds import Build
from tipcflow.execute.bisection.commits import Commit
from tipcflow.execute.bisection.measured import Measured
from tipcflow.execute.bisection.subject import Subject

# Measurements of each end before the search; until the ends differ, and while they may; at most until they differ.
_ENDS, _ENOUGH_ENDS, _MOST_ENDS = 2, 4, 6
# Runs of the bad end of a failure: do all fail? And at most until one fails.
_FAILING, _MOST_FAILING = 3, 6
# The ends must differ by this many standard errors; a smaller difference than the second one is not pursued.
_DIFFERENT, _PERHAPS = 3.0, 1.0


def check_given(good: str, bad: str, suite_ref: str, *, has_builds: bool) -> None:
    """Check which versions are given: two refs, or a list of builds.

    Raises:
        ConfigError: neither, both, or a suite ref for a search over commits; names the options of the CLI.
    """
    if has_builds and (good or bad):
        raise ConfigError("lists the good and the bad build", key="--builds", expected="neither --good nor --bad")
    if not has_builds and not (good and bad):
        missing = KEYS_SEPARATOR.join(key for key, given in (("--good", good), ("--bad", bad)) if not given)
        raise ConfigError("not given", key=missing, expected="--good and --bad, or --builds")
    if suite_ref and not has_builds:
        raise ConfigError("is for --builds", key="--suite-ref", found=suite_ref, expected="--good and --bad")


def ends_to_measure(
    measured: Measured, subject: Subject, versions: Sequence[Commit | Build], active: Sequence[int]
) -> list[int] | None:
    """Return the ends to measure next, in order; None if both ends are known and differ.

    Args:
        active: indices of versions that are being measured. If the result is empty, the search waits for them.

    Raises:
        ConfigError: the good end is as bad as the bad one.
    """
    last = len(versions) - 1
    end = _end_to_measure(measured, subject, versions)
    if end is None:
        return None
    counts = {place: len(measured.values.get(place, ())) for place in (0, last)}
    counts[end] += 1
    fewest = {last: _FAILING if subject.is_failure else _ENDS, 0: _ENDS}
    # Further measurements that are needed whatever the first one reports.
    needed = [end, *(place for place in fewest for _ in range(counts[place], fewest[place]))]
    for place in active:
        if place in needed:
            needed.remove(place)
    return needed


def _end_to_measure(measured: Measured, subject: Subject, versions: Sequence[Commit | Build]) -> int | None:
    last = len(versions) - 1
    good, bad = (measured.values.get(end, []) for end in (0, last))
    if subject.is_failure:
        return _failing_end(versions, good, bad)
    for end, values in ((last, bad), (0, good)):
        if len(values) < _ENDS:
            return end
    scaled, noise = measured.scaled(is_failure=False)
    low, high = scaled[0], scaled[last]
    # Earlier runs of the good level count as measurements of the good end, as in the search.
    known = {0: len(low) + noise.good_runs, last: len(high)}
    level = (math.fsum(low) + noise.good_runs * (noise.level or 0.0)) / known[0]
    worse = fmean(high) - level if subject.better == "lower" else level - fmean(high)
    error = _pooled(low, high, noise) * math.sqrt(1 / known[0] + 1 / known[last])
    if worse > 0 and worse >= _DIFFERENT * error:
        return None
    most = _MOST_ENDS if worse > _PERHAPS * error else _ENOUGH_ENDS
    if uncertain := [end for end in known if known[end] < most]:
        return min(uncertain, key=lambda end: known[end])
    raise ConfigError(
        f"{subject.name} is not worse at the bad end by {_DIFFERENT:g} standard errors: "
        f"median {_amount(good)} at {versions[0].short}, {_amount(bad)} at {versions[-1].short}",
        key="--good, --bad",
        found=f"{len(good)} and {len(bad)} runs",
        expected="a worse value at the bad end",
        hint="`tipcflow history` shows the metric's runs; the change may depend on nodes or on something else, or "
        "other work on the nodes may have hidden it",
    )


def _failing_end(versions: Sequence[Commit | Build], good: list[float], bad: list[float]) -> int | None:
    if any(good):
        raise ConfigError(
            f"the chain fails at this {versions[0].NOUN}, too",
            key="--good",
            found=str(versions[0]),
            expected="a pass",
        )
    if not any(bad) and len(bad) >= _MOST_FAILING:
        raise ConfigError(f"the chain did not fail in {len(bad)} runs", key="--bad", found=str(versions[-1]))
    if not any(bad) or len(bad) < _FAILING:
        return len(versions) - 1
    return None if len(good) >= _ENDS else 0


def _pooled(low: list[float], high: list[float], noise: Noise) -> float:
    """Return the standard deviation of a run, from both ends and earlier runs."""
    squares = sum(stdev(values) ** 2 * (len(values) - 1) for values in (low, high))
    degrees = len(low) + len(high) - 2
    return math.sqrt((squares + noise.degrees * noise.sd**2) / (degrees + noise.degrees))


def _amount(values: list[float]) -> str:
    return f"{median(values):.6g}" if values else "nothing"
