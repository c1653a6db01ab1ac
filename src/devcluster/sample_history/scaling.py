"""Scaling chains of the sample history: two series of two chains, on the runs of two weeks."""

import random

from devcluster.sample_history.chains import V100, SampleChain
from tipcflow.domain import Status
from tipcflow.domain.run.scaling import ScaledTopology, ScalingDocument
from tipcflow.store import Store

# Models with scaling chains, and the samples/s of one device in the earlier and in the newer series.
SPEEDS = {"ResNet50": (378.0, 402.0), "ResNet101": (221.0, 219.0)}
_BATCH, _REPEATS, _NODES = 128, 5, 2
# Nodes and devices per node, and the share of linear speed that they reach.
_EFFICIENCY = {(1, 1): 1.0, (1, 4): 0.965, (1, 8): 0.94, (2, 8): 0.905}


def add_scaling(store: Store, chain: SampleChain) -> None:
    """Store the series of a chain with its newest run and with one of about half a year before."""
    if chain.model not in SPEEDS:
        return
    runs = [run for run in store.runs.newest(chain=chain.name, limit=60) if run.cluster == V100]
    for run, speed in zip((runs[min(26, len(runs) - 1)], runs[0]), SPEEDS[chain.model], strict=True):
        rng = random.Random(f"{chain.name} {run.id}")
        entries = [_topology(nodes, devices, speed, run.id, rng) for nodes, devices in _EFFICIENCY]
        why = f"4 nodes needed, cluster {V100} has {_NODES} idle"
        entries.append(ScaledTopology(topology="4n8g", batch_size_per_device=_BATCH, reason=why))
        series = ScalingDocument(
            precision="fp32", repeats=_REPEATS, rule="printed", skip=50, take=100, topologies=tuple(entries)
        )
        store.documents.put(run.id, series)


def _topology(nodes: int, devices: int, speed: float, run: str, rng: random.Random) -> ScaledTopology:
    total = nodes * devices
    efficiency = _EFFICIENCY[nodes, devices] * (rng.uniform(0.99, 1.01) if total > 1 else 1.0)
    median = speed * total * efficiency
    return ScaledTopology(
        topology=f"{nodes}n{devices}g",
        batch_size_per_device=_BATCH,
        run=run,
        status=Status.PASS,
        devices=total,
        repeats=_REPEATS,
        average_speed=round(median * rng.uniform(0.998, 1.002), 2),
        median_speed=round(median, 2),
        spread=round(rng.uniform(0.004, 0.02), 4),
        speedup=round(total * efficiency, 2),
        efficiency=round(efficiency, 4),
    )
