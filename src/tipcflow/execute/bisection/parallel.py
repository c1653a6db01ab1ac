"""The loop of a bisection with several runs at the same time."""

import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcflow.domain import Cluster, Run
from tipcflow.execute.bisection.loop import Bisection, Progress
from tipcflow.execute.resolve.placement import doubtful_nodes, load_of

if TYPE_CHECKING:
    from tipcflow.store import Store

_POLL_S = 2.0


@dataclass(frozen=True)
class Round:
    """What changed since the last round.

    Attributes:
        ended: (index of the version, run) of the runs that have ended.
        started: indices of the versions of the runs that start.
        active: number of runs that were active before these starts.
    """

    progress: Progress
    ended: tuple[tuple[int, Run], ...]
    started: tuple[int, ...]
    active: int


def run_in_parallel(
    bisection: Bisection, *, may_start: Callable[[], bool], stop: Callable[[], None], poll_s: float = _POLL_S
) -> Iterator[Round]:
    """Yield a round whenever runs have ended or start; the last one has the result, and no run is active then.

    A run that has ended is replaced at once: the next version is chosen by the expected information together with
    the active runs. Active runs are cancelled when the result is certain, and after an error.

    Args:
        may_start: whether a further run may start while others are active.
        stop: cancels the active runs.
        poll_s: time between two calls of `may_start`.

    Raises:
        ConfigError, InfraError: as `Bisection.run`.
    """
    began, own, active = time.monotonic(), list[tuple[int, Run]](), dict[Future[Run], int]()
    ended: tuple[tuple[int, Run], ...] = ()
    with ThreadPoolExecutor(bisection.parallel, thread_name_prefix="bisection") as pool:
        try:
            while True:
                places = tuple(active.values())
                progress = bisection.advance(own, time.monotonic() - began, active=places)
                if progress.is_certain or not (active or progress.next is not None):
                    break
                started = _to_start(bisection, progress, places, may_start)
                active |= {pool.submit(bisection.execute, bisection.versions[place]): place for place in started}
                if started or ended:
                    yield Round(progress, ended, started, len(places))
                ended = _ended(bisection, progress, active, may_start, poll_s)
                own += ended
        finally:
            if active:
                stop()
    yield Round(progress, ended, (), 0)


def _to_start(
    bisection: Bisection, progress: Progress, active: Collection[int], may_start: Callable[[], bool]
) -> tuple[int, ...]:
    """Return the version to start now, or none.

    One at a time: its run must have its nodes before the free ones are counted.
    """
    if progress.next is None or len(active) >= bisection.parallel or (active and not may_start()):
        return ()
    return (progress.next,)


def _ended(
    bisection: Bisection,
    progress: Progress,
    active: dict[Future[Run], int],
    may_start: Callable[[], bool],
    poll_s: float,
) -> tuple[tuple[int, Run], ...]:
    """Wait until a run has ended or a further one may start; remove and return the ended ones."""
    while True:
        done, _ = wait(active, timeout=poll_s, return_when=FIRST_COMPLETED)
        if done:
            return tuple((active.pop(future), future.result()) for future in done)
        if progress.waits or progress.next is None:
            continue
        if len(active) < bisection.parallel and may_start():
            return ()


def has_free_nodes(store: "Store", cluster: Cluster, runs: Collection[str]) -> bool:
    """Whether another run like these would get its nodes at once: nothing uses them, and no run waits for slots.

    Args:
        runs: active runs; their nodes must be known.
    """
    if cluster.slurm is not None:
        return True  # Slurm queues the runs
    known = store.runs.known(sorted(runs))
    sizes = [len(run.nodes) for run in known.values()]
    if len(known) < len(runs) or not all(sizes) or store.queue.places():
        return False
    load, doubtful = load_of(store, cluster, ""), doubtful_nodes(store, cluster)
    free = [node for node in cluster.nodes if not load.get(node.name) and node.name not in doubtful]
    return len(free) >= max(sizes, default=1)
