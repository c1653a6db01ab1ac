"""The loop of a bisection: measure, update the posterior, choose the next version.

A version is a commit of the suite or a build of the framework. A bisection has no state of its own: its
measurements are stored runs. After any interruption, the same command continues where it stopped, and runs that
CI has stored for these versions count, too.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING

from tipcflow.bisect import Assessment, Noise, Search, log_failures, log_levels
from tipcflow.domain import ConfigError, InfraError, Run, Status
from tipcflow.domain.numbers.units import limit
from tipcflow.domain.triggers import BISECT
from tipcflow.execute.bisection.builds import Build
from tipcflow.execute.bisection.commits import Commit
from tipcflow.execute.bisection.subject import Subject, earlier_values, stored_runs, version_of

if TYPE_CHECKING:
    from tipcflow.store import Store

# Measurements of each end before the search, and at most until the ends differ.
_ENDS, _MOST_ENDS = 2, 4
# Runs of the bad end of a failure: do all fail? And at most until one fails.
_FAILING, _MOST_FAILING = 3, 6
# The ends must differ by this many standard errors.
_DIFFERENT = 3.0
_INFRA_TRIES = 2
# Fewer earlier runs do not determine the noise.
_LEAST_NOISE = 5


@dataclass
class Measured:
    """What is known: index of a version -> values and runs.

    Attributes:
        skipped: index -> why the version cannot be measured.
        noise_values: the metric in other accepted runs.
    """

    values: dict[int, list[float]] = field(default_factory=dict)
    runs: dict[int, list[Run]] = field(default_factory=dict)
    skipped: dict[int, str] = field(default_factory=dict)
    noise_values: list[float] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Number of runs."""
        return sum(map(len, self.runs.values()))

    @property
    def seconds(self) -> float:
        """Duration of all runs together."""
        runs = [run for several in self.runs.values() for run in several]
        return sum(run.duration_s or 0.0 for run in runs)


@dataclass(frozen=True)
class Progress:
    """State after a measurement.

    Attributes:
        assessment: the result; None until both ends are known.
        next: index of the version that is measured next; None at the end.
        others: indices of versions that may be measured at the same time.
        why: why the bisection ended without a result; '' otherwise.
    """

    measured: Measured
    assessment: Assessment | None
    next: int | None
    why: str = ""
    others: tuple[int, ...] = ()

    @property
    def is_certain(self) -> bool:
        """Whether the version is found."""
        return self.assessment is not None and self.assessment.certain


@dataclass(frozen=True)
class Bisection:
    """A search for the version that changed a subject.

    Attributes:
        versions: commits or builds: the good one, all later ones, and the bad one last.
        execute: runs the chain with a version, to its end.
        most_runs, budget_s: limits of new runs; 0 for none.
        parallel: number of runs that may be active at the same time.
    """

    store: "Store"
    subject: Subject
    versions: tuple[Commit | Build, ...]
    execute: Callable[[Commit | Build], Run]
    confidence: float
    most_runs: int = 40
    budget_s: float = 0.0
    parallel: int = 1

    @property
    def noun(self) -> str:
        """What a version is: `commit` or `build`."""
        return self.versions[0].NOUN

    def run(self) -> Iterator[Progress]:
        """Yield the progress before each run, and the result last.

        Raises:
            ConfigError: an end cannot be measured, or the ends do not differ in the expected direction.
            InfraError: runs did not end for reasons of the cluster.
        """
        began, own = time.monotonic(), list[tuple[int, Run]]()
        while True:
            progress = self.advance(own, time.monotonic() - began)
            yield progress
            if progress.next is None:
                return
            own.append((progress.next, self.execute(self.versions[progress.next])))

    def advance(self, own: Sequence[tuple[int, Run]], spent_s: float, *, since: int = 0) -> Progress:
        """Return the progress after some runs; nothing is started.

        Args:
            own: (index of the version, ended run) of all runs that this bisection has started, in order.
            spent_s: duration of the bisection.
            since: number of runs before a user resumed the bisection; cancelled and broken ones of them do not
                end the bisection.

        Raises:
            ConfigError, InfraError: as `run`.
        """
        recent = own[since:]
        stopped = next((run for _, run in recent if run.status is Status.CANCELLED), None)
        measured = self.known()
        measured.skipped |= self._refused(recent)
        progress = self._progress_of(measured)
        if stopped is not None:
            return Progress(measured, progress.assessment, None, f"run {stopped.id} was cancelled")
        if progress.next is not None and (why := self._stopped(len(own), spent_s)):
            return Progress(measured, progress.assessment, None, why)
        return progress

    def _refused(self, own: Sequence[tuple[int, Run]]) -> dict[int, str]:
        """Return the versions that runs could not test: index -> reason.

        Raises:
            InfraError: the nodes are the cause.
        """
        refused: dict[int, str] = {}
        broken: list[int] = []
        for place, run in own:
            if run.status is Status.CONFIG_ERROR:  # of this version's files: no plan, so the run has no commit
                refused[place] = f"{run.status.value}: {run.reason}"
            broken = [*broken, place] if run.status is Status.INFRA_FAILURE else []
            if self._is_refused(broken):
                refused[place] = f"{len(broken)} runs are infra_failure: {run.reason}"
            elif len(broken) >= _INFRA_TRIES:
                raise InfraError(
                    f"{len(broken)} runs in a row are infra_failure; the last one, {run.id}: {run.reason}",
                    hint="the same command continues the bisection with the runs that are stored",
                )
        refused.pop(-1, None)
        return refused

    def _is_refused(self, broken: list[int]) -> bool:
        """Whether the nodes refuse one build, for example because it cannot be installed.

        Args:
            broken: versions of the last runs, all infra_failure. If a second version follows, the nodes are the
                cause.
        """
        is_one = len(broken) == _INFRA_TRIES and len(set(broken)) == 1
        return self.noun == Build.NOUN and is_one

    def known(self) -> Measured:
        """Return the measurements of the versions by stored runs."""
        index = {version.id: number for number, version in enumerate(self.versions)}
        builds = self.noun == Build.NOUN
        measured = Measured()
        for run in stored_runs(self.store, self.subject, index, builds=builds):
            if run.status in (None, Status.INFRA_FAILURE, Status.CANCELLED):
                continue
            place, value = index[version_of(run, builds=builds)], self.subject.measure(self.store, run)
            if value is not None:
                measured.values.setdefault(place, []).append(value)
                measured.runs.setdefault(place, []).append(run)
            elif run.trigger == BISECT:
                measured.runs.setdefault(place, []).append(run)
                measured.skipped[place] = f"{run.status.value}: {run.reason}" if run.status else ""
        for place in measured.values.keys() & measured.skipped.keys():
            del measured.skipped[place]
        own_runs = {run.id: run for several in measured.runs.values() for run in several}
        measured.noise_values = earlier_values(self.store, self.subject, own_runs)
        return measured

    def _stopped(self, done: int, spent_s: float) -> str:
        if self.most_runs and done >= self.most_runs:
            return f"the limit of {self.most_runs} runs is reached"
        if self.budget_s and spent_s >= self.budget_s:
            return f"the budget of {limit(self.budget_s)} is used up"
        return ""

    def _progress_of(self, measured: Measured) -> Progress:
        last = len(self.versions) - 1
        for place in sorted({0, last} & measured.skipped.keys()):
            if place in measured.runs:
                raise self.subject.unknown(self.store, measured.runs[place][-1])
            key = "--bad" if place else "--good"
            raise ConfigError(
                "cannot be measured", key=key, found=str(self.versions[place]), hint=measured.skipped[place]
            )
        end = self._end_to_measure(measured)
        if end is not None:
            return Progress(measured, None, end, others=self._other_ends(measured, end))
        if last == 1:
            search = Search(2, lambda _, places: [0.0], confidence=self.confidence)
            return Progress(measured, search.assess(measured.values), None)
        values, noise = self._scaled(measured)
        likelihood = log_failures if self.subject.is_failure else lambda m, n: log_levels(m, n, noise)
        search = Search(len(self.versions), likelihood, confidence=self.confidence)
        assessment = search.assess(values, skipped=measured.skipped, count=self.parallel)
        first, *others = assessment.next or (None,)
        return Progress(measured, assessment, first, others=tuple(dict.fromkeys(others)))

    def _other_ends(self, measured: Measured, end: int) -> tuple[int, ...]:
        """Return further measurements of the ends that are needed whatever `end` measures."""
        counts = {place: len(measured.values.get(place, ())) for place in (0, len(self.versions) - 1)}
        counts[end] += 1
        fewest = _FAILING if self.subject.is_failure else _ENDS
        needed = [place for place in sorted(counts, reverse=True) for _ in range(counts[place], fewest)]
        return tuple(needed[: self.parallel - 1])

    def _end_to_measure(self, measured: Measured) -> int | None:
        """Return the end to be measured next; None if both ends are known and differ.

        Raises:
            ConfigError: the good end is as bad as the bad one.
        """
        last = len(self.versions) - 1
        good, bad = (measured.values.get(end, []) for end in (0, last))
        if self.subject.is_failure:
            return self._failing_end(good, bad)
        for end, values in ((last, bad), (0, good)):
            if len(values) < _ENDS:
                return end
        scaled, noise = self._scaled(measured)
        low, high = scaled[0], scaled[last]
        worse = fmean(high) - fmean(low) if self.subject.better == "lower" else fmean(low) - fmean(high)
        spread = _pooled(low, high, noise)
        error = spread * math.sqrt(1 / len(low) + 1 / len(high))
        if worse > 0 and worse >= _DIFFERENT * error:
            return None
        fewest = min((0, last), key=lambda end: len(measured.values[end]))
        if len(measured.values[fewest]) < _MOST_ENDS:
            return fewest
        raise ConfigError(
            f"{self.subject.name} of the two ends does not differ: {_amount(good)} at {self.versions[0].short}, "
            f"{_amount(bad)} at {self.versions[-1].short}",
            key="--good, --bad",
            found=f"{len(good)} and {len(bad)} runs",
            expected="a worse value at --bad",
            hint="`tipcflow history` shows the metric's runs; the change may depend on nodes or on something else",
        )

    def _failing_end(self, good: list[float], bad: list[float]) -> int | None:
        if any(good):
            raise ConfigError(
                f"the chain fails at this {self.noun}, too",
                key="--good",
                found=str(self.versions[0]),
                expected="a pass",
            )
        if not any(bad) and len(bad) >= _MOST_FAILING:
            raise ConfigError(
                f"the chain did not fail in {len(bad)} runs", key="--bad", found=str(self.versions[-1])
            )
        if not any(bad) or len(bad) < _FAILING:
            return len(self.versions) - 1
        return None if len(good) >= _ENDS else 0

    def _scaled(self, measured: Measured) -> tuple[Mapping[int, list[float]], Noise]:
        """Return the values and their noise; logarithms for positive metrics, whose noise is relative."""
        values = measured.values
        every = [value for several in values.values() for value in several] + measured.noise_values
        if not self.subject.is_failure and min(every) > 0:
            scaled = {place: [math.log(value) for value in several] for place, several in values.items()}
            earlier = [math.log(value) for value in measured.noise_values]
        else:
            scaled, earlier = values, measured.noise_values
        if len(earlier) < _LEAST_NOISE:
            return scaled, Noise()
        # Of differences between successive runs: an earlier change of the level is not noise.
        steps = [abs(after - before) for before, after in pairwise(earlier)]
        return scaled, Noise(sd=median(steps) / 0.9539, runs=len(earlier))


def _pooled(low: list[float], high: list[float], noise: Noise) -> float:
    """Return the standard deviation of a run, from both ends and earlier runs."""
    squares = sum(stdev(values) ** 2 * (len(values) - 1) for values in (low, high))
    degrees = len(low) + len(high) - 2
    return math.sqrt((squares + noise.degrees * noise.sd**2) / (degrees + noise.degrees))


def _amount(values: list[float]) -> str:
    return f"{median(values):.6g}" if values else "nothing"
