"""Inputs of checks other than the run's own facts."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tipcflow.check.detect.series import Observed
from tipcflow.config.goldens import Goldens
from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.config.suite import Prints
from tipcflow.domain import LOOK_BACK, Declared, Expectation, Facts, LegKey, MetricKey, PastRun, Run
from tipcflow.domain.quarantine.entry import Quarantine
from tipcflow.domain.run.kept_files import LostFilesDocument
from tipcflow.domain.run.names import FrameworkVersion


@dataclass(frozen=True)
class Pin:
    """A value that a user pinned: from which run, who and why."""

    value: float
    run: str
    who: str
    why: str


@dataclass(frozen=True)
class Confirmation:
    """The measurements of this run's confirm run.

    Attributes:
        run: its id.
        medians: key -> median, of the steps and legs that succeeded; with several confirm runs of the first one
            that measured it.
        missing: why the last confirm run lacks a metric.
        failed: the reason if the confirm run is `failed`, '' if it is not or only exceeded its budget.
        more: key -> medians of later confirm runs, in their order.
        runs: number of confirm runs.
        last: why no further confirm run follows; '' if one may.
    """

    run: str
    medians: Mapping[MetricKey, float]
    missing: str = ""
    failed: str = ""
    more: Mapping[MetricKey, tuple[float, ...]] = field(default_factory=dict)
    runs: int = 1
    last: str = ""

    @property
    def values(self) -> dict[MetricKey, tuple[float, ...]]:
        """key -> medians of all confirm runs, in their order."""
        return {key: (value, *self.more.get(key, ())) for key, value in self.medians.items()}


@dataclass(frozen=True)
class BaseRuns:
    """The earlier runs of a change's merge base, which it is compared with if there are enough of them.

    Attributes:
        commit: the merge base.
        runs: number of accepted runs of it and of its first parents.
        newest: the newest accepted runs of the chain, with metric values only; a metric with too few values in
            the runs of the merge base is compared with these.
        is_short: whether the runs are too few for any comparison, and those of the context are the newest ones.
    """

    commit: str
    runs: int
    newest: tuple[PastRun, ...] = ()
    is_short: bool = False


@dataclass(frozen=True)
class CheckContext:
    """All inputs of checks other than the run's own facts.

    Attributes:
        history: accepted earlier runs of the same chain, mode and environment class, oldest first; for a change
            those of its merge base if they are enough, otherwise the newest.
        base: the runs of the merge base; None for a run that tests no change.
        references: the suite's targets; None if it has no file.
        pins: key -> its pinned value.
        confirmation: the result of a confirm run; None if none was requested.
        unconfirmable: why no confirm run can measure metrics that depend on the mode (accuracy, loss, memory); ''
            when one can.
        evaluable: ids, without repeats, of evaluation steps that one can do again all the same.
        goldens: the predictions stored for the chain in this mode; None if there are none.
        before: what the plan of the last of these runs declared, or of the last run of any status and environment
            if there is none of these; None without a run.
        expected: the evidence recorded when the run's plan was made.
        prints: what the suite's logs contain and what is optional in them.
        probes: node -> probe -> its times in accepted earlier runs on that node, of any chain.
        elsewhere: for a run with fewer than `min_history` runs in its environment class, the class that has most
            of the chain's accepted runs, and how many.
        quarantines: quarantines in force of the chain in this mode and environment class.
        lost_files: fetched files that are missing or changed where the run is judged; None if none is.
        lapsed: step or leg, without repeats, that too few of the searched accepted runs executed -> the last run
            before them that did.
        doubtful: accepted earlier run -> the unconfirmed runs between it and the next one that had a confirm run.
        run: the run itself, for its framework and the suite's hash; None in tests of checks that need neither.
    """

    policy: Policy = field(default_factory=lambda: Policy(name="default"))
    history: tuple[PastRun, ...] = ()
    references: References | None = None
    goldens: Goldens | None = None
    confirmation: Confirmation | None = None
    unconfirmable: str = ""
    evaluable: frozenset[str] = frozenset()
    pins: Mapping[MetricKey, Pin] = field(default_factory=dict)
    before: Declared | None = None
    expected: tuple[Expectation, ...] = ()
    prints: Prints = field(default_factory=Prints)
    elsewhere: tuple[str, int] = ("", 0)
    probes: Mapping[str, Mapping[str, tuple[float, ...]]] = field(default_factory=dict)
    quarantines: tuple[Quarantine, ...] = ()
    lost_files: LostFilesDocument | None = None
    lapsed: Mapping[LegKey, str] = field(default_factory=dict)
    doubtful: Mapping[str, tuple[PastRun, ...]] = field(default_factory=dict)
    run: Run | None = None
    base: BaseRuns | None = None

    def runs_of(self, key: MetricKey) -> tuple[PastRun, ...]:
        """The runs that a metric is compared with: `history`, unless only the newest ones have enough values."""
        if self.base is None or len(past_values(self.history, key)) >= self.policy.min_history:
            return self.history
        is_enough = len(past_values(self.base.newest, key)) >= self.policy.min_history
        return self.base.newest if is_enough else self.history

    def past(self, key: MetricKey) -> list[float]:
        """The finite values of a metric (key of `numbers_of`) in the last accepted runs, oldest first."""
        return past_values(self.runs_of(key), key)[-self.policy.history :]

    def observed(self, key: MetricKey) -> list[Observed]:
        """`past` with the values of confirm runs, and with unconfirmed runs that had one."""
        return observed_values(self.runs_of(key), key, self.doubtful)

    @property
    def searched(self) -> int:
        """Number of accepted runs that are searched for a step or leg."""
        return LOOK_BACK * self.policy.history

    def lapsed_reason(self, part: LegKey) -> str:
        """Why a step or leg that was measured before has too few earlier runs; '' for others."""
        last = self.lapsed.get(part, "")
        return (
            f"most of the last {self.searched} accepted runs left it out; last measured in {last}" if last else ""
        )

    def framework(self, facts: Facts) -> str:
        """The framework as reported by the run, or else by its nodes; '' if unknown."""
        if self.run and self.run.framework:
            return self.run.framework
        versions = {str(FrameworkVersion(node.framework, node.framework_version)) for node in facts.node_facts}
        return versions.pop() if len(versions) == 1 else ""

    @property
    def suite_sha256(self) -> str:
        """Hash of the tested content of the suite; '' if unknown."""
        return self.run.suite_sha256 if self.run else ""


def past_values(history: Iterable[PastRun], key: MetricKey) -> list[float]:
    """The finite values of a metric in earlier runs, in the order of the runs."""
    return [run.medians[key] for run in history if math.isfinite(run.medians.get(key, math.nan))]


def observed_values(
    history: Iterable[PastRun], key: MetricKey, doubtful: Mapping[str, tuple[PastRun, ...]] | None = None
) -> list[Observed]:
    """The same values with those of confirm runs.

    Args:
        doubtful: unconfirmed runs by the accepted run before them; those without a confirm value are left out.
    """
    entries = []
    for run in history:
        if not math.isfinite(value := run.medians.get(key, math.nan)):
            continue
        entries.append(_observed(value, run.confirms.get(key, ()), accepted=True))
        for other in (doubtful or {}).get(run.run, ()):
            value, again = other.medians.get(key, math.nan), other.confirms.get(key, ())
            if again and math.isfinite(value):
                entries.append(_observed(value, again, accepted=False))
    return entries


def _observed(value: float, confirms: tuple[float, ...], *, accepted: bool) -> Observed:
    return Observed(value, confirms[0] if confirms else None, accepted, confirms[1:])
