"""Fills a metrics database of its own with the sample history."""

import hashlib
import random
import time
from collections.abc import Callable, Iterator
from itertools import islice

from devcluster.sample_history.chains import CHAINS, NODES, V100, SampleChain
from devcluster.sample_history.decisions import COMPARED, add_decisions
from devcluster.sample_history.runs import CHANGE, WEEKLY, Turn, generate
from devcluster.sample_history.scaling import add_scaling
from devcluster.sample_history.story import PROBLEMS, WEEK_S, WEEKS, Outcome, commit_of, framework_of, outcome_of
from tipcflow.domain import ConfigError, Status
from tipcflow.domain.triggers import AB, CONFIRM
from tipcflow.store import Store
from tipcflow.store.recorded import RecordedRun

_AT_ONCE = 100
_REPORT_S = 3.0
# Pull requests per week, each with runs of two chains.
_CHANGES = 3
_AB_RUNS = 2
_RERUN = (Status.INFRA_FAILURE, Status.FAILED)


def fill(
    url: str, report: Callable[[str], None], *, now: float | None = None, weeks: int = WEEKS, chains: int = 0
) -> int:
    """Fill a database with generated runs; the newest ones are of the last days. Returns their number.

    The same `now` gives the same runs.

    Args:
        report: gets a line of progress every few seconds.
        weeks: length of the history, at most `WEEKS`.
        chains: number of chains; 0 for all.

    Raises:
        ConfigError: the database has runs.
    """
    now = time.time() if now is None else now
    with Store.open(url) as store:
        generated, others = store.recorded.counts()
        if others:
            raise ConfigError(
                "the database has runs that are not generated",
                key="--database",
                found=f"{others} runs in {store.url}",
                expected="a database of its own, for example --database sqlite:////tmp/history.db",
            )
        if generated:
            raise ConfigError(
                "the database has a sample history already",
                key="--database",
                found=f"{generated} generated runs in {store.url}",
                expected="an empty database; delete the old one to generate runs up to today",
            )
        count = _fill(store, _history(now, weeks, CHAINS[: chains or None]), report)
        for chain in CHAINS[: chains or None]:
            add_scaling(store, chain)
        add_decisions(store, CHAINS[: chains or None])
        return count


def _fill(store: Store, history: Iterator[RecordedRun], report: Callable[[str], None]) -> int:
    count, reported = 0, time.monotonic()
    while batch := list(islice(history, _AT_ONCE)):
        store.recorded.add(batch)
        count += len(batch)
        if time.monotonic() - reported > _REPORT_S:
            reported = time.monotonic()
            day = time.strftime("%Y-%m-%d", time.gmtime(batch[-1].run.created_at))
            report(f"{count} runs, up to {day}")
    return count


def _history(now: float, weeks: int, chains: tuple[SampleChain, ...]) -> Iterator[RecordedRun]:
    """Yield all runs, oldest week first. The last week ended half a day ago."""
    for week in range(WEEKS - weeks, WEEKS):
        monday = now - (WEEKS - week) * WEEK_S
        for place, chain in enumerate(chains):
            yield from _week_of(chain, place, week, monday + 5.5 * 86_400, now)
        if week < WEEKS - 1:
            yield from _changes(chains, week, monday, now)


def _week_of(chain: SampleChain, place: int, week: int, begins: float, now: float) -> Iterator[RecordedRun]:
    """Yield the weekly run of a chain on each of its clusters, and what follows from its end."""
    for cluster in chain.clusters:
        rng = random.Random(f"{chain.name} {cluster} {week}")
        framework, commit = framework_of(week, cluster, now), commit_of(chain.suite, week)
        nodes = (NODES[cluster][(place + week) % len(NODES[cluster])],)
        at = begins + place * 600 + rng.randrange(60)
        turn = Turn(at, WEEKLY, "weekly", framework, commit, cluster, nodes)
        outcome = outcome_of(chain, cluster, week, nodes, rng)
        yield generate(chain, turn, outcome, rng)
        if chain.model in COMPARED and cluster == V100 and week == WEEKS - 1:
            for number in range(_AB_RUNS):
                pair = Turn(at + 4800 + 1200 * number, WEEKLY, AB, framework, commit, cluster, nodes)
                yield generate(chain, pair, Outcome(Status.PASS, "", outcome.factors), rng)
        begun = any(problem.concerns(chain, week) and problem.first == week for problem in PROBLEMS)
        if outcome.status is Status.REGRESSION and begun:
            again = Turn(at + 2400, WEEKLY, CONFIRM, framework, commit, cluster, nodes)
            yield generate(chain, again, Outcome(Status.PASS, "", outcome.factors), rng)
        elif outcome.status in _RERUN and week < WEEKS - 1:
            others = tuple(node for node in NODES[cluster] if node not in nodes)
            again = Turn(at + 7200, WEEKLY, "manual", framework, commit, cluster, (rng.choice(others),))
            yield generate(chain, again, outcome_of(chain, cluster, week, again.nodes, rng), rng)


def _changes(chains: tuple[SampleChain, ...], week: int, monday: float, now: float) -> Iterator[RecordedRun]:
    """Yield runs of pull requests: they are compared with the target branch and join no history."""
    for number in range(_CHANGES):
        rng = random.Random(f"change {week} {number}")
        suite = rng.choice(chains).suite
        base = commit_of(suite, week)
        commit = hashlib.sha1(f"change {week} {number}".encode(), usedforsecurity=False).hexdigest()
        own = [chain for chain in chains if chain.suite == suite]
        for place, chain in enumerate(rng.sample(own, min(2, len(own)))):
            at = monday + 86_400 * (1 + number) + 1800 * place
            nodes = (rng.choice(NODES[V100]),)
            framework = framework_of(week, V100, now)
            if week == WEEKS - 2:  # the newest pull requests can be compared with a run of their target branch
                before = Turn(at - 7200, CHANGE, "manual", framework, base, V100, nodes)
                yield generate(
                    chain, before, Outcome(Status.PASS, "", {}), random.Random(f"base {number} {place}")
                )
            turn = Turn(at, CHANGE, "ci", framework, commit, V100, nodes, merge_base=base)
            fails = rng.random() < 0.2
            reason = "train: exit code 1: TypeError: forward() missing 1 required positional argument: 'x'"
            outcome = Outcome(Status.FAILED, reason, {}, step="train") if fails else Outcome(Status.PASS, "", {})
            yield generate(chain, turn, outcome, rng)
