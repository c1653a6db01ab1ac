"""Fits the selected chains of a change into the budget of its repository."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tipcflow.budget import Estimate, Fit, Limits, PlannedChain, PlannedStep, Samples, fit, planned_chain, values
from tipcflow.config.cluster import load_cluster
from tipcflow.config.repository import Budget, Repository
from tipcflow.config.suite import Suite, load_suite
from tipcflow.domain import Cluster, Plan, Run, Status, TipcflowError
from tipcflow.execute.changes.choose import Candidates
from tipcflow.execute.request import RunRequest
from tipcflow.execute.resolve.planning import make_plan
from tipcflow.execute.source.snapshot import Snapshot
from tipcflow.store import Store

_RUNS = 10
GOOD = (Status.PASS, Status.IMPROVEMENT)


@dataclass(frozen=True)
class _Planner:
    """What the plans of all chains share."""

    repository: Repository
    suite: Suite
    cluster: Cluster
    candidates: Candidates
    config_dir: Path
    mode: str
    ref: str

    def plan(self, chain: str) -> Plan | None:
        """The plan of a chain; None if it has none, which its own run reports."""
        files = next((entry.roots for entry in self.candidates.chains if entry.chain == chain), ())
        if not files:
            return None
        request = RunRequest(
            params=files[0],
            suite=self.repository.suite,
            mode=self.mode,
            cluster=self.repository.cluster,
            config_dir=self.config_dir,
            suite_ref=self.ref,
            policy=self.repository.policy,
        )
        text = self.candidates.tree.text(files[0])
        snapshot = Snapshot(self.candidates.commit, b"", "", files[0], text, self.candidates.tree.paths)
        try:
            return make_plan(request, self.suite, self.cluster, snapshot, run="plan")
        except TipcflowError:
            return None


def fit_chains(
    chains: Sequence[str],
    candidates: Candidates,
    repository: Repository,
    store: Store,
    *,
    config_dir: Path,
    mode: str,
    ref: str,
) -> Fit | None:
    """What of the selected chains fits the repository's budget; None if its suite or cluster cannot be read.

    A chain without a plan counts as one step without history: its run reports what is wrong.
    """
    limits = repository_limits(repository.budget)
    try:
        suite = load_suite(repository.suite, config_dir)
        cluster = load_cluster(repository.cluster, config_dir)
    except TipcflowError:
        return None
    planner = _Planner(repository, suite, cluster, candidates, config_dir, mode, ref)
    ranks = values(chains, repository.budget.keep)
    return fit([_planned(chain, planner.plan(chain), store, limits, ranks) for chain in chains], limits)


def _planned(
    chain: str, plan: Plan | None, store: Store, limits: Limits, ranks: Mapping[str, int]
) -> PlannedChain:
    if plan is None:
        unknown = PlannedStep("run", 1, Estimate(limits.unknown_s, limits.unknown_s, 0))
        return PlannedChain(chain, (unknown,), ranks[chain])
    return planned_chain(plan, samples_of(store, plan), limits, value=ranks[chain])


def repository_limits(budget: Budget) -> Limits:
    """The limits of a repository's file, in seconds."""
    return Limits(
        chain_s=60 * budget.minutes_per_chain,
        total_s=60 * budget.minutes,
        reserve_s=60 * budget.reserve_minutes,
        nodes=budget.nodes,
        unknown_s=60 * budget.unknown_minutes,
        drop=budget.drop,
    )


def good_runs(store: Store, plan: Plan) -> list[Run]:
    """The newest accepted runs of the same chain, mode and cluster."""
    return [
        run
        for run in store.runs.newest(chain=plan.chain, limit=10 * _RUNS)
        if run.status in GOOD and run.mode == plan.mode and plan.cluster in ("", run.cluster)
    ][:_RUNS]


def samples_of(store: Store, plan: Plan) -> Samples:
    """Durations of the newest accepted runs of the plan's chain."""
    samples = Samples({}, {})
    planned = {step.id for step in plan.steps}
    for run in good_runs(store, plan):
        legs: dict[str, float] = {}
        for record in store.steps.leg_records(run.id):
            samples.legs.setdefault((record.step, record.leg), []).append(record.duration_s)
            legs[record.step] = legs.get(record.step, 0.0) + record.duration_s
        for attempt in store.attempts.of(run.id):
            if attempt.step in planned and attempt.status in GOOD and attempt.duration_s is not None:
                took = attempt.duration_s - legs.get(attempt.step, 0.0)
                samples.steps.setdefault(attempt.step, []).append(max(0.0, took))
    return samples


def predictions(store: Store, chain: str) -> tuple[dict[str, str | float], ...]:
    """Predicted against real seconds of the newest runs of a chain for pull requests that have a status."""
    chains = store.pulls.predictions(chain)
    runs = store.runs.known([started.run for started in chains])
    return tuple(
        {
            "run": started.run,
            "status": run.status.value,
            "predicted_s": started.predicted_s,
            "took_s": round(store.attempts.took_s(started.run), 1),
        }
        for started in chains
        if (run := runs.get(started.run)) is not None and run.status is not None
    )
