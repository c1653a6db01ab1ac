"""The loop of a bisection: measure, update the posterior, choose the next version.

A version is a commit of the suite or a build of the framework. A bisection has no state of its own: its
measurements are stored runs. After any interruption, the same command continues where it stopped, and runs that
CI has stored for these versions count, too.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcflow.bisect import (
    Assessment,
    Search,
    error_of_failures,
    error_of_levels,
    failure_outcomes,
    level_outcomes,
    log_failures,
    log_levels,
    prior_probabilities,
)
from tipcflow.domain import ConfigError, InfraError, PartKey, Run, Status
from tipcflow.domain.errors import as_clause
from tipcflow.domain.numbers.units import limit
from tipcflow.domain.triggers import BISECT
from tipcflow.execute.bisection.builds import Build
from tipcflow.execute.bisection.commits import Commit
from tipcflow.execute.bisection.ends import ends_to_measure
from tipcflow.execute.bisection.measured import Measured
from tipcflow.execute.bisection.subject import Subject, earlier_values, stored_runs, version_of

if TYPE_CHECKING:
    from tipcflow.store import Store

_INFRA_TRIES = 2


@dataclass(frozen=True)
class Progress:
    """State after a measurement.

    Attributes:
        assessment: the result; None until both ends are known.
        next: index of the version that is measured next; None at the end, or while the search waits.
        others: indices of versions that may be measured at the same time.
        why: why the bisection ended without a result; '' otherwise.
        waits: whether the next version depends on measurements that have not ended.
    """

    measured: Measured
    assessment: Assessment | None
    next: int | None
    why: str = ""
    others: tuple[int, ...] = ()
    waits: bool = False

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

    @property
    def priors(self) -> tuple[float, ...]:
        """Prior probability of each version after the good one; equal if nothing is known about them."""
        return prior_probabilities([version.touches for version in self.versions[1:]])

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

    def advance(
        self, own: Sequence[tuple[int, Run]], spent_s: float, *, since: int = 0, active: Sequence[int] = ()
    ) -> Progress:
        """Return the progress after some runs; nothing is started.

        Args:
            own: (index of the version, ended run) of all runs that this bisection has started, in order.
            spent_s: duration of the bisection.
            since: number of runs before a user resumed the bisection; cancelled and broken ones of them do not
                end the bisection.
            active: indices of the versions of active runs.

        Raises:
            ConfigError, InfraError: as `run`.
        """
        recent = own[since:]
        stopped = next((run for _, run in recent if run.status is Status.CANCELLED), None)
        measured = self.known()
        measured.skipped |= self._refused(recent)
        progress = self._progress_of(measured, active)
        if stopped is not None:
            return Progress(measured, progress.assessment, None, f"run {stopped.id} was cancelled")
        if progress.next is not None and (why := self._stopped(len(own) + len(active), spent_s)):
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
                refused[place] = f"{run.status.value}: {as_clause(run.reason)}"
            broken = [*broken, place] if run.status is Status.INFRA_FAILURE else []
            if self._is_refused(broken):
                refused[place] = f"{len(broken)} runs are infra_failure: {as_clause(run.reason)}"
            elif len(broken) >= _INFRA_TRIES:
                last = f"{run.id}: {as_clause(run.reason)}"
                raise InfraError(
                    f"{len(broken)} runs in a row are infra_failure; the last one, {last}",
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

    def part(self) -> tuple[PartKey, ...]:
        """Return the step that a run executes, with those that it needs; () for all steps.

        No step of a failure, because a later one may fail; and the step with a metric is known once a run has
        measured it.
        """
        runs = [run for several in self.known().runs.values() for run in several]
        steps = (self.subject.step_in(self.store, run) for run in runs)
        return next(((step,) for step in steps if step is not None), ())

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
                measured.skipped[place] = f"{run.status.value}: {as_clause(run.reason)}" if run.status else ""
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

    def _progress_of(self, measured: Measured, active: Sequence[int]) -> Progress:
        last = len(self.versions) - 1
        for place in sorted({0, last} & measured.skipped.keys()):
            if place in measured.runs:
                raise self.subject.unknown(self.store, measured.runs[place][-1])
            key = "--bad" if place else "--good"
            raise ConfigError(
                "cannot be measured", key=key, found=str(self.versions[place]), hint=measured.skipped[place]
            )
        ends = ends_to_measure(measured, self.subject, self.versions, active)
        if ends is not None:
            first, *others = ends or (None,)
            others = others[: max(0, self.parallel - len(active) - 1)]
            return Progress(measured, None, first, others=tuple(others), waits=first is None)
        if last == 1:
            search = Search(2, lambda _, places: [0.0], confidence=self.confidence)
            return Progress(measured, search.assess(measured.values), None)
        is_failure = self.subject.is_failure
        values, noise = measured.scaled(is_failure=is_failure)
        search = Search(
            len(self.versions),
            log_failures if is_failure else lambda m, n: log_levels(m, n, noise),
            weights=(1.0, *self.priors),
            confidence=self.confidence,
            error=error_of_failures if is_failure else error_of_levels,
            outcomes=failure_outcomes
            if is_failure
            else lambda m, posterior, place: level_outcomes(m, posterior, place, noise),
        )
        count = max(1, self.parallel - len(active))
        assessment = search.assess(values, skipped=measured.skipped, count=count, active=active)
        first, *others = assessment.next or (None,)
        return Progress(measured, assessment, first, others=tuple(others))
