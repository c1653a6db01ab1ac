"""Re-evaluation of a stored run with its own or another policy; nothing is stored."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tipcflow.check import CheckContext, Confirmation, verdict
from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.domain import CheckResult, Facts, Run, Status
from tipcflow.execute.verdict.check_context import build_check_context
from tipcflow.execute.verdict.confirm import TRIGGER
from tipcflow.execute.verdict.judged_times import judge_as_of, judged_times
from tipcflow.execute.verdict.run_data import load_run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tipcflow.store import Store

_Key = tuple[str, str, str, str]
# The run has ended: a change that this policy suspects was not measured again.
_NONE = Confirmation("", {}, "no confirm run was made")
_NO_FURTHER = "no further confirm run was made"
# Checks of the certification itself, not of the run.
_NOT_BY_CHECKS = frozenset({Status.CANCELLED, Status.INFRA_FAILURE, Status.CONFIG_ERROR})


@dataclass(frozen=True)
class Change:
    """A check with a different result. A result is None if the check had, or has, none."""

    before: CheckResult | None
    now: CheckResult | None

    @property
    def about(self) -> CheckResult:
        """Return either result, for their common fields: check, step, leg and metric."""
        result = self.now or self.before
        assert result is not None
        return result


@dataclass(frozen=True)
class Rejudged:
    """The new verdict of a run; `run` has the stored one."""

    run: Run
    policy: str
    status: Status
    reason: str
    changes: tuple[Change, ...]


def rejudge(store: "Store", run: Run, *, rules: Policy, references: References) -> Rejudged:
    """Judge a run that has ended, against the runs and decisions of its first judgement.

    A status that does not come from the checks (stopped by a user, a node could not be cleaned) stays.
    """
    data = load_run(store, run, raw=True)
    facts, before = data.facts, data.checks
    if run.trigger == TRIGGER:
        rules = rules.showing_numbers()  # as when it was judged: the confirmed run evaluates them

    def context_at(at: float | None) -> CheckContext:
        """Return the context as of a time, of the run's end without one; no further confirm run follows."""
        as_of = run.ended_at if at is None else at
        context = build_check_context(store, run, rules=rules, references=references, as_of=as_of)
        confirmation = replace(context.confirmation, last=_NO_FURTHER) if context.confirmation else _NONE
        return replace(context, confirmation=confirmation)

    _, now = judge_as_of(facts, judged_times(store, run), context_at)
    status, reason = verdict(facts, now)
    if run.status in _NOT_BY_CHECKS and not _by_checks(facts, before, run.status):
        status, reason = run.status, run.reason
    return Rejudged(run, rules.name, status, reason, _changes(before, now))


def _by_checks(facts: Facts, results: "Iterable[CheckResult]", status: Status) -> bool:
    return verdict(facts, results)[0] is status


def _changes(before: "Iterable[CheckResult]", now: "Iterable[CheckResult]") -> tuple[Change, ...]:
    """Return the checks whose status or gating differs; those with the worst new status first."""
    old, new = ({_key(result): result for result in results} for results in (before, now))
    pairs = [Change(old.get(key), new.get(key)) for key in {**new, **old}]
    changes = [change for change in pairs if _outcome(change.before) != _outcome(change.now)]
    return tuple(sorted(changes, key=lambda change: -max(change.about.status.severity, 0)))


def _key(result: CheckResult) -> _Key:
    return (result.check, result.step, result.leg, result.metric)


def _outcome(result: CheckResult | None) -> tuple[Status, bool] | None:
    return None if result is None else (result.status, result.gating)
