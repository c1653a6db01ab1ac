"""The search: posterior over versions, the next version to measure, and when the result is certain enough.

Noise makes plain bisection wrong: with a shift of three standard deviations, one wrong result of seven loses the
commit in 40 % of the searches. Each measurement is information about where the change is, no more; the posterior
counts it, and a version near the middle of the posterior is measured next, again if necessary (Horstein 1963:
probabilistic bisection).
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from tipcflow.bisect.batch import best_batch

Measured = Mapping[int, Sequence[float]]
# Log likelihood of each hypothesis, given the measurements of numbered versions and the number of versions.
Likelihood = Callable[[Measured, int], list[float]]
# Probability that a run reports the wrong side, given the measurements and the first bad version.
ErrorRate = Callable[[Measured, int], float]
# Possible results of another measurement and their probabilities, given the measurements, the probability of each
# hypothesis, and the version to measure.
Outcomes = Callable[[Measured, Sequence[float], int], list[tuple[float, float]]]
CONFIDENCE = 0.95
# The measurements whose information is compared: of the versions at these quantiles of the posterior, and of both
# ends.
_QUANTILES = (0.3, 0.4, 0.5, 0.6, 0.7)


def _exact(measured: Measured, change: int) -> float:
    return 0.0


@dataclass(frozen=True)
class Candidate:
    """Versions that cannot be distinguished: one, or several of which all but the last cannot be measured.

    Attributes:
        versions: indices, in order.
        probability: that one of them brought the change.
    """

    versions: tuple[int, ...]
    probability: float


@dataclass(frozen=True)
class Assessment:
    """State of a search.

    Attributes:
        candidates: most probable first.
        certain: whether the first candidate has the required probability.
        next: versions to measure next, at most as many as requested; empty if certain.
    """

    candidates: tuple[Candidate, ...]
    certain: bool
    next: tuple[int, ...]

    @property
    def best(self) -> Candidate:
        """The most probable candidate."""
        return self.candidates[0]


@dataclass(frozen=True)
class Search:
    """A search for the version that brought a change.

    Attributes:
        versions: number of versions; the first one is good, the last one is bad.
        likelihood: of the measurements.
        weights: prior weight of each version, e.g. larger for commits that touch the chain's files; empty for
            equal weights.
        confidence: required probability of the result.
        error: of runs at the same time, which are chosen by their expected information.
        outcomes: of another measurement; with it, a single next measurement is the one from which most information
            is expected. None: the version in the middle of the posterior, or an end.
    """

    versions: int
    likelihood: Likelihood
    weights: tuple[float, ...] = ()
    confidence: float = CONFIDENCE
    error: ErrorRate = _exact
    outcomes: Outcomes | None = None

    def __post_init__(self) -> None:
        if self.versions < 2:
            raise ValueError("a search needs a good and a bad version")
        if self.weights and (len(self.weights) != self.versions or min(self.weights) <= 0):
            raise ValueError("weights: one above 0 for each version")

    def assess(
        self, measured: Measured, *, skipped: Collection[int] = (), count: int = 1, active: Sequence[int] = ()
    ) -> Assessment:
        """Return the state of the search after the measurements.

        Args:
            measured: version -> its measurements; the first and the last version have at least one each.
            skipped: versions that cannot be measured.
            count: number of measurements that can start now.
            active: versions that are being measured.
        """
        last = self.versions - 1
        if not measured.get(0) or not measured.get(last):
            raise ValueError("the first and the last version must be measured")
        places = [version for version in range(self.versions) if version not in skipped or version in (0, last)]
        numbered = {
            place: measured[version] for place, version in enumerate(places) if measured.get(version) is not None
        }
        groups = [tuple(range(before + 1, after + 1)) for before, after in pairwise(places)]
        logs = self.likelihood(numbered, len(places))
        weights = self.weights or (1.0,) * self.versions
        prior = [math.log(math.fsum(weights[version] for version in group)) for group in groups]
        posterior = _posterior(logs, prior)
        ranked = sorted(zip(posterior, groups, strict=True), key=lambda pair: (-pair[0], pair[1]))
        certain = ranked[0][0] >= self.confidence
        candidates = tuple(Candidate(group, probability) for probability, group in ranked)
        if certain:
            return Assessment(candidates, certain, ())
        change = max(range(len(posterior)), key=lambda place: posterior[place]) + 1
        number = {version: place for place, version in enumerate(places)}
        running = [number[version] for version in active if version in number]
        if count + len(running) == 1 and self.outcomes is not None:
            return Assessment(candidates, certain, (places[self._most_informative(numbered, posterior, prior)],))
        error = self.error(numbered, change) if count + len(running) > 1 else 0.0
        done = [len(numbered.get(place, ())) for place in range(len(places))]
        for place in running:
            done[place] += 1
        chosen = _places(posterior, running, count, error)
        following = _with_ends(chosen, done, change)
        return Assessment(candidates, certain, tuple(places[place] for place in following))

    def _most_informative(
        self, measured: Mapping[int, Sequence[float]], posterior: Sequence[float], prior: Sequence[float]
    ) -> int:
        """Return the place after whose measurement the posterior has the smallest expected entropy.

        Both levels are known by their measurements only: a measurement of an end may be worth more than one of a
        place in the middle of the posterior.
        """
        assert self.outcomes is not None
        before = [0.0, *accumulate(posterior)]
        last = len(posterior)
        middles = [min(range(last + 1), key=lambda p: (abs(before[p] - at), p)) for at in _QUANTILES]
        entropies: dict[int, float] = {}
        for place in dict.fromkeys((*middles, 0, last)):
            entropies[place] = math.fsum(
                probability
                * _entropy(
                    _posterior(
                        self.likelihood({**measured, place: [*measured.get(place, ()), value]}, last + 1), prior
                    )
                )
                for value, probability in self.outcomes(measured, posterior, place)
            )
        return min(entropies, key=lambda place: entropies[place])


def _posterior(logs: Sequence[float], prior: Sequence[float]) -> list[float]:
    """Return the probability of each hypothesis."""
    both = [log + known for log, known in zip(logs, prior, strict=True)]
    top = max(both)
    masses = [math.exp(log - top) for log in both]
    whole = math.fsum(masses)
    return [mass / whole for mass in masses]


def _entropy(posterior: Sequence[float]) -> float:
    return -math.fsum(mass * math.log(mass) for mass in posterior if mass > 0)


def _places(posterior: Sequence[float], active: Sequence[int], count: int, error: float) -> list[int]:
    """Return the most informative places.

    Measuring place `p` tests whether the change is at or before `p`; a place where both are equally probable is
    the most informative one.
    """
    before = [0.0, *accumulate(posterior)]  # before[p]: probability that place p is bad
    middle = min(range(len(before)), key=lambda p: (abs(before[p] - 0.5), p))
    if count == 1 and not active:
        return [middle]
    return best_batch(posterior, active, count, error, middle if 0 < middle < len(posterior) else None)


def _with_ends(chosen: Sequence[int], done: list[int], change: int) -> Iterator[int]:
    """Yield each place, or an end in its place.

    A measurement is compared with the good and the bad level: a level measured no more often than the place is the
    less certain one, and its end is measured instead.

    Args:
        done: number of measurements of each place, with the active ones.
    """
    for place in chosen:
        levels = {0: sum(done[:change]), len(done) - 1: sum(done[change:])}
        end = min(levels, key=lambda place: levels[place])
        following = end if levels[end] <= done[place] else place
        done[following] += 1
        yield following
