"""From the runs of an attempt to its report: the verdicts are in the metrics database before GitHub gets them."""

import json
import math
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import urlencode

from tipcflow.config.repository import Repository
from tipcflow.domain import CheckResult, Plan, Run, Status, StepKind, is_accuracy
from tipcflow.domain.run.names import ChainName
from tipcflow.github.flow.outgoing import MessageKind, TextBody
from tipcflow.github.flow.queue import Forecast, forecast_waits
from tipcflow.github.report import (
    Action,
    Annotation,
    ChainFacts,
    CheckRun,
    Conclusion,
    Finding,
    PullFacts,
    State,
    check_run,
    comment,
)
from tipcflow.github.trust import RunKey
from tipcflow.github.trust.decisions import Why
from tipcflow.store import Store
from tipcflow.store.github.attempts import HELD, NEW, SELECTION, SKIPPED, UNCONCERNED, PullAttempt, StartedChain

_NOTED = frozenset(
    {Status.FAILED, Status.REGRESSION, Status.UNCONFIRMED, Status.INFRA_FAILURE, Status.IMPROVEMENT}
)
# Key of a params file on whose line a finding of a step is shown.
LINE_KEYS = {
    StepKind.TRAIN: "norm_train",
    StepKind.EVAL: "eval",
    StepKind.EXPORT: "norm_export",
    StepKind.INFER_CPU: "inference",
    StepKind.INFER_GPU: "inference",
}


@dataclass(frozen=True)
class SeenChain:
    """One chain in one mode: its final status, the step that runs now, or its place in the queue for slots."""

    chain: StartedChain
    run: Run | None
    status: Status | None
    step: str = ""
    waits: Forecast | None = None
    mode: str = ""


def seen_chains(store: Store, attempt: PullAttempt) -> list[SeenChain]:
    """The current state of an attempt's chains."""
    runs = store.runs.known([chain.run for chain in attempt.chains if chain.run])
    queue: dict[str, Forecast] | None = None
    states = []
    for chain in attempt.chains:
        run = runs.get(chain.run)
        status = Status(chain.status) if chain.status else run.status if run else None
        step, waits = "", None
        if run is not None and status is None:
            step = next((tried.step for tried in store.attempts.of(run.id) if tried.ended_at is None), "")
            queue = forecast_waits(store) if queue is None and not step else queue
            waits = None if step else (queue or {}).get(run.id)
        mode = run.mode if run else attempt.body.mode
        states.append(SeenChain(chain, run, status, step, waits, mode))
    return states


@dataclass(frozen=True)
class Certified:
    """What is known of a commit after an attempt.

    Attributes:
        chains: the attempt's chains, then those that only earlier attempts of the commit ran in that mode.
        unproven: what the budget dropped, of all these attempts.
        covered: modes in which an attempt ran the chains that the change affects, or found that there are none.
    """

    chains: list[SeenChain]
    unproven: tuple[str, ...] = ()
    covered: frozenset[str] = frozenset()

    def is_partial(self, mode: str) -> bool:
        """Whether no attempt ran the chains that the change affects in this mode."""
        return self.covered.isdisjoint((mode, ""))

    def is_unconcerned(self, mode: str) -> bool:
        """Whether the change affects no chain in this mode, and no chain ran."""
        return not self.chains and not self.is_partial(mode)


def certified(store: Store, attempt: PullAttempt) -> Certified:
    """The attempt's chains with the newest result per chain and mode of the earlier attempts of the commit.

    A command may name chains, or another mode: its attempt alone covers neither other chains nor other modes.
    """
    chains: list[SeenChain] = []
    unproven: tuple[str, ...] = ()
    known: set[tuple[str, str]] = set()
    covered: set[str] = set()
    replaced: set[str] = set()
    for each in (attempt, *_earlier(store, attempt)):
        mode = mode_of(each, attempt)
        if mode in replaced:
            continue
        is_own = each.attempt == attempt.attempt
        seen_all = seen_chains(store, each)
        rows = [seen for seen in seen_all if is_own or not _is_void(seen, each)]
        for seen in rows:
            if (seen.chain.chain, mode) not in known:
                known.add((seen.chain.chain, mode))
                chains.append(seen if is_own else _of_attempt(seen, each))
        unproven += tuple(line for line in each.body.unproven if line not in unproven)
        is_complete = len(rows) == len(seen_all)
        has_selected = bool(rows) or each.state == UNCONCERNED or bool(each.body.unconcerned)
        if is_complete and has_selected and not each.body.chains:
            covered.add(mode)
        if is_complete and not each.body.is_part:
            replaced.add(mode)
    return Certified(chains, unproven, frozenset(covered))


def mode_of(attempt: PullAttempt, current: PullAttempt) -> str:
    """The mode of an attempt; an attempt without one has the mode of the current attempt."""
    return attempt.body.mode or ("" if attempt.body.whole != current.body.whole else current.body.mode)


def _earlier(store: Store, attempt: PullAttempt) -> list[PullAttempt]:
    """Earlier attempts of the commit that selected chains, newest first; none for one that runs nothing."""
    if attempt.state in (HELD, SKIPPED) or attempt.attempt == 1:
        return []
    attempts = store.pulls.of(attempt.repository, attempt.number, head_sha=attempt.head_sha)
    earlier = [each for each in attempts if each.attempt < attempt.attempt and each.state not in (HELD, SKIPPED)]
    return earlier[::-1]


def _is_void(seen: SeenChain, attempt: PullAttempt) -> bool:
    """Whether a row of an earlier attempt says nothing about the commit.

    This holds for a command that selected nothing, and for a cancelled request of the full dataset.
    """
    if seen.chain.chain == SELECTION:
        return attempt.body.is_part or attempt.body.whole
    return attempt.body.whole and bool(attempt.cancel) and seen.status is Status.CANCELLED


def _of_attempt(seen: SeenChain, attempt: PullAttempt) -> SeenChain:
    """A result of an earlier attempt, which is named."""
    selected = f"attempt {attempt.attempt}: {seen.chain.selected}"
    return replace(seen, chain=seen.chain.model_copy(update={"selected": selected}))


def digest(attempt: PullAttempt, chains: Iterable[SeenChain]) -> str:
    """What a report depends on: equal digests give equal reports."""
    parts: list[Any] = [attempt.state, attempt.cancel]
    parts += [
        [seen.chain.chain, seen.status.value if seen.status else "", seen.step]
        + ([seen.waits.place] if seen.waits else [])
        for seen in chains
    ]
    return json.dumps(parts, separators=(",", ":"))


def report(store: Store, attempt: PullAttempt, repository: Repository, *, site: str = "") -> bool:
    """Write the report of an attempt to the outgoing outbox; returns whether the attempt has ended.

    Args:
        site: address of Airflow's UI, '' if unknown.
    """
    known = certified(store, attempt)
    facts = facts_of(store, attempt, repository, known, site=site)
    ended = facts.state not in (State.QUEUED, State.RUNNING)
    check = check_run(facts, repository)
    store.messages.put(repository.name, MessageKind.CHECK, check_subject(attempt), as_json(check), final=ended)
    if attempt.number and _is_newest(store, attempt):
        subject = str(attempt.number)
        text = comment(
            facts,
            repository,
            existing=store.messages.get(repository.name, MessageKind.COMMENT, subject) is not None,
        )
        if text:
            body = TextBody(number=attempt.number, text=text).stored()
            rank = attempt.created_at
            store.messages.put(repository.name, MessageKind.COMMENT, subject, body, rank=rank, final=ended)
    store.pulls.saw(attempt, digest(attempt, known.chains), ended=ended)
    return ended


def check_subject(attempt: PullAttempt) -> str:
    """The subject of the message of an attempt's check run."""
    return f"{attempt.number}/{attempt.head_sha}/{attempt.attempt}"


def _is_newest(store: Store, attempt: PullAttempt) -> bool:
    return store.pulls.of(attempt.repository, attempt.number)[-1].key == attempt.key


def facts_of(
    store: Store, attempt: PullAttempt, repository: Repository, known: Certified, *, site: str = ""
) -> PullFacts:
    """The facts of the report."""
    body, chains = attempt.body, known.chains
    state = _state(attempt, known, repository)
    reason = attempt.cancel or body.unconcerned or body.reason
    if state is State.UNCONCERNED:
        reason = body.unconcerned or "the change affects no chain"
    waits = [seen.waits for seen in chains if seen.waits]
    first = min(waits, key=lambda wait: wait.place, default=None)
    starts = [wait.start_s for wait in waits if wait.start_s is not None]
    return PullFacts(
        key=RunKey(attempt.repository, attempt.number, attempt.head_sha, attempt.attempt),
        state=state,
        chains=tuple(
            _chain_facts(store, seen, repository, done=state is State.DONE, site=site) for seen in chains
        ),
        why=Why(body.why) if body.why in set(Why) else None,
        reason=reason,
        place=first.place if first else 0,
        start_s=min(starts, default=None),
        partial=known.is_partial(repository.mode),
        mode=repository.mode,
        unproven=known.unproven,
        compared=body.compared,
        problems=body.problems,
        accuracy=tuple(_accuracy(store, chains, repository)) if state is State.DONE else (),
        command=_command(attempt, repository, chains) if state is State.DONE else "",
        url=_page(chains[0], site) if len(chains) == 1 else _pages(attempt, site) if chains else "",
    )


def _state(attempt: PullAttempt, known: Certified, repository: Repository) -> State:
    if attempt.state in (HELD, SKIPPED):
        return State(attempt.state)
    if attempt.state == NEW:
        return State.QUEUED
    if known.is_unconcerned(repository.mode):
        return State.UNCONCERNED
    if all(seen.status for seen in known.chains):
        return State.DONE
    return State.RUNNING if any(seen.status or seen.step for seen in known.chains) else State.QUEUED


def _name(seen: SeenChain, repository: Repository) -> str:
    """The chain, with its mode if that is not the repository's."""
    return seen.chain.chain if seen.mode in ("", repository.mode) else f"{seen.chain.chain} ({seen.mode})"


def _chain_facts(store: Store, seen: SeenChain, repository: Repository, *, done: bool, site: str) -> ChainFacts:
    reason = seen.chain.problem or (seen.run.reason if seen.run and seen.status else "")
    findings: tuple[Finding, ...] = ()
    if seen.run is not None and seen.status not in (None, Status.PASS):
        results = [
            result for result in store.checks.results(seen.run.id) if result.status in _NOTED and result.gating
        ]
        plan = store.plans.get_or_none(seen.run.id) if results else None
        # Annotations are appended by each update, so all are sent with the final one.
        findings = tuple(_finding(result, plan, seen.chain if done else None) for result in results)
    return ChainFacts(
        chain=_name(seen, repository),
        selected=seen.chain.selected,
        status=seen.status,
        reason=reason,
        step=seen.step,
        url=_page(seen, site),
        predicted_s=seen.chain.predicted_s,
        took_s=store.attempts.took_s(seen.run.id) if seen.run is not None and seen.status is not None else 0.0,
        findings=findings,
        quarantined=seen.run is not None and bool(store.check_history.quarantined([seen.run.id])),
    )


def _finding(result: CheckResult, plan: Plan | None, chain: StartedChain | None) -> Finding:
    measured = result.measured
    file, line = _place(result, plan, chain)
    return Finding(
        metric=result.metric or result.check,
        where=" ".join(part for part in (result.step, result.leg) if part),
        status=result.status,
        reason=result.reason,
        now=_number(measured.value, measured.unit),
        before=_number(measured.baseline, measured.unit),
        noise=_number(measured.sigma, measured.unit),
        file=file,
        line=line,
    )


def _place(result: CheckResult, plan: Plan | None, chain: StartedChain | None) -> tuple[str, int]:
    """File and line of the params file; line 1 if the step has no line of its own."""
    if chain is None or not chain.file:
        return "", 0
    kind = next((step.kind for step in plan.steps if step.id == result.step), None) if plan else None
    return chain.file, chain.lines.get(LINE_KEYS.get(kind, "") if kind else "", 1)


def _number(value: float | None, unit: str) -> str:
    if value is None or not math.isfinite(value):
        return ""
    return f"{value:.6g} {unit}".strip()


def _accuracy(store: Store, chains: list[SeenChain], repository: Repository) -> Iterator[str]:
    """Results of accuracy checks with a target."""
    for seen in chains:
        for result in store.checks.results(seen.run.id) if seen.run else ():
            value, target = _number(result.measured.value, ""), _number(result.measured.target, "")
            if is_accuracy(result.check) and value and target:
                yield f"{_name(seen, repository)}: {result.metric} {value}, target {target}: {result.status.value}"


def _command(attempt: PullAttempt, repository: Repository, chains: list[SeenChain]) -> str:
    """The command that repeats the worst run."""
    ran = [seen for seen in chains if seen.status and seen.chain.run]
    if not ran:
        return ""
    worst = max(ran, key=lambda seen: seen.status.severity if seen.status else 0)
    params = f"{ChainName.parse(worst.chain.chain).in_suite}.txt"
    mode = worst.mode or attempt.body.mode or repository.mode
    drop = "".join(f" --drop {shlex.quote(part)}" for part in worst.chain.drop)
    return (
        f"tipcflow run {params} --suite {repository.suite} --mode {mode} --cluster {repository.cluster} "
        f"--policy {repository.policy} --suite-ref {attempt.head_sha}{drop}"
    )


def _page(seen: SeenChain, site: str) -> str:
    return f"{site.rstrip('/')}/certification/runs/{seen.run.id}" if site and seen.run else ""


def _pages(attempt: PullAttempt, site: str) -> str:
    """The page of all attempts of the pull request."""
    query = urlencode({"repository": attempt.repository, "number": attempt.number})
    return f"{site.rstrip('/')}/certification/pulls?{query}" if site else ""


def as_json(check: CheckRun) -> dict[str, Any]:
    """A check run as it is stored; `from_json` reads it."""
    # A round trip, so that equal contents are equal after they were stored.
    document: dict[str, Any] = json.loads(json.dumps(asdict(check)))
    return document


def from_json(body: dict[str, Any]) -> CheckRun:
    """What `as_json` made."""
    conclusion = body["conclusion"]
    return CheckRun(
        **{
            **body,
            "conclusion": Conclusion(conclusion) if conclusion else None,
            "annotations": tuple(Annotation(**annotation) for annotation in body["annotations"]),
            "actions": tuple(Action(**action) for action in body["actions"]),
        }
    )
