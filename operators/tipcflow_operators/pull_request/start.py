"""Selects the chains of a new attempt and starts their DAG runs; stops those of a cancelled one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from tipcflow.budget import Fit
from tipcflow.config.repository import Repository
from tipcflow.config.suite import load_suite
from tipcflow.domain import ConfigError, InfraError, LegKey, Status, TipcflowError, dag_id_of, run_id_of
from tipcflow.domain.numbers.units import counted
from tipcflow.execute.changes import Candidates, candidates, changed_between, choose, fit_chains, with_opened
from tipcflow.execute.changes.choose import folder_of, inside, lines_of
from tipcflow.github.client import PullState
from tipcflow.github.flow.observe import mode_of, seen_chains
from tipcflow.github.trust import RunKey
from tipcflow.selection import Change, Choice
from tipcflow.store import Store
from tipcflow.store.github.attempts import (
    DONE,
    HELD,
    NEW,
    RUNNING,
    SELECTION,
    SKIPPED,
    UNCONCERNED,
    PullAttempt,
    StartedChain,
)
from tipcflow.store.github.decision import AttemptDecision
from tipcflow_operators.pull_request.noisy import plan_comparisons

# After this time a chain that Airflow does not start, or a suite that cannot be fetched, is an infra_failure.
GIVE_UP_S = 3600.0
# GitHub may be away for longer: then the reason could not be reported either.
AWAY_S = 3 * 86400.0
# Pause before a failed start or stop is repeated.
RETRY_S = 10.0
_GOOD = (Status.PASS, Status.IMPROVEMENT)


class AwayError(InfraError):
    """GitHub does not return what the selection needs."""


class Reader(Protocol):
    """What the selection reads from GitHub."""

    def pull(self, number: int) -> PullState:
        """The current state of a pull request."""

    def changed_paths(self, number: int, expected: int) -> tuple[tuple[str, ...], bool]:
        """(Changed paths, whether these are all)."""


@dataclass(frozen=True)
class Runs:
    """What Airflow does with DAG runs.

    Attributes:
        start: (dag id, run ID, run after, conf, note); nothing happens if the DAG run exists.
        stop: (dag id, run ID) -> marks a DAG run as failed, so that its tasks clean the nodes.
        active: (dag id, run ID) -> whether it or one of its tasks is not ended; False if it does not exist.
    """

    start: Callable[[str, str, datetime, Mapping[str, Any], str], None]
    stop: Callable[[str, str], None]
    active: Callable[[str, str], bool]


def start_attempt(
    attempt: PullAttempt,
    repository: Repository,
    store: Store,
    runs: Runs,
    client: Callable[[], Reader],
    *,
    config_dir: Path,
    cache: Path,
) -> str:
    """Select the chains of an attempt once, then start each; returns what was done.

    A temporary failure leaves the attempt as it is, so that the next call continues.
    """
    if attempt.cancel:
        return _cancelled(attempt, store)
    age = store.now() - attempt.created_at
    if not attempt.chains:
        try:
            chosen = _selected(attempt, repository, store, client, config_dir, cache)
        except TipcflowError as error:
            if isinstance(error, InfraError) and age <= (AWAY_S if isinstance(error, AwayError) else GIVE_UP_S):
                store.pulls.started(attempt, (), _later(attempt, store), state=NEW)
                return f"cannot select chains: {error.message}"
            chosen = _none(attempt, error)
        if not chosen.chains:
            return _end_without_chains(attempt, chosen, store)
        # Stored before the start: a repetition starts the same chains.
        store.pulls.started(attempt, chosen.chains, chosen.body, state=NEW)
        attempt = attempt.model_copy(update={"chains": chosen.chains, "body": chosen.body})
    chains = [_started(chain, attempt, repository, runs, late=age > GIVE_UP_S) for chain in attempt.chains]
    waits = [chain for chain in chains if chain.problem and not chain.status]
    if waits:
        store.pulls.started(attempt, chains, _later(attempt, store), state=NEW)
    else:
        store.pulls.started(attempt, chains, attempt.body.later(0.0), state=RUNNING)
    return f"{len(chains) - len(waits)} of {len(chains)} chains started" + (
        f": {waits[0].problem}" if waits else ""
    )


def _end_without_chains(attempt: PullAttempt, chosen: "_Chosen", store: Store) -> str:
    """End an attempt that starts nothing; the report of a later one waits for the results of earlier attempts."""
    state = DONE if chosen.body.unproven else UNCONCERNED
    store.pulls.started(attempt, (), chosen.body, state=state if attempt.attempt == 1 else RUNNING)
    return "no chain fits the budget" if chosen.body.unproven else chosen.body.unconcerned


def put_off(attempt: PullAttempt, store: Store, problem: str, *, state: str) -> None:
    """Repeat an attempt that an unexpected error interrupted; one that waits for too long ends."""
    if state != NEW or store.now() - attempt.created_at <= GIVE_UP_S:
        store.pulls.started(attempt, attempt.chains, _later(attempt, store), state=state)
        return
    chains = attempt.chains or (StartedChain(chain=SELECTION),)
    failed = {"problem": problem, "status": Status.INFRA_FAILURE.value}
    rows = [chain if chain.status else chain.model_copy(update=failed) for chain in chains]
    store.pulls.started(attempt, rows, attempt.body, state=RUNNING)


def _cancelled(attempt: PullAttempt, store: Store) -> str:
    """DAG runs that an interrupted start may have created are stopped like those of a running attempt."""
    if attempt.chains:
        store.pulls.started(attempt, attempt.chains, attempt.body, state=RUNNING)
    else:
        none = StartedChain(chain=SELECTION, problem=attempt.cancel, status=Status.CANCELLED.value)
        # Not DONE: results of earlier attempts, which the report includes, may be missing still.
        store.pulls.started(attempt, (none,), attempt.body, state=RUNNING)
    return f"cancelled before its start: {attempt.cancel}"


def _later(attempt: PullAttempt, store: Store) -> AttemptDecision:
    return attempt.body.later(store.now() + RETRY_S)


@dataclass(frozen=True)
class _Chosen:
    chains: tuple[StartedChain, ...]
    body: AttemptDecision


def _none(attempt: PullAttempt, error: TipcflowError) -> _Chosen:
    """An attempt whose chains cannot be selected has one row with the reason; it never passes."""
    status = error.status.value
    return _Chosen((StartedChain(chain=SELECTION, problem=error.message, status=status),), attempt.body)


def _selected(
    attempt: PullAttempt,
    repository: Repository,
    store: Store,
    client: Callable[[], Reader],
    config_dir: Path,
    cache: Path,
) -> _Chosen:
    mode = repository.mode_of(whole=attempt.body.whole)
    candidate_set = candidates(repository, attempt.head_sha, config_dir, cache=cache, mode=mode)
    if not candidate_set.chains:
        raise ConfigError(
            f"no chain of configs/chains/{repository.suite} may run for {repository.name}",
            key="chains",
            found=f"{' '.join(repository.chains)}, mode {mode}",
            expected="a glob that matches a chain which supports this mode",
        )
    change = _change(attempt, repository, client, config_dir, cache)
    if not change.chains:
        candidate_set = with_opened(candidate_set, change, repository, store, config_dir, cache=cache, mode=mode)
    choice = choose(candidate_set, change, repository)
    if change.chains and choice.problems:
        # Not only the chains that match: the user would take the result for that of all named chains.
        raise ConfigError("; ".join(choice.problems), expected="globs of chains that support this mode")
    body = attempt.body.model_copy(update={"mode": mode, "problems": tuple(choice.problems)})
    chosen, why_none = list(choice.chosen), ""
    if not chosen:
        why_none = _why_none(choice, change)
    elif attempt.body.failed:
        passed = _passed(attempt.model_copy(update={"body": body}), store)
        chosen = [selected for selected in chosen if selected.chain not in passed]
        if not chosen:
            why_none = f"nothing runs: every selected chain has passed in mode {mode} before"
    if why_none:
        body = body.model_copy(update={"unconcerned": why_none})
    rows = tuple(_row(selected.chain, selected.reason, attempt, candidate_set) for selected in chosen)
    if attempt.body.whole or not rows:
        return _Chosen(rows, body)
    names = [row.chain for row in rows]
    fitted = fit_chains(
        names, candidate_set, repository, store, config_dir=config_dir, mode=mode, ref=attempt.head_sha
    )
    if fitted is not None:
        sentences = plan_comparisons(attempt, fitted, repository, store, mode=mode, config_dir=config_dir)
        body = body.model_copy(update={"compared": sentences}) if sentences else body
    return _within(rows, body, fitted)


def _within(rows: tuple[StartedChain, ...], body: AttemptDecision, fitted: Fit | None) -> _Chosen:
    """The chains that fit, in the order of their start, without the dropped legs."""
    if fitted is None:
        return _Chosen(rows, body)
    by_name = {row.chain: row for row in rows}
    dropped: dict[str, tuple[str, ...]] = {}
    for leg in fitted.legs:
        dropped[leg.chain] = (*dropped.get(leg.chain, ()), str(LegKey(leg.step, leg.leg)))
    fitting_rows = tuple(
        by_name[planned.chain].model_copy(
            update={"drop": dropped.get(planned.chain, ()), "predicted_s": round(planned.expected_s, 1)}
        )
        for planned in fitted.chains
    )
    facts = {"unproven": fitted.unproven, "predicted_s": round(fitted.total_s, 1)}
    return _Chosen(fitting_rows, body.model_copy(update=facts))


def _why_none(choice: Choice, change: Change) -> str:
    others = counted(len(choice.others), "chain")
    return f"none of {others} uses any of {counted(len(change.paths), 'changed file')}"


def _change(
    attempt: PullAttempt, repository: Repository, client: Callable[[], Reader], config_dir: Path, cache: Path
) -> Change:
    """What changed: as GitHub lists it for a pull request, else by git."""
    labels, globs = attempt.body.labels, attempt.body.chains
    if globs:
        return Change(labels=labels, chains=globs)
    suite = load_suite(repository.suite, config_dir)
    if not attempt.number:
        paths, complete = changed_between(suite, attempt.body.base_sha, attempt.head_sha, cache=cache)
        return Change(paths=paths, complete=complete, labels=labels)
    try:
        reader = client()
        pull = reader.pull(attempt.number)
        paths, complete = reader.changed_paths(attempt.number, pull.changed_files)
    except InfraError as error:
        raise AwayError(error.message, hint=error.hint) from error
    folder = folder_of(suite, cache=cache)
    # The list is that of the head at this moment: after another push it is not the list of this commit.
    complete = complete and pull.head_sha == attempt.head_sha
    return Change(tuple(inside(path, folder, suite) for path in paths), complete, labels)


def _row(chain: str, selected: str, attempt: PullAttempt, candidate_set: Candidates) -> StartedChain:
    key = RunKey(attempt.repository, attempt.number, attempt.head_sha, attempt.attempt)
    dag_id = dag_id_of(chain)
    file = next((traced.roots[0] for traced in candidate_set.chains if traced.chain == chain and traced.roots), "")
    return StartedChain(
        chain=chain,
        selected=selected,
        dag_id=dag_id,
        run_id=key.run_id,
        run=run_id_of(dag_id, key.run_id, run_after(attempt)),
        file=f"{candidate_set.folder}{file}" if file else "",
        lines=lines_of(candidate_set.tree, file) if file else {},
    )


def run_after(attempt: PullAttempt) -> datetime:
    """The time of an attempt's DAG runs, equal in every repetition."""
    return datetime.fromtimestamp(int(attempt.created_at), UTC)


def _passed(attempt: PullAttempt, store: Store) -> set[str]:
    """Chains that passed in this mode in an earlier attempt of this commit, by their newest result."""
    passed: dict[str, bool] = {}
    for earlier in store.pulls.of(attempt.repository, attempt.number, head_sha=attempt.head_sha):
        is_earlier = earlier.attempt < attempt.attempt and earlier.state not in (HELD, SKIPPED)
        if is_earlier and mode_of(earlier, attempt) == attempt.body.mode:
            for seen in seen_chains(store, earlier):
                passed[seen.chain.chain] = seen.status in _GOOD
    return {chain for chain, good in passed.items() if good}


def _started(
    chain: StartedChain, attempt: PullAttempt, repository: Repository, runs: Runs, *, late: bool
) -> StartedChain:
    if chain.status:
        return chain
    conf: dict[str, Any] = {
        "mode": attempt.body.mode or repository.mode,
        "suite_ref": attempt.head_sha,
        "cluster": repository.cluster,
        "policy": repository.policy,
    }
    if chain.drop:
        conf["drop"] = list(chain.drop)
    if attempt.body.base:
        conf["base"] = attempt.body.base
    where = f"pull request {attempt.number}" if attempt.number else "a push or merge group"
    note = f"{where} of {attempt.repository}, commit {attempt.head_sha[:8]}, attempt {attempt.attempt}"
    try:
        runs.start(chain.dag_id, chain.run_id, run_after(attempt), conf, note)
    except TipcflowError as error:
        final = late or not isinstance(error, InfraError)
        return chain.model_copy(update={"problem": error.message, "status": error.status.value if final else ""})
    return chain.model_copy(update={"problem": ""})


def stop_attempt(attempt: PullAttempt, store: Store, runs: Runs) -> str:
    """Stop the DAG runs of a cancelled attempt; returns what was done. A failed stop is repeated."""
    problem = ""
    for seen in seen_chains(store, attempt):
        if seen.status is not None:
            continue
        try:
            runs.stop(seen.chain.dag_id, seen.chain.run_id)
        except TipcflowError as error:
            problem = error.message
    if problem:
        store.pulls.started(attempt, attempt.chains, _later(attempt, store), state=RUNNING)
        return f"cannot stop the run: {problem}"
    store.pulls.started(attempt, attempt.chains, attempt.body.model_copy(update={"stopped": True}), state=RUNNING)
    return f"stopped: {attempt.cancel}"


def close_lost(attempt: PullAttempt, store: Store, runs: Runs) -> bool:
    """Give chains a status whose DAG run has ended or was deleted before it had a run; whether there was one.

    A run without a verdict whose DAG run has ended is judged by the DAG `maintenance`.
    """
    chains, lost = [], False
    for seen in seen_chains(store, attempt):
        chain = seen.chain
        if seen.status is None and seen.run is None and not runs.active(chain.dag_id, chain.run_id):
            status = Status.CANCELLED if attempt.cancel else Status.INFRA_FAILURE
            problem = attempt.cancel or "its DAG run ended before it had a run; see its tasks in Airflow"
            chain, lost = chain.model_copy(update={"status": status.value, "problem": problem}), True
        chains.append(chain)
    if lost:
        store.pulls.started(attempt, chains, attempt.body, state=RUNNING)
    return lost
