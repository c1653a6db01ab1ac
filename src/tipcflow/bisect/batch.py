"""Which versions to measure at the same time: the batch with the largest expected information.

A run is treated as a binary channel: it reports whether its version is bad, and errs with a known probability. The
information of a batch is the mutual information between the change and the reports of all its runs (Cover and
Thomas, Elements of Information Theory, chapter 2). The noise of a run does not depend on the batch, so the batch
with the largest entropy of its reports has the largest information.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from statistics import fmean

# Bounds of the probability that a run reports the wrong side: no measurement is perfect, each tells something.
_LEAST, _MOST = 0.005, 0.45
# Places that are considered: those that divide the posterior into this many parts.
_PARTS = 40
# Exchanges of one place of the batch against a better one, per place.
_SWEEPS = 3
_GAIN = 1e-9


def best_batch(
    posterior: Sequence[float], active: Sequence[int], count: int, error: float, first: int | None = None
) -> list[int]:
    """Return the places to measure next.

    Args:
        posterior: probability of each hypothesis `k` = 1 …: place `k` and all later ones are bad.
        active: places that are being measured; their reports are unknown.
        count: number of places to return; a place may be repeated.
        error: probability that a run reports the wrong side.
        first: the place that a single run measures, with which the choice begins.
    """
    before = [0.0, *accumulate(posterior)]
    places = _places(before)
    greedy = [] if first is None or active else [first]
    while len(greedy) < count:
        greedy.append(_best(before, [*active, *greedy], places, error)[0])
    batches = [greedy]
    if not active:
        quantiles = (part / (count + 1) for part in range(1, count + 1))
        batches.append([min(places, key=lambda place: abs(before[place] - quantile)) for quantile in quantiles])
    # Exchanges of single places end in a local optimum, which depends on the start.
    for batch in batches:
        for _ in range(_SWEEPS):
            if not _exchange(before, active, batch, places, error):
                break
    best = max(batches, key=lambda batch: _best(before, [*active, *batch[1:]], batch[:1], error)[1])
    return sorted(best)


def error_of_levels(measured: Mapping[int, Sequence[float]], change: int) -> float:
    """Return the probability that a run is nearer to the wrong level, if `change` brought the change."""
    good = [value for place, values in measured.items() if place < change for value in values]
    bad = [value for place, values in measured.items() if place >= change for value in values]
    degrees = len(good) + len(bad) - 2
    if not good or not bad or degrees < 1:
        return _LEAST
    squares = sum((value - fmean(side)) ** 2 for side in (good, bad) for value in side)
    sd = math.sqrt(squares / degrees)
    shift = abs(fmean(bad) - fmean(good))
    return _bounded(0.5 * math.erfc(shift / (2 * math.sqrt(2) * sd)) if sd else 0.0)


def error_of_failures(measured: Mapping[int, Sequence[float]], change: int) -> float:
    """Return the mean probability that a good version fails or a bad one works, if `change` brought the change."""
    good = [value for place, values in measured.items() if place < change for value in values]
    bad = [value for place, values in measured.items() if place >= change for value in values]
    if not good or not bad:
        return _LEAST
    return _bounded((fmean(good) + 1 - fmean(bad)) / 2)


def _bounded(error: float) -> float:
    return min(max(error, _LEAST), _MOST)


def _places(before: Sequence[float]) -> list[int]:
    """Return the places nearest to the quantiles of the posterior; the ends tell nothing about the change."""
    inner = range(1, len(before) - 1)
    if len(inner) <= _PARTS:
        return list(inner)
    near = (min(inner, key=lambda place: abs(before[place] - part / _PARTS)) for part in range(1, _PARTS))
    return sorted(set(near))


def _exchange(
    before: Sequence[float], active: Sequence[int], chosen: list[int], places: Sequence[int], error: float
) -> bool:
    """Replace places of the batch by better ones; return whether there were any."""
    is_better = False
    for index, place in enumerate(chosen):
        others = [*active, *chosen[:index], *chosen[index + 1 :]]
        best, entropy = _best(before, others, places, error)
        if entropy > _best(before, others, [place], error)[1] + _GAIN:
            chosen[index], is_better = best, True
    return is_better


def _best(
    before: Sequence[float], others: Sequence[int], places: Sequence[int], error: float
) -> tuple[int, float]:
    """Return the place that adds most to the entropy of the reports of `others`, and that entropy."""
    cuts = sorted(others)
    edges = [0, *cuts, len(before) - 1]
    # Of each part of the posterior between two cuts: the probability of each combination of reports.
    reports = [_reports(part, len(cuts), error) for part in range(len(cuts) + 1)]
    masses = [before[end] - before[start] for start, end in pairwise(edges)]
    total = [
        sum(mass * report[y] for mass, report in zip(masses, reports, strict=True)) for y in range(1 << len(cuts))
    ]
    # The same, summed over the parts before each part: there, a later place is bad.
    sums = [[0.0] * len(total)]
    for mass, report in zip(masses, reports, strict=True):
        sums.append([each + mass * chance for each, chance in zip(sums[-1], report, strict=True)])
    best, most = places[0], -1.0
    for place in places:
        part = sum(cut < place for cut in cuts)
        rest = before[place] - before[edges[part]]
        entropy = 0.0
        for is_bad, chance, every in zip(sums[part], reports[part], total, strict=True):
            reported = every * error + (is_bad + rest * chance) * (1 - 2 * error)
            entropy += _term(reported) + _term(every - reported)
        if entropy > most + _GAIN:
            best, most = place, entropy
    return best, most


def _reports(part: int, cuts: int, error: float) -> list[float]:
    """Return the probability of each combination of reports if the change is in this part of the posterior.

    A change in part `i` lies before the cuts `i`, `i + 1` …, which are bad then; bit `j` reports about cut `j`.
    """
    chances = [1.0]
    for cut in range(cuts):
        reports_bad = 1 - error if cut >= part else error
        chances = [*(each * (1 - reports_bad) for each in chances), *(each * reports_bad for each in chances)]
    return chances


def _term(probability: float) -> float:
    return -probability * math.log2(probability) if probability > 0 else 0.0
