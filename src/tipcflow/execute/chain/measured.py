"""Which metrics a chain has, by its stored runs: a request that names another one is refused before a run."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tipcflow.domain import MetricKey, Status
from tipcflow.domain.numbers.metrics import metric

if TYPE_CHECKING:
    from tipcflow.store import Store

# A run that failed may have ended before it measured a metric.
_WHOLE = frozenset({Status.PASS, Status.IMPROVEMENT, Status.REGRESSION, Status.UNCONFIRMED})
_RUNS = 20
_STORED = 500


@dataclass(frozen=True)
class ChainMetrics:
    """The metrics of the newest complete runs of a chain in one mode.

    Attributes:
        where: the chain and the mode, for messages.
        runs: number of these runs; 0 if nothing is known about the chain.
        keys: their metrics for which a lower or a higher value is better.
    """

    where: str = ""
    runs: int = 0
    keys: frozenset[MetricKey] = frozenset()

    @property
    def sentence(self) -> str:
        """What these runs did not do, as the message of an error."""
        number = "the newest run" if self.runs == 1 else f"none of the {self.runs} newest runs"
        return f"{number} of {self.where} {'did not measure it' if self.runs == 1 else 'measured it'}"


def chain_metrics(store: "Store", chain: str, mode: str, compat: str) -> ChainMetrics:
    """Return the metrics of the newest complete runs of a chain; they are of any version and any hardware."""
    runs = [
        run
        for run in store.runs.newest(chain=chain, limit=_STORED)
        if run.status in _WHOLE and (run.mode, run.compat) == (mode, compat)
    ][:_RUNS]
    keys = {key for run in runs for key in store.history.past_run(run.id).medians}
    known = frozenset(key for key in keys if metric(key.plain_metric).better != "none")
    return ChainMetrics(f"{chain} in {mode}", len(runs) if known else 0, known)
