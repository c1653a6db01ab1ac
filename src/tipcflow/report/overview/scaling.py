"""Scaling chains: throughput, speed-up and efficiency by topology, each compared with the one before."""

from collections.abc import Iterable, Mapping

from pydantic import BaseModel, ConfigDict

from tipcflow.domain import Run, Status
from tipcflow.domain.run.scaling import ScaledTopology, ScalingDocument


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class TopologyRow(_Model):
    """A topology of a scaling chain; see `ScaledTopology`.

    Attributes:
        previous: median of the same topology in the previous series; None without one.
    """

    topology: str
    devices: int
    batch_size_per_device: int
    run: str
    status: Status
    reason: str
    repeats: int
    average_speed: float | None
    median_speed: float | None
    spread: float | None
    speedup: float | None
    efficiency: float | None
    previous: float | None

    @property
    def change(self) -> float | None:
        """Return the relative change of the median since the previous series: 0.1 is 10 % faster."""
        if not self.previous or self.median_speed is None:
            return None
        return self.median_speed / self.previous - 1


class ScalingSeries(_Model):
    """A scaling chain; `run` is its last run, and `previous` that of the series it is compared with.

    Attributes:
        rule: origin of the speeds: `printed`, or `time`.
        notes: for the user, such as implausible speed-ups.
    """

    run: str
    chain: str
    cluster: str
    framework: str
    created_at: float
    precision: str
    rule: str
    previous: str
    topologies: tuple[TopologyRow, ...]
    notes: tuple[str, ...]


class ScalingList(_Model):
    """Scaling chains, newest first."""

    schema_version: int = 1
    at: float
    days: float
    series: tuple[ScalingSeries, ...]


def scaling_list(
    documents: Mapping[str, ScalingDocument], runs: Mapping[str, Run], *, at: float, days: float, since: float
) -> ScalingList:
    """Return the series whose last run started after a time.

    A series is compared with the one before of the same chain, cluster, precision and rule.

    Args:
        documents: last run -> series, also of earlier times.
        runs: id -> run.
        since: seconds since the epoch.
    """
    known = sorted((run for run in documents if run in runs), key=lambda run: (runs[run].created_at, run))
    before: dict[tuple[str, ...], str] = {}
    series = []
    for run_id in known:
        document, run = documents[run_id], runs[run_id]
        key = (run.chain, run.cluster, document.precision, document.rule)
        if run.created_at >= since:
            previous = before.get(key, "")
            series.append(_series(run, document, previous, documents[previous].topologies if previous else ()))
        before[key] = run_id
    return ScalingList(at=at, days=days, series=tuple(reversed(series)))


def _series(
    run: Run, document: ScalingDocument, previous: str, earlier: Iterable[ScaledTopology]
) -> ScalingSeries:
    medians = {(entry.topology, entry.batch_size_per_device): entry.median_speed for entry in earlier}
    rows = tuple(
        TopologyRow(**entry.model_dump(), previous=medians.get((entry.topology, entry.batch_size_per_device)))
        for entry in sorted(document.topologies, key=lambda entry: (entry.median_speed is None, entry.devices))
    )
    return ScalingSeries(
        run=run.id,
        chain=run.chain,
        cluster=run.cluster,
        framework=run.framework,
        created_at=run.created_at,
        precision=document.precision,
        rule=document.rule,
        previous=previous,
        topologies=rows,
        notes=document.notes,
    )
