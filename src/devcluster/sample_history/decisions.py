"""What users and tipcflow decided in the sample history: alerts, a quarantine, A/B comparisons, pull requests."""

from devcluster.sample_history.chains import V100, SampleChain
from devcluster.sample_history.runs import CHANGE, WEEKLY
from devcluster.sample_history.story import PROBLEMS, SPEED_CHECK, Problem
from tipcflow.config.automation.rules import QuarantineRule
from tipcflow.domain import CheckResult, Run, Status
from tipcflow.domain.alert.entry import TIPCFLOW, Alert, AlertEvent, AlertState, EventKind, Moved
from tipcflow.domain.run_documents import AbDocument
from tipcflow.execute.quarantine.add import Request, quarantine_failure
from tipcflow.store import Store
from tipcflow.store.github.attempts import PullAttempt, StartedChain

# Seconds from the start of a run to what follows from its end.
_LATER = 1500.0
_MOST = 200
_REPOSITORY = "generated/models"
# Models whose open alert a user works on -> the owner and the user's comment.
_OWNERS = {
    "T5_small": ("nlp", "only with the fused attention; bisection is running"),
    "MaskRCNN": ("detection", "the data loader of the new build has one thread less"),
}
_QUARANTINED = "PSENet"
COMPARED = ("ResNet50", "MobileNetV3_small")


def add_decisions(store: Store, chains: tuple[SampleChain, ...]) -> None:
    """Store the decisions about the generated runs of these chains."""
    for problem in PROBLEMS:
        if problem.status is Status.REGRESSION:
            _alerts(store, problem, chains)
    _quarantine(store, chains)
    for chain in chains:
        if chain.model in COMPARED:
            _comparison(store, chain)
    _pulls(store, chains)


def _alerts(store: Store, problem: Problem, chains: tuple[SampleChain, ...]) -> None:
    """Store an alert for each chain of a problem, all in one group."""
    group = 0
    for chain in chains:
        if chain.model not in problem.models:
            continue
        weekly = _weekly(store, chain)
        bad = [run for run in weekly if run.status is Status.REGRESSION and _checked(store, run, problem)]
        if not bad:
            continue
        alert = _open(store, problem, weekly, bad, group)
        group = group or alert.number
        after = next((run for run in weekly if run.created_at > bad[-1].created_at), None)
        if after is not None:
            _end(store, alert, problem, after)
        elif chain.model in _OWNERS:
            _work(store, alert, bad[-1], *_OWNERS[chain.model])


def _weekly(store: Store, chain: SampleChain) -> list[Run]:
    runs = store.runs.newest(chain=chain.name, limit=_MOST)
    return [
        run for run in reversed(runs) if run.cluster == V100 and run.mode == WEEKLY and run.trigger == "weekly"
    ]


def _checked(store: Store, run: Run, problem: Problem) -> CheckResult | None:
    """Return the result that reports the problem in a run; None if the run does not."""
    results = store.checks.results(run.id)
    return next((each for each in results if each.check == problem.check and each.status is problem.status), None)


def _open(store: Store, problem: Problem, weekly: list[Run], bad: list[Run], group: int) -> Alert:
    first, newest = bad[0], bad[-1]
    good = [run for run in weekly if run.status is Status.PASS and run.created_at < first.created_at]
    checked = _checked(store, newest, problem)
    assert checked is not None
    moved = Moved(
        check=checked.check, step=checked.step, metric=checked.metric, ratio=problem.factor, first=first.id,
        reason=checked.reason,
    )  # fmt: skip
    suspects = [f"framework {good[-1].framework} -> {first.framework}"] if good else []
    alert = Alert(
        group=group,
        chain=first.chain,
        suite=first.suite,
        mode=first.mode,
        environment=first.environment,
        state_at=first.created_at + _LATER,
        first=first.id,
        first_at=first.created_at,
        last_good=good[-1].id if good else "",
        suspects=tuple(suspects),
        metrics=(moved,),
        newest=newest.id,
        newest_at=newest.created_at,
        runs=len(bad),
    )
    opened = store.tracked_alerts.open(alert, checked.reason, at=first.created_at + _LATER)
    for run in bad[1:]:
        _change(store, opened, run.created_at + _LATER, TIPCFLOW, EventKind.SEEN, checked.reason, run.id)
    return opened


def _end(store: Store, alert: Alert, problem: Problem, after: Run) -> None:
    at = after.created_at + _LATER
    fields = {"gone": after.id, "gone_at": after.created_at, "state_at": at}
    if problem.accepted:
        text = "baseline accepted: faster kernels need more memory"
        _change(store, alert, at, "ann", EventKind.GONE, text, after.id, state=AlertState.EXPECTED, **fields)
    else:
        text = "the level returned"
        _change(store, alert, at, TIPCFLOW, EventKind.GONE, text, after.id, state=AlertState.FIXED, **fields)


def _work(store: Store, alert: Alert, newest: Run, owner: str, text: str) -> None:
    at, state = newest.created_at + 3 * _LATER, AlertState.ACKNOWLEDGED
    _change(store, alert, at, "ann", EventKind.STATE, state.value, state=state, state_at=at)
    _change(store, alert, at, "ann", EventKind.OWNER, owner, owner=owner)
    _change(store, alert, at + 600, "ann", EventKind.COMMENT, text)


def _change(
    store: Store, alert: Alert, at: float, who: str, kind: EventKind, text: str, run: str = "", **fields: object
) -> None:
    event = AlertEvent(alert=alert.number, at=at, who=who, kind=kind, run=run, text=text)
    store.tracked_alerts.change(event, **fields)


def _quarantine(store: Store, chains: tuple[SampleChain, ...]) -> None:
    """Quarantine the regression of a chain that is known and accepted for a while, from its newest run."""
    chain = next((chain for chain in chains if chain.model == _QUARANTINED), None)
    failed = [] if chain is None else store.runs.newest(chain=chain.name, status=Status.REGRESSION, limit=_MOST)
    failed = [run for run in failed if run.mode == WEEKLY]
    if failed:
        why = "fixed in the next release of the data loader; issue 4711"
        request = Request(check=SPEED_CHECK, owner="ocr", who="ann", why=why)
        quarantine_failure(store, failed[0], request, QuarantineRule())


def _comparison(store: Store, chain: SampleChain) -> None:
    """Store the result of an A/B comparison with the newest run of the chain that a comparison made."""
    run = next((run for run in store.runs.newest(chain=chain.name, limit=_MOST) if run.trigger == "ab"), None)
    if run is None:
        return
    slower = chain.model == COMPARED[0]
    ratio, low, high = (1.041, 1.033, 1.049) if slower else (1.002, 0.996, 1.008)
    metric = {"step": "train", "leg": "", "metric": "batch_cost", "ratio": ratio, "low": low, "high": high}
    outcome = "worse" if slower else "same"
    verdict = "B is slower: batch_cost +4.1 % (+3.3 to +4.9)" if slower else "B is the same within 1 %"
    result = {
        "a": "paddlepaddle-gpu 3.3.0", "b": "paddlepaddle-gpu 3.4.0", "verdict": verdict, "pairs": [{}] * 6,
        "status": (Status.REGRESSION if slower else Status.PASS).value,
        "metrics": [{**metric, "outcome": outcome}],
    }  # fmt: skip
    store.documents.put(run.id, AbDocument(result))


def _pulls(store: Store, chains: tuple[SampleChain, ...]) -> None:
    """Store the attempts of the newest pull requests, each with the runs of its commit."""
    runs = [run for chain in chains for run in store.runs.newest(chain=chain.name, limit=_MOST)]
    commits: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.created_at):
        if run.mode == CHANGE and run.trigger == "ci":
            commits.setdefault(run.suite_commit, []).append(run)
    for number, (commit, own) in enumerate(list(commits.items())[-12:], start=1201):
        started = [
            StartedChain(
                chain=run.chain, selected="a changed file was opened by its newest run", run=run.id,
                status=(run.status or Status.CANCELLED).value,
            )
            for run in own
        ]  # fmt: skip
        attempt = PullAttempt(
            repository=_REPOSITORY, number=number, head_sha=commit, attempt=1, request=f"generated {number}",
            chains=tuple(started),
        )  # fmt: skip
        store.pulls.add(attempt)
        store.pulls.saw(attempt, "generated", ended=True)
