"""Which regressions and failures tipcflow bisects: those that the policies of their runs include."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcflow.config.automation.rules import BisectRule
from tipcflow.config.cluster import load_cluster
from tipcflow.domain import Run, Status, TipcflowError
from tipcflow.domain.alert.entry import OPEN_STATES, Alert, Moved
from tipcflow.domain.keys import plain_metric
from tipcflow.domain.numbers.metrics import metric
from tipcflow.domain.run.bisection import BisectionDocument
from tipcflow.domain.run.names import ModeName
from tipcflow.execute.bisection.subject import FAILURE
from tipcflow.execute.request import RequestDocument
from tipcflow.execute.verdict.judge import load_policy

if TYPE_CHECKING:
    from tipcflow.store import Store

_DAY_S = 86_400.0
# Older regressions and failures are left to users.
NEW_S = 14 * _DAY_S
# Characters of a commit in messages.
_SHORT = 8


@dataclass(frozen=True)
class Wanted:
    """A bisection that a policy includes.

    Attributes:
        run: the first bad run, with which the result is stored.
        title: the subject, for messages.
        conf: params of the DAG `bisect`.
    """

    run: str
    title: str
    conf: Mapping[str, Any]
    rule: BisectRule


@dataclass(frozen=True)
class _Problem:
    """A regression or failure: its first bad run, the last good run, and the metric; None for a failure."""

    bad: Run
    good: Run | None
    moved: Moved | None
    title: str


def wanted_bisections(store: "Store", config_dir: Path, now: float, report: Callable[[str], None]) -> list[Wanted]:
    """Return the bisections without a result, oldest problem first.

    Alerts with one cause have one bisection: that of the first alert. A problem is included if the suite commit is
    the only known change since the last good run: the framework is the same, and both runs are of a commit.

    Args:
        now: seconds since the epoch.
        report: receives the reason for each regression and failure that a policy includes and tipcflow cannot
            bisect.
    """
    problems = [*_regressions(store, now), *_failures(store, now)]
    wanted = []
    for problem in sorted(problems, key=lambda each: (each.bad.created_at, each.bad.id)):
        try:
            made = _wanted(store, problem, config_dir)
        except TipcflowError as error:
            report(f"{problem.title} is not bisected: {error.message}")
            continue
        if isinstance(made, str):
            report(f"{problem.title} is not bisected: {made}")
        elif made is not None:
            wanted.append(made)
    return wanted


def _regressions(store: "Store", now: float) -> Iterator[_Problem]:
    """Yield the open alerts whose level has not returned, the first one of each cause."""
    present = [alert for alert in store.tracked_alerts.all(states=OPEN_STATES) if alert.is_present]
    first: dict[int, Alert] = {}
    for alert in sorted(present, key=lambda each: each.number):
        first.setdefault(alert.group, alert)
    alerts = [alert for alert in first.values() if alert.first_at >= now - NEW_S]
    runs = store.runs.known([run for alert in alerts for run in (alert.first, alert.last_good)])
    for alert in alerts:
        moved = next(
            (each for each in alert.metrics if metric(plain_metric(each.metric)).better != "none"),
            alert.metrics[0],
        )
        title = f"alert {alert.number} of {alert.chain} in {alert.mode}"
        yield _Problem(runs[alert.first], runs.get(alert.last_good), moved, title)


def _failures(store: "Store", now: float) -> Iterator[_Problem]:
    """Yield the chains whose newest run failed, and that passed before."""
    lines = [line for line in store.states.lines() if line.status is Status.FAILED]
    for red in store.states.reds([line for line in lines if line.created_at >= now - NEW_S]):
        if red.first.status is Status.FAILED and red.first.created_at >= now - NEW_S:
            title = f"failure of {red.run.chain} in {red.run.mode} since run {red.first.id}"
            yield _Problem(red.first, red.good, None, title)


def _wanted(store: "Store", problem: _Problem, config_dir: Path) -> Wanted | str | None:
    """Return the bisection, why there is none, or None if no policy includes it or it has a result."""
    bad, good, moved = problem.bad, problem.good, problem.moved
    documents = store.documents.several(bad.id, (RequestDocument, BisectionDocument))
    kept = documents.get(RequestDocument)
    if kept is None or documents.get(BisectionDocument) is not None:
        return None
    request = kept.root
    rule = load_policy(request.policy, config_dir).for_model(bad.suite, bad.model).bisect
    if rule.start == "never" or (moved is None and rule.start != "all"):
        return None
    if good is None:
        return "no earlier run passed"
    if why := _why_not(good, bad):
        return why
    load_cluster(bad.cluster, config_dir)
    plan = store.plans.get(bad.id)
    mode = ModeName.parse(bad.mode)
    given = {
        "suite": bad.suite,
        "params_file": plan.params_file,
        "mode": mode.mode,
        "case": mode.case,
        "cluster": bad.cluster,
        "policy": request.policy,
        "seed": request.seed,
        "framework": request.framework,
        "framework_wheel": request.framework_wheel,
        "framework_sha256": request.framework_sha256,
        "good": good.suite_commit,
        "bad": bad.suite_commit,
        "metric": moved.metric if moved else FAILURE,
        "step": moved.step if moved else "",
        "leg": moved.leg if moved else "",
        "max_runs": rule.max_runs,
        "budget_minutes": rule.budget_minutes,
        "parallel": rule.parallel,
        "run": bad.id,
    }
    conf = {name: value for name, value in given.items() if value not in (None, "")}
    return Wanted(run=bad.id, title=problem.title, conf=conf, rule=rule)


def _why_not(good: Run, bad: Run) -> str:
    """Return why a search over commits cannot find the change; '' if it can."""
    for run in (good, bad):
        if not run.suite_commit or "+" in run.suite_commit:
            return f"run {run.id} is not of a commit"
    if good.suite_commit == bad.suite_commit:
        return f"the last good run has the same suite commit, {good.suite_commit[:_SHORT]}"
    if good.framework != bad.framework:
        return f"the framework changed, too: {good.framework or 'unknown'} to {bad.framework or 'unknown'}"
    return ""
