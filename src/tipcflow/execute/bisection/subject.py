"""What a bisection measures: a metric of a chain, or whether the chain fails."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcflow.domain import ConfigError, LegKey, MetricKey, PartKey, Run, Status
from tipcflow.domain.keys import plain_metric
from tipcflow.domain.numbers.metrics import metric
from tipcflow.domain.numbers.units import first_names
from tipcflow.domain.run.names import FrameworkVersion, StepId
from tipcflow.domain.run_documents import IncomparableDocument
from tipcflow.domain.triggers import BISECT, CONFIRM
from tipcflow.execute.chain.measured import ChainMetrics

if TYPE_CHECKING:
    from tipcflow.store import Store

# The subject of a bisection of a failure, in the place of a metric's name.
FAILURE = "failure"
_WORKS = frozenset({Status.PASS, Status.IMPROVEMENT, Status.REGRESSION, Status.UNCONFIRMED})
# Stored runs of the chain that are considered.
_STORED = 2000
_LISTED = 12
# Metrics of a chain in an error.
_METRICS = 40
_KEY = "METRIC"


@dataclass(frozen=True)
class Subject:
    """The measured quantity.

    Attributes:
        chain, mode, compat: of the runs.
        name: a metric's name, or `failure`.
        step, leg: id of a step (or its last part) and of a leg, '' for any: needed if several have the metric.
    """

    chain: str
    mode: str
    compat: str
    name: str
    step: str = ""
    leg: str = ""

    @property
    def is_failure(self) -> bool:
        """Whether runs are measured by their status."""
        return self.name == FAILURE

    @property
    def better(self) -> str:
        """`lower` or `higher`."""
        return "lower" if self.is_failure else metric(plain_metric(self.name)).better

    def check(self, stored: ChainMetrics) -> None:
        """Check the metric before anything runs.

        Args:
            stored: the metrics of the chain's stored runs.

        Raises:
            ConfigError: neither direction of the metric is better, or no stored run measured it.
        """
        names = sorted({key.metric for key in stored.keys if key.rank is None})
        expected = (
            f"{FAILURE}, or one of {first_names(names, _METRICS)}"
            if names
            else f"{FAILURE}, or a metric with a direction, such as batch_cost, ips or loss"
        )
        if self.better == "none":
            raise ConfigError(
                "neither a lower nor a higher value of this metric is better",
                key=_KEY,
                found=self.name,
                expected=expected,
            )
        if self.is_failure or not stored.runs or any(map(self._matches, stored.keys)):
            return
        places = [f"{key.step} {key.leg}".strip() for key in sorted(stored.keys) if key.metric == self.name]
        if places:
            expected = f"--step and --leg that name one of {first_names(places, _LISTED)}"
        raise ConfigError(stored.sentence, key=_KEY, found=self.title, expected=expected)

    @property
    def title(self) -> str:
        """The metric, with the given step and leg."""
        return " ".join(filter(None, (self.name, self.step, self.leg)))

    def measure(self, store: "Store", run: Run) -> float | None:
        """Return the value of an ended run, 1 or 0 for a failure; None if the run measured nothing.

        Raises:
            ConfigError: several steps or legs have the metric.
        """
        if self.is_failure:
            return 1.0 if run.status is Status.FAILED else 0.0 if run.status in _WORKS else None
        numbers = store.history.past_run(run.id).medians
        keys = self._keys(numbers)
        if len(keys) > 1:
            raise ConfigError(
                f"{len(keys)} steps or legs have this metric",
                key=_KEY,
                found=self.name,
                expected="--step and --leg that name one of "
                + first_names([f"{key.step} {key.leg}".strip() for key in keys], _LISTED),
            )
        value = numbers[keys[0]] if keys else math.nan
        return value if math.isfinite(value) else None

    def step_in(self, store: "Store", run: Run) -> PartKey | None:
        """Return the step that measured the metric in a run; None for a failure, and if no step did."""
        keys = [] if self.is_failure else self._keys(store.history.past_run(run.id).medians)
        return LegKey(keys[0].step).part if keys else None

    def _keys(self, numbers: Iterable[MetricKey]) -> list[MetricKey]:
        return [key for key in numbers if self._matches(key)]

    def _matches(self, key: MetricKey) -> bool:
        return self.matches(key.step, key.leg, key.metric)

    def matches(self, step: str, leg: str, name: str) -> bool:
        """Return whether a metric of a step and leg is the measured one."""
        same_step = not self.step or step == self.step or (bool(step) and StepId.parse(step).name == self.step)
        return name == self.name and same_step and self.leg in ("", leg)

    def unknown(self, store: "Store", run: Run) -> ConfigError:
        """Return the error for a run without the metric; names those that the run has."""
        names = sorted({key.metric for key in store.history.past_run(run.id).medians})
        return ConfigError(
            f"run {run.id} ({run.status.value if run.status else 'running'}) did not measure it",
            key=_KEY,
            found=self.title,
            expected=f"{FAILURE}, or one of {first_names(names, _LISTED)}"
            if names
            else "a run that measures something",
            hint="" if names else run.reason,
        )


def version_of(run: Run, *, builds: bool) -> str:
    """Return the version that a run tested: its framework's version without the name, or its suite's commit."""
    return FrameworkVersion.parse(run.framework).version if builds else run.suite_commit


def stored_runs(store: "Store", subject: Subject, versions: Collection[str], *, builds: bool = False) -> list[Run]:
    """Return the ended runs of the chain at these versions that may count, oldest first.

    They are of the environment class of the newest run of a bisection, or else of the newest run: numbers of other
    hardware are not comparable. For the same reason all have the same framework, or the same suite if the versions
    are framework builds.
    """
    ended = [
        run
        for run in store.runs.newest(chain=subject.chain, limit=_STORED)
        if version_of(run, builds=builds) in versions
        and run.status is not None
        and (run.mode, run.compat) == (subject.mode, subject.compat)
        and run.trigger != CONFIRM
        and not _is_diagnosis(store, run)
    ]
    known = [run for run in ended if run.environment]
    own = next((run for run in known if run.trigger == BISECT), known[0] if known else None)
    # A run that ended before its nodes were inspected has no class.
    classes = {"", own.environment} if own else {""}
    same = [run for run in reversed(ended) if run.environment in classes]
    if own is None:
        return same
    if builds:
        return [run for run in same if run.suite_sha256 == own.suite_sha256]
    return [run for run in same if not run.environment or run.framework == own.framework]


def _is_diagnosis(store: "Store", run: Run) -> bool:
    incomparable = store.documents.get(run.id, IncomparableDocument)
    return incomparable is not None and run.trigger != BISECT


def earlier_values(store: "Store", subject: Subject, runs: Mapping[str, Run], *, limit: int = 20) -> list[float]:
    """Return the metric in accepted runs of the chain outside the bisection, to estimate its noise."""
    sample = next((run for run in reversed(list(runs.values())) if run.environment), None)
    if subject.is_failure or sample is None:
        return []
    ids = store.history.accepted(
        subject.chain, subject.mode, sample.environment, compat=subject.compat, limit=limit + len(runs)
    )
    others = [store.runs.get(run) for run in ids if run not in runs][:limit]
    values = [subject.measure(store, run) for run in others]
    return [value for value in reversed(values) if value is not None]
