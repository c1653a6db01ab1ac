"""The context of checks: earlier accepted runs, and user decisions about them."""

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from tipcflow.check import BaseRuns, CheckContext, Pin
from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.config.run_documents import GoldensDocument, SuiteDocument
from tipcflow.config.suite import Prints
from tipcflow.domain import LOOK_BACK, Declared, LegKey, MetricKey, PastRun, Run, Status
from tipcflow.domain.numbers.metrics import is_loss, metric
from tipcflow.domain.quarantine.entry import Quarantine
from tipcflow.domain.run.kept_files import LostFilesDocument
from tipcflow.domain.run_documents import (
    ExpectedDocument,
    FoundDocument,
    IncomparableDocument,
    MergeBaseDocument,
)
from tipcflow.domain.triggers import AB, BISECT
from tipcflow.execute.verdict import confirm
from tipcflow.execute.verdict.confirmed import confirmation_of
from tipcflow.execute.verdict.older_runs import lapsed_parts, older_runs

if TYPE_CHECKING:
    from tipcflow.store import Baseline, Store


@dataclass
class ActiveDecisions:
    """Active decisions per metric: the pinned value, and the first run of the history."""

    pins: dict[MetricKey, Pin] = field(default_factory=dict)
    starts: dict[MetricKey, str] = field(default_factory=dict)


def active_decisions(decisions: "Iterable[Baseline]") -> ActiveDecisions:
    """Apply decisions in order; a reset removes earlier ones."""
    active = ActiveDecisions()
    for decision in decisions:
        key = MetricKey(decision.step, decision.leg, decision.metric)
        if not math.isfinite(decision.value):
            active.pins.pop(key, None)
            active.starts.pop(key, None)
        elif decision.pinned:
            active.pins[key] = Pin(value=decision.value, run=decision.run, who=decision.who, why=decision.why)
        else:
            active.starts[key] = decision.run
    return active


def build_check_context(
    store: "Store", run: Run, *, rules: Policy, references: References, as_of: float | None = None
) -> CheckContext:
    """Return everything that checks may use in addition to the run's own facts.

    Args:
        rules, references: as of the resolution of the run, like the goldens.
        as_of: only runs that had ended and decisions that were made by then, seconds since the epoch.
    """
    incomparable = store.documents.get(run.id, IncomparableDocument) is not None
    decisions = store.baselines.decisions(run.chain, run.mode, run.environment)
    in_force = active_decisions(
        decision for decision in decisions if as_of is None or decision.accepted_at <= as_of
    )
    documents = store.documents.several(run.id, (GoldensDocument, ExpectedDocument, LostFilesDocument))
    goldens, recorded = documents.get(GoldensDocument), documents.get(ExpectedDocument)
    history, base = _history_and_base(store, run, in_force.starts, rules, as_of=as_of)
    numbers = {"limit": rules.history, "needed": rules.min_history}
    accepted = _comparable(store, run, as_of, newest=base is not None and base.is_short)
    return CheckContext(
        history=history,
        base=base,
        doubtful=doubtful_runs(store, run, history, limit=rules.history, as_of=as_of),
        before=declared_before(store, history) or (None if incomparable else _declared_by_any(store, run, as_of)),
        references=references,
        goldens=goldens.root if goldens else None,
        confirmation=confirmation_of(store, run.id),
        unconfirmable=confirm.unconfirmable(store, run, rules),
        evaluable=confirm.evaluable(store, run, rules),
        pins=in_force.pins,
        probes=store.history.node_probes(run, limit=rules.history),
        policy=rules,
        expected=recorded.root if recorded else (),
        prints=declared_prints(store, run.id),
        elsewhere=("", 0) if incomparable else store.history.elsewhere(run, enough=rules.min_history),
        quarantines=_quarantines(store, run, as_of),
        lost_files=documents.get(LostFilesDocument),
        lapsed={} if incomparable else lapsed_parts(store, run.id, history, accepted, **numbers),
        run=run,
    )


def doubtful_runs(
    store: "Store", run: Run, history: Sequence[PastRun], *, limit: int, as_of: float | None
) -> dict[str, tuple[PastRun, ...]]:
    """Return the unconfirmed runs among the history, by the accepted run before them, oldest first.

    A change is compared with the history of its merge base only: unconfirmed runs of other changes are no evidence
    about it.

    Args:
        history: what `history_of` returned for the run.
        limit: number of unconfirmed runs, the newest.
    """
    if not history or store.documents.get(run.id, MergeBaseDocument):
        return {}
    ids = _accepted(store, run, as_of)(limit=limit, statuses=(Status.UNCONFIRMED,))
    if not ids:
        return {}
    known, loaded = store.runs.known({*ids, *(past.run for past in history)}), store.numbers.past(ids)
    times = sorted((known[past.run].created_at, past.run) for past in history)
    found: dict[str, list[PastRun]] = {}
    for name in reversed(ids):
        at = bisect_left(times, (known[name].created_at, name))
        if at and loaded[name].confirms:
            found.setdefault(times[at - 1][1], []).append(loaded[name])
    return {name: tuple(runs) for name, runs in found.items()}


def _quarantines(store: "Store", run: Run, as_of: float | None) -> tuple[Quarantine, ...]:
    """Return the quarantines in force; none for a run that searches for the cause of a failure."""
    if run.trigger in (AB, BISECT):
        return ()
    at = store.now() if as_of is None else as_of
    known = store.quarantines.of_line(run.chain, run.mode, run.environment)
    return tuple(quarantine for quarantine in known if quarantine.is_active(at))


def declared_prints(store: "Store", run_id: str) -> Prints:
    """Return what the suite declares about its logs, as of the resolution of the run."""
    suite = store.documents.get(run_id, SuiteDocument)
    return suite.root.prints if suite else Prints()


def history_of(
    store: "Store",
    run: Run,
    starts: Mapping[MetricKey, str],
    rules: Policy,
    *,
    as_of: float | None = None,
    load: Callable[[Collection[str]], Mapping[str, PastRun]] | None = None,
) -> tuple[PastRun, ...]:
    """Return the runs that a policy compares this run with, oldest first (`past_runs`).

    A change is compared with the newest runs if those of its merge base are fewer than the policy requires.
    """
    return _history_and_base(store, run, starts, rules, as_of=as_of, load=load)[0]


def _history_and_base(
    store: "Store",
    run: Run,
    starts: Mapping[MetricKey, str],
    rules: Policy,
    *,
    as_of: float | None = None,
    load: Callable[[Collection[str]], Mapping[str, PastRun]] | None = None,
) -> tuple[tuple[PastRun, ...], BaseRuns | None]:
    """Return the runs that a run is compared with, and those of its merge base; None for a run without one."""
    seeds = rules.comparison.seeds or rules.min_history
    select = partial(past_runs, store, run, starts, limit=rules.history, seeds=seeds, as_of=as_of)
    documents = store.documents.several(run.id, (MergeBaseDocument, IncomparableDocument))
    base = documents.get(MergeBaseDocument)
    if base is None or documents.get(IncomparableDocument):
        return select(load=load), None
    number, is_short = _base_line(_accepted(store, run, as_of), base, rules.history, needed=rules.min_history)
    if is_short:
        return select(load=load, newest=True), BaseRuns(base.commit, number, is_short=True)
    newest = select(load=store.numbers.past, newest=True)
    return select(load=load), BaseRuns(base.commit, number, newest)


def _base_line(
    accepted: Callable[..., list[str]], base: MergeBaseDocument, limit: int, *, needed: int
) -> tuple[int, bool]:
    """Return the number of runs of a merge base, and whether only the newest runs of the chain are enough."""
    number = len(accepted(commits=base.commits, limit=limit))
    return number, number < needed <= len(accepted(limit=limit))


def declared_before(store: "Store", history: Sequence[PastRun]) -> Declared | None:
    """Return what the plan of the last earlier run declared; None without one."""
    for past in reversed(history):
        plan = store.plans.get_or_none(past.run)
        if plan is not None:
            return Declared.of(past.run, plan)
    return None


def _declared_by_any(store: "Store", run: Run, as_of: float | None) -> Declared | None:
    """Return what the last earlier run declared whatever its status and environment: a leg that has never passed
    can be removed, too. For a change it is one of its merge base, if that has one."""
    base = store.documents.get(run.id, MergeBaseDocument)
    ids = store.history.planned_before(run, commits=base.commits, ended_by=as_of) if base else []
    ids = ids or store.history.planned_before(run, ended_by=as_of)
    plans = ((run_id, store.plans.get_or_none(run_id)) for run_id in ids)
    return next((Declared.of(run_id, plan) for run_id, plan in plans if plan is not None), None)


def found_before(store: "Store", run: Run, rules: Policy) -> tuple[PastRun, ...]:
    """Return the evidence of the runs that this run is compared with, oldest first, without metrics: of each step
    and leg at least `min_history` runs that executed it, if as many are known."""
    if store.documents.get(run.id, IncomparableDocument):
        return ()
    base, limit = store.documents.get(run.id, MergeBaseDocument), rules.min_history
    is_short = base is not None and _base_line(_accepted(store, run), base, limit, needed=limit)[1]
    accepted = _comparable(store, run, newest=is_short)
    ids = accepted(limit=limit)
    loaded = _evidence_of(store, ids)
    search = LOOK_BACK * rules.history
    older = older_runs(store, run.id, list(loaded.values()), accepted, limit=limit, search=search)
    before = [past.of_parts(older[past.run]) for past in _evidence_of(store, older).values()]
    began = store.runs.known({*ids, *older})
    past = [*before, *(own.model_copy(update={"parts": own.measured}) for own in loaded.values())]
    return tuple(sorted(past, key=lambda own: (began[own.run].created_at, own.run)))


def _evidence_of(store: "Store", run_ids: Collection[str]) -> dict[str, PastRun]:
    documents = store.documents.of_runs(FoundDocument, run_ids)
    none = FoundDocument()
    return {run_id: PastRun(run=run_id, found=documents.get(run_id, none).root) for run_id in run_ids}


def _comparable(
    store: "Store", run: Run, as_of: float | None = None, *, newest: bool = False
) -> Callable[..., list[str]]:
    """Return a query for the accepted runs that this run is compared with: a change with its merge base, unless
    `newest`."""
    base = store.documents.get(run.id, MergeBaseDocument)
    return partial(_accepted(store, run, as_of), commits=None if base is None or newest else base.commits)


def _accepted(store: "Store", run: Run, as_of: float | None = None) -> Callable[..., list[str]]:
    """Return a query for accepted runs comparable with this run, newest first."""
    accepted = partial(store.history.accepted, run.chain, run.mode, run.environment, compat=run.compat)
    return partial(accepted, exclude=run.id, ended_by=as_of)


def past_runs(
    store: "Store",
    run: Run,
    starts: Mapping[MetricKey, str],
    *,
    limit: int,
    seeds: int = 5,
    as_of: float | None = None,
    load: Callable[[Collection[str]], Mapping[str, PastRun]] | None = None,
    newest: bool = False,
) -> tuple[PastRun, ...]:
    """Return the runs that this run is compared with, oldest first; empty if none is comparable.

    Losses and accuracies depend on the seed: they are compared with runs of the same seed. If fewer than `seeds`
        of those exist but runs with at least `seeds` different seeds, they are compared with one run per seed.

    A change is compared with its merge base's history. Earlier runs of the same commit show whether it is
    reproducible, not whether it is slower. Runs that left a leg out do not count for it, but older ones do.

    A metric with an accepted change is compared with runs from that change on, because earlier values belong to
    another history. The run with the accepted change counts for that metric, whatever its status.

    Args:
        starts: metric -> run whose change was accepted.
        seeds: required number of runs with the same seed, or of different seeds.
        as_of: only runs that had ended by then, seconds since the epoch.
        load: reads these runs; by default everything that checks compare, not metric values only.
        newest: whether a change is compared with the newest runs of the chain, instead of its merge base's.
    """
    if store.documents.get(run.id, IncomparableDocument):
        return ()
    accepted = _comparable(store, run, as_of, newest=newest)
    base = store.documents.get(run.id, MergeBaseDocument)
    ids = accepted(limit=limit)
    whole = tuple(ids)
    same_seed = set(accepted(seeds=[run.seed], limit=limit)) - set(whole)
    ids += sorted(same_seed)
    if base and run.suite_commit not in base.commits:
        ids += sorted({*accepted(commits=[run.suite_commit], limit=1)} - {*ids})
    well = set(ids)
    ids += sorted(set(starts.values()) - {*ids, run.id})
    listed = declared_prints(store, run.id).losses
    read = load or (lambda names: {name: store.history.past_run(name, losses=listed) for name in names})
    loaded = dict(read(ids))
    older = older_runs(store, run.id, [loaded[name] for name in whole], accepted, limit=limit)
    aside = {name: past.of_parts(older[name]) for name, past in read(older.keys() - loaded.keys()).items()}
    loaded, well = {**loaded, **aside}, well | aside.keys()
    began = {name: known.created_at for name, known in store.runs.known({*loaded, *starts.values()}).items()}
    past = []
    for run_id in sorted(loaded, key=lambda name: (began[name], name)):
        earlier = loaded[run_id]
        legs = None if run_id in whole else older.get(run_id, ())
        values = _counted(earlier, legs, listed if run_id in same_seed else None)
        changes = {
            "medians": _since_accepted(values, earlier, starts, began),
            "losses": earlier.losses if run_id in well else {},
            "parts": earlier.measured if earlier.parts is None else earlier.parts,
        }
        past.append(earlier.model_copy(update=changes))
    return _by_seed(past, run.seed, seeds, listed, aside)


def _counted(
    past: PastRun, legs: Container[LegKey] | None, listed: Collection[str] | None
) -> dict[MetricKey, float]:
    """Return the metric values of an earlier run that count.

    Args:
        legs: the steps and legs of which all values count; None for all.
        listed: patterns of losses, if losses and accuracies of all steps count.
    """
    return {
        key: value
        for key, value in past.medians.items()
        if legs is None
        or LegKey(key.step, key.leg) in legs
        or (listed is not None and depends_on_seed(key, listed))
    }


def _since_accepted(
    values: Mapping[MetricKey, float], past: PastRun, starts: Mapping[MetricKey, str], began: Mapping[str, float]
) -> dict[MetricKey, float]:
    """Return the values of metrics without an accepted change, or from that change on."""
    since = {
        key: value for key, value in values.items() if key not in starts or began[past.run] >= began[starts[key]]
    }
    accepted = {key: value for key, value in past.medians.items() if starts.get(key) == past.run}
    return dict(sorted((since | accepted).items()))


def _by_seed(
    past: list[PastRun], seed: int | None, needed: int, listed: Collection[str], aside: Container[str]
) -> tuple[PastRun, ...]:
    """Return the runs without losses and accuracies of other seeds; runs in `aside` show no further seed."""
    whole = [past_run for past_run in past if past_run.run not in aside]
    latest: dict[int | None, str] = {past_run.seed: past_run.run for past_run in whole}
    one_per_seed = sum(past_run.seed == seed for past_run in whole) < needed <= len(latest)
    kept = []
    for past_run in past:
        of_seed = latest.get(past_run.seed) == past_run.run if one_per_seed else past_run.seed == seed
        medians = {
            key: value for key, value in past_run.medians.items() if of_seed or not depends_on_seed(key, listed)
        }
        kept.append(past_run.model_copy(update={"medians": medians}))
    return tuple(kept)


def depends_on_seed(key: MetricKey, listed: Collection[str] = ()) -> bool:
    """Whether a key of `numbers_of` is a loss or an accuracy, which depend on the seed.

    Args:
        listed: patterns of names that the suite declares to be losses.
    """
    return metric(key.plain_metric).family == "quality" or is_loss(key.plain_metric, listed)
