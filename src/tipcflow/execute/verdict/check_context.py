"""The context of checks: earlier accepted runs, and user decisions about them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from tipcflow.check import CheckContext, Pin
from tipcflow.config.goldens import Goldens
from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.config.suite import Prints, Suite
from tipcflow.domain import Declared, PastRun, Run, plain_metric
from tipcflow.domain.numbers.history import INCOMPARABLE
from tipcflow.domain.numbers.metrics import is_loss, metric
from tipcflow.execute.source import merge_base
from tipcflow.execute.verdict import confirm
from tipcflow.execute.verdict.confirmed import confirmation_of

if TYPE_CHECKING:
    from tipcflow.store import Baseline, Store


@dataclass
class Decided:
    """Active decisions per 'step|leg|metric': the pinned value, and the first run of the history."""

    pins: dict[str, Pin] = field(default_factory=dict)
    starts: dict[str, str] = field(default_factory=dict)


def decided(decisions: "Iterable[Baseline]") -> Decided:
    """Apply decisions in order; a reset removes earlier ones."""
    found = Decided()
    for one in decisions:
        key = f"{one.step}|{one.leg}|{one.metric}"
        if not math.isfinite(one.value):
            found.pins.pop(key, None)
            found.starts.pop(key, None)
        elif one.pinned:
            found.pins[key] = Pin(value=one.value, run=one.run, who=one.who, why=one.why)
        else:
            found.starts[key] = one.run
    return found


def context_of(
    store: "Store", run: Run, *, rules: Policy, references: References, as_of: float | None = None
) -> CheckContext:
    """Return everything that checks may use in addition to the run's own facts.

    Args:
        rules, references: as of the resolution of the run, like the goldens.
        as_of: only runs that had ended and decisions that were made by then, seconds since the epoch.
    """
    incomparable = bool(store.document(run.id, INCOMPARABLE))
    decisions = store.baseline_decisions(run.chain, run.mode, run.environment)
    in_force = decided(one for one in decisions if as_of is None or one.accepted_at <= as_of)
    kept, suite = store.document(run.id, "goldens"), store.document(run.id, "suite")
    history = history_of(store, run, in_force.starts, rules, as_of=as_of)
    return CheckContext(
        history=history,
        before=declared_before(store, history),
        references=references,
        goldens=Goldens.model_validate(kept) if kept else None,
        confirmation=confirmation_of(store, run.id),
        unconfirmable=confirm.unconfirmable(store, run, rules),
        evaluable=confirm.evaluable(store, run, rules),
        pins=in_force.pins,
        probes=store.node_probes(run, limit=rules.history),
        policy=rules,
        prints=Suite.model_validate(suite).prints if suite else Prints(),
        elsewhere=("", 0) if incomparable else store.elsewhere(run),
        run=run,
    )


def history_of(
    store: "Store", run: Run, starts: Mapping[str, str], rules: Policy, *, as_of: float | None = None
) -> tuple[PastRun, ...]:
    """Return the runs that a policy compares this run with, oldest first (`past_runs`)."""
    seeds = rules.comparison.seeds or rules.min_history
    return past_runs(store, run, starts, limit=rules.history, seeds=seeds, as_of=as_of)


def declared_before(store: "Store", history: Sequence[PastRun]) -> Declared | None:
    """Return what the plan of the last earlier run declared; None without one."""
    for past in reversed(history):
        plan = store.plan_or_none(past.run)
        if plan is not None:
            return Declared.of(past.run, plan)
    return None


def found_before(store: "Store", run: Run, *, limit: int) -> tuple[PastRun, ...]:
    """Return the evidence of the runs that this run is compared with, oldest first, without metrics."""
    if store.document(run.id, INCOMPARABLE):
        return ()
    base = store.document(run.id, merge_base.DOCUMENT)
    ids = _accepted(store, run)(commits=base and base["commits"], limit=limit)
    return tuple(PastRun(run=one, found=tuple(store.document(one, "found") or ())) for one in reversed(ids))


def _accepted(store: "Store", run: Run, as_of: float | None = None) -> Callable[..., list[str]]:
    """Return a query for accepted runs comparable with this run, newest first."""
    accepted = partial(store.accepted_runs, run.chain, run.mode, run.environment, compat=run.compat)
    return partial(accepted, exclude=run.id, ended_by=as_of)


def past_runs(
    store: "Store",
    run: Run,
    starts: Mapping[str, str],
    *,
    limit: int,
    seeds: int = 5,
    as_of: float | None = None,
) -> tuple[PastRun, ...]:
    """Return the runs that this run is compared with, oldest first; empty if none is comparable.

    Losses and accuracies depend on the seed: they are compared with runs of the same seed. If fewer than `seeds`
        of those exist but runs with at least `seeds` different seeds, they are compared with one run per seed.

    A change is compared with its merge base's history. Earlier runs of the same commit show whether it is
    reproducible, not whether it is slower.

    A metric with an accepted change is compared with runs from that change on, because earlier values belong to
    another history. The run with the accepted change counts for that metric, whatever its status.

    Args:
        starts: 'step|leg|metric' -> run whose change was accepted.
        seeds: required number of runs with the same seed, or of different seeds.
        as_of: only runs that had ended by then, seconds since the epoch.
    """
    if store.document(run.id, INCOMPARABLE):
        return ()
    accepted = _accepted(store, run, as_of)
    base = store.document(run.id, merge_base.DOCUMENT)
    ids = accepted(commits=base and base["commits"], limit=limit)
    numbers = set(ids)
    same_seed = set(accepted(commits=base and base["commits"], seeds=[run.seed], limit=limit)) - numbers
    ids += sorted(same_seed)
    if base and run.suite_commit not in base["commits"]:
        ids += accepted(commits=[run.suite_commit], limit=1)
    well = set(ids)
    ids += sorted(set(starts.values()) - {*ids, run.id})
    began = {one: store.get_run(one).created_at for one in {*ids, *starts.values()}}
    past = []
    for one in sorted(ids, key=lambda name: (began[name], name)):
        known = store.past_run(one)
        medians = {
            key: value
            for key, value in known.medians.items()
            if starts.get(key) == one
            or (
                (one in numbers or (one in same_seed and depends_on_seed(key)))
                and (key not in starts or began[one] >= began[starts[key]])
            )
        }
        losses = known.losses if one in well else {}
        past.append(known.model_copy(update={"medians": medians, "losses": losses}))
    return _by_seed(past, run.seed, seeds)


def _by_seed(past: list[PastRun], seed: int | None, needed: int) -> tuple[PastRun, ...]:
    """Return the runs without losses and accuracies of other seeds."""
    latest: dict[int | None, str] = {one.seed: one.run for one in past}
    several = sum(one.seed == seed for one in past) < needed <= len(latest)
    kept = []
    for one in past:
        of_seed = latest[one.seed] == one.run if several else one.seed == seed
        medians = {key: value for key, value in one.medians.items() if of_seed or not depends_on_seed(key)}
        kept.append(one.model_copy(update={"medians": medians}))
    return tuple(kept)


def depends_on_seed(key: str) -> bool:
    """Whether a key of `numbers_of` is a loss or an accuracy, which depend on the seed."""
    name = plain_metric(key.rpartition("|")[2])
    return metric(name).family == "quality" or is_loss(name)
