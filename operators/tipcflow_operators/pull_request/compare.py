"""Starts and observes the A/B comparisons that `/tipc ab` requests."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tipcflow.config.repository import Repository
from tipcflow.config.suite import load_suite
from tipcflow.domain import ConfigError, InfraError, Status, TipcflowError, run_id_of
from tipcflow.domain.run.names import ChainName
from tipcflow.domain.run_documents import AbDocument
from tipcflow.domain.triggers import AB
from tipcflow.execute.changes import candidates
from tipcflow.execute.source.merge_base import merge_base
from tipcflow.github.flow import AbRun, ComparisonBody, save_comparison
from tipcflow.selection.globs import matches
from tipcflow.store import Store
from tipcflow.store.github.attempts import HELD, SELECTION, SKIPPED
from tipcflow_operators.airflow.child_runs import child_run_id
from tipcflow_operators.pull_request.start import GIVE_UP_S, RETRY_S, Runs

# Each chain is run some ten times per side.
MOST_CHAINS = 10
_CERTIFY = "certify"


def advance_comparison(
    body: ComparisonBody, repository: Repository, store: Store, runs: Runs, *, config_dir: Path, cache: Path
) -> str:
    """Start a comparison, stop a cancelled one, or store its new results; returns what was done."""
    if body.cancel:
        body, done = _stopped(body, store, runs)
    elif not body.runs:
        body, done = _started(body, repository, store, runs, config_dir, cache)
    else:
        body, done = _observed(body, store, runs)
    save_comparison(store, repository, body)
    return done


def refuse_comparison(body: ComparisonBody, repository: Repository, store: Store, problem: str) -> None:
    """End a comparison without a result."""
    save_comparison(store, repository, body.model_copy(update={"problem": problem, "ended": True}))


def _started(
    body: ComparisonBody, repository: Repository, store: Store, runs: Runs, config_dir: Path, cache: Path
) -> tuple[ComparisonBody, str]:
    try:
        suite = load_suite(repository.suite, config_dir)
        chains = _chains(body, repository, store, config_dir, cache)
        base = merge_base(suite, body.base, body.head_sha, cache=cache, measured=()).commit
        if base == body.head_sha:
            raise ConfigError("The head is part of the base branch: both sides are the same commit.")
        started = [_start(chain, base, body, repository, runs) for chain in chains]
    except TipcflowError as error:
        is_late = store.now() - body.requested_at > GIVE_UP_S
        if isinstance(error, InfraError) and not is_late:
            later = {"retry_at": store.now() + RETRY_S, "problem": error.message}
            return body.model_copy(update=later), f"cannot start: {error.message}"
        return body.model_copy(update={"problem": error.message, "ended": True}), f"refused: {error.message}"
    update = {"runs": tuple(started), "base_sha": base, "problem": ""}
    return body.model_copy(update=update), f"{len(started)} comparisons started"


def _chains(
    body: ComparisonBody, repository: Repository, store: Store, config_dir: Path, cache: Path
) -> Sequence[str]:
    """Return the chains to compare: those of the globs, or those that the newest attempt in this mode selected.

    Raises:
        ConfigError: there are none, or too many.
    """
    if body.globs:
        known = candidates(repository, body.head_sha, config_dir, cache=cache, mode=repository.mode)
        names = [each.chain for each in known.chains]
        for glob in body.globs:
            if not any(matches(name, (glob,)) for name in names):
                raise ConfigError(f"No chain matches `{glob}`.")
        chains = [name for name in names if matches(name, body.globs)]
    else:
        attempts = [
            attempt
            for attempt in store.pulls.of(repository.name, body.number, head_sha=body.head_sha)
            if attempt.state not in (HELD, SKIPPED)
            and not attempt.body.is_part
            and attempt.body.mode in ("", repository.mode)
        ]
        selected = attempts[-1].chains if attempts else ()
        chains = [each.chain for each in selected if each.chain != SELECTION]
    if not chains:
        raise ConfigError("No run of this commit has selected a chain: name a chain, `/tipc ab CHAIN`.")
    if len(chains) > MOST_CHAINS:
        raise ConfigError(f"{len(chains)} chains, at most {MOST_CHAINS}: name them, `/tipc ab CHAIN`.")
    return chains


def _start(chain: str, base: str, body: ComparisonBody, repository: Repository, runs: Runs) -> AbRun:
    run_id = body.dag_run_id(repository.name, chain)
    after = datetime.fromtimestamp(int(body.requested_at), UTC)
    params_file = f"{ChainName.parse(chain).in_suite}.txt"
    conf: dict[str, Any] = {
        "suite": repository.suite,
        "params_file": params_file,
        "mode": repository.mode,
        "cluster": repository.cluster,
        "policy": repository.policy,
        "a": base,
        "b": body.head_sha,
        "budget_minutes": body.budget_minutes or repository.budget.minutes,
    }
    note = f"pull request {body.number} of {repository.name}, commit {body.head_sha[:8]}, requested by {body.by}"
    runs.start(AB, run_id, after, conf, note)
    first = run_id_of(_CERTIFY, child_run_id(run_id, 1, word=AB), after)
    return AbRun(chain=chain, params_file=params_file, run_id=run_id, first=first)


def _observed(body: ComparisonBody, store: Store, runs: Runs) -> tuple[ComparisonBody, str]:
    seen = []
    for run in body.runs:
        # In this order: a result that is stored meanwhile is seen.
        is_active = not run.status and runs.active(AB, run.run_id)
        document = None if run.status else store.documents.get(run.first, AbDocument)
        if document is not None:
            result: Any = document.root
            run = run.model_copy(update={"status": result["status"], "verdict": result["verdict"]})
        elif not run.status and not is_active:
            verdict = f"DAG run {run.run_id} of ab ended without a result; see its log in Airflow"
            run = run.model_copy(update={"status": Status.INFRA_FAILURE.value, "verdict": verdict})
        seen.append(run)
    count = sum(bool(run.status) for run in seen)
    ended = count == len(seen)
    return body.model_copy(update={"runs": tuple(seen), "ended": ended}), f"{count} of {len(seen)} have a result"


def _stopped(body: ComparisonBody, store: Store, runs: Runs) -> tuple[ComparisonBody, str]:
    body, _ = _observed(body, store, runs) if body.runs else (body, "")
    active = [run for run in body.runs if not run.status]
    try:
        for run in active:
            runs.stop(AB, run.run_id)
    except TipcflowError as error:
        return body.model_copy(update={"retry_at": store.now() + RETRY_S}), f"cannot stop: {error.message}"
    cancelled = {"status": Status.CANCELLED.value, "verdict": body.cancel}
    rows = tuple(run if run.status else run.model_copy(update=cancelled) for run in body.runs)
    return body.model_copy(update={"runs": rows, "ended": True}), f"{len(active)} comparisons stopped"
