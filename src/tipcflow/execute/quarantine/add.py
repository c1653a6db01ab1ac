"""A quarantine from the red result of a run, with the failure rate of the runs until then."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcflow.config.automation.rules import QuarantineRule
from tipcflow.domain import CheckResult, ConfigError, Run, without_repeat
from tipcflow.domain.numbers.units import utc_minute
from tipcflow.domain.quarantine.entry import Quarantine
from tipcflow.domain.quarantine.signature import RED, may_be_quarantined, refusal, signature_of, size_of

if TYPE_CHECKING:
    from tipcflow.store import Store
    from tipcflow.store.queries.check_history import CheckedRun

# Newest runs of which the failure rate is measured.
_RUNS = 100
_DAY_S = 86_400.0
_LISTED = 5


@dataclass(frozen=True)
class Request:
    """A user's request.

    Attributes:
        check: name of the check; step, leg, metric: '' if the check has one red result.
        owner: who fixes the failure.
        expires_at: seconds since the epoch; None for half of the policy's maximum.
    """

    check: str
    owner: str
    who: str
    why: str
    step: str = ""
    leg: str = ""
    metric: str = ""
    expires_at: float | None = None


def find_failure(store: "Store", chain: str, check: str, run: str = "") -> Run:
    """Return the run that a quarantine is made from: the given one, or the newest of the chain with a red result.

    Raises:
        ConfigError: the run is of another chain or has no verdict, or no run has such a result.
    """
    if run:
        named = store.runs.find(run)
        if named.chain != chain:
            raise ConfigError("the run is of another chain", key="--run", found=named.chain, expected=chain)
        if named.status is None:
            raise ConfigError(f"run {named.id} is running", key="--run", expected="a finished run")
        return named
    newest = store.runs.newest(chain=chain, limit=_RUNS)
    for candidate in newest:
        if any(result.check == check and result.status in RED for result in store.checks.results(candidate.id)):
            return candidate
    known = {result.check for candidate in newest for result in store.checks.results(candidate.id)}
    if check not in known:
        raise _unknown_check(check, known)
    raise ConfigError(f"no failure of {check} in the last {len(newest)} runs of {chain}", key="CHECK", found=check)


def quarantine_failure(store: "Store", run: Run, request: Request, rule: QuarantineRule) -> Quarantine:
    """Store a quarantine of a failure of a run.

    Raises:
        ConfigError: as `draft_quarantine`, or the failure is in quarantine, or there are too many new quarantines.
    """
    return store.quarantines.add(draft_quarantine(store, run, request, rule), per_day=rule.per_day)


def draft_quarantine(store: "Store", run: Run, request: Request, rule: QuarantineRule) -> Quarantine:
    """Return a quarantine of a failure of a run, without storing it.

    Raises:
        ConfigError: the run has no such failure, it may not be quarantined, or the end is in the past or too late.
    """
    now = store.now()
    expires_at = _end(request, rule, now)
    result = _failure(store.checks.results(run.id), run, request)
    if why := refusal(result):
        raise ConfigError(f"{result.check} cannot be quarantined: {why}", key="CHECK", found=result.reason[:200])
    checked = store.check_history.of_line(run.chain, run.mode, run.environment, result.check)
    draft = Quarantine(
        chain=run.chain,
        mode=run.mode,
        environment=run.environment,
        check=result.check,
        step=without_repeat(result.step),
        leg=result.leg,
        metric=result.metric,
        signature=signature_of(result),
        owner=request.owner,
        who=request.who,
        why=request.why,
        run=run.id,
        failed=1,
        judged=1,
        created_at=now,
        expires_at=expires_at,
    )
    return _with_evidence(draft, result, checked)


def _end(request: Request, rule: QuarantineRule, now: float) -> float:
    if request.expires_at is None:
        return now + rule.max_days / 2 * _DAY_S
    ahead_s, end = request.expires_at - now, utc_minute(request.expires_at)
    if ahead_s <= 0:
        raise ConfigError("the end is in the past", key="--until", found=end, expected="a later time")
    if ahead_s > rule.max_days * _DAY_S:
        expected = f"at most {rule.max_days:g} days by the policy (quarantine.max_days)"
        raise ConfigError("the end is too late", key="--until", found=end, expected=expected)
    return request.expires_at


def _failure(results: Sequence[CheckResult], run: Run, request: Request) -> CheckResult:
    """Return the one red result that the request names."""
    own = [result for result in results if result.check == request.check]
    if not own:
        raise _unknown_check(request.check, {result.check for result in results}, run=run.id)
    wanted = ((request.step, "step"), (request.leg, "leg"), (request.metric, "metric"))
    named = [
        result
        for result in own
        if all(not value or value in (getattr(result, name), _plain(result, name)) for value, name in wanted)
    ]
    red = [result for result in named if result.status in RED]
    scopes = {(without_repeat(result.step), result.leg, result.metric, signature_of(result)) for result in red}
    if len(scopes) == 1:
        return red[0]
    if red:
        listed = sorted(
            f"--step {result.step} --leg {result.leg or repr('')} --metric {result.metric}" for result in red
        )
        raise ConfigError(
            f"run {run.id} has {len(scopes)} different failures of {request.check}",
            key="CHECK",
            expected="--step, --leg or --metric of one of them",
            hint="; ".join(listed[:_LISTED]),
        )
    states = (
        ", ".join(sorted({result.status.value for result in named})) or "no result of that step, leg or metric"
    )
    raise ConfigError(
        f"run {run.id} has no failure of {request.check}", key="CHECK", found=states, expected="a red result"
    )


def _plain(result: CheckResult, name: str) -> str:
    return without_repeat(result.step) if name == "step" else ""


def _with_evidence(draft: Quarantine, result: CheckResult, checked: Sequence["CheckedRun"]) -> Quarantine:
    """Add the runs that failed alike, of the newest runs that the check gave a definite result."""
    failed: list[str] = []
    sizes = [size_of(result)]
    judged = 0
    for each in checked[:_RUNS]:
        own = [other for other in each.results if draft.is_about(other)]
        alike = [other for other in own if draft.covers(other)]
        judged += any(other.status in RED or other.status.value in ("pass", "improvement") for other in own)
        if alike:
            failed.append(each.run.id)
            sizes += [size_of(other) for other in alike]
    if draft.run not in failed:  # a change's run, or one older than those
        failed.append(draft.run)
        judged += 1
    known = [size for size in sizes if size is not None]
    return draft.model_copy(
        update={
            "evidence": tuple(failed),
            "failed": len(failed),
            "judged": max(judged, len(failed)),
            "largest": max(known, default=None),
        }
    )


def _unknown_check(check: str, known: set[str], run: str = "") -> ConfigError:
    where = f"run {run} has no result of this check" if run else "no run of the chain has a result of this check"
    listed = ", ".join(sorted(name for name in known if may_be_quarantined(name))) or "a chain with check results"
    return ConfigError(where, key="CHECK", found=check, expected=f"one of {listed}")
