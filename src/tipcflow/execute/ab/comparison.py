"""The loop of an A/B comparison: pairs of runs in turn, until each metric is decided."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcflow.domain import Run
from tipcflow.execute.ab.progress import Limits, Progress, Tried, next_order, progress_of
from tipcflow.execute.request import RunRequest

if TYPE_CHECKING:
    from tipcflow.store import Store


@dataclass(frozen=True)
class Side:
    """One of the two versions.

    Attributes:
        label: A or B.
        name: what is tested: ref and framework.
        request: of each of its runs.
        commit: of the suite; '' for its working tree.
    """

    label: str
    name: str
    request: RunRequest
    commit: str = ""


@dataclass(frozen=True)
class Comparison:
    """A comparison of two versions of a chain.

    Attributes:
        names: metrics that are compared; none for all speeds.
        execute: runs both sides one after the other on the same nodes and returns the runs in that order.
    """

    store: "Store"
    a: Side
    b: Side
    names: tuple[str, ...]
    limits: Limits
    execute: Callable[[Side, Side], tuple[Run, Run]]

    def run(self) -> Iterator[Progress]:
        """Yield the progress after each pair that counts or ends the comparison; the last one has `why`.

        Raises:
            InfraError: two pairs in a row did not end for reasons of the cluster.
            ConfigError: no run of either side has a metric.
        """
        sides, began, tried = {"A": self.a, "B": self.b}, time.monotonic(), list[Tried]()
        while True:
            order = next_order(tried)
            tried.append(Tried(order, self.execute(sides[order[0]], sides[order[1]])))
            progress = progress_of(self.store, self.names, self.limits, tried, time.monotonic() - began)
            if tried[-1].broken and not progress.why:
                continue
            yield progress
            if progress.why:
                return
