"""Parser of the node agent's resource samples, and of the peaks in its exit records.

A line of `samples.jsonl`; memory in bytes by rank ('' for processes without a rank: launcher, single
processes):

    {"t": 1763717412.5, "leg": "", "rss": {"0": 345678848, "": 314572800}, "total": 660251648, "cpu_s": 9.5,
     "procs": 3}

(on one line). With GPUs there is also `"gpu": {"0": 1234567890}`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tipcflow.domain import ExitRecord, Measurement, Phase
from tipcflow.domain.numbers.metrics import PROBES

_TOTAL = "total"


@dataclass(frozen=True, slots=True)
class ResourceSample:
    """One sample of the processes of a job.

    Attributes:
        at: seconds since the epoch by the node's clock.
        rss, gpu: rank -> bytes; rank -1 is everything without a rank.
        total: bytes of resident memory of all processes together.
        cpu_s: CPU seconds used so far by the processes that are alive at that time.
    """

    offset: int
    at: float
    leg: str
    rss: dict[int, int]
    gpu: dict[int, int]
    total: int
    cpu_s: float
    processes: int


def parse_resources(lines: Iterable[tuple[int, str]]) -> Iterator[ResourceSample]:
    """Yield the samples of a file; a line that is incomplete or not a sample is skipped."""
    for offset, line in lines:
        try:
            sample = json.loads(line)
            yield ResourceSample(
                offset=offset,
                at=float(sample["t"]),
                leg=str(sample.get("leg", "")),
                rss=_ranks(sample.get("rss", {})),
                gpu=_ranks(sample.get("gpu", {})),
                total=int(sample.get("total", 0)),
                cpu_s=float(sample.get("cpu_s", 0.0)),
                processes=int(sample.get("procs", 0)),
            )
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            continue


def _ranks(values: Mapping[str, int]) -> dict[int, int]:
    return {int(rank) if rank.isdecimal() else -1: int(size) for rank, size in values.items() if rank != _TOTAL}


def probe_measurements(record: ExitRecord) -> list[Measurement]:
    """Return the node probes before and after a job: `probe.cpu`, `probe.memory` and `probe.disk`, seconds."""
    return [
        Measurement(
            run=record.run,
            step=record.step,
            attempt=record.attempt,
            node=record.node,
            rank=-1,
            metric=f"probe.{name}",
            phase=Phase.RESOURCE,
            ordinal=number,
            value=value,
            unit="s",
            source="exit record",
        )
        for name, timed in sorted(record.probes.items())
        for number, value in enumerate(timed)
        if f"probe.{name}" in PROBES
    ]


def peak_measurements(record: ExitRecord) -> list[Measurement]:
    """Return the peak memory of a job or leg: one `peak_rss` (and `peak_gpu`) per rank; rank -1 is the sum of
    all processes.

    The key '' of a record (processes without a rank) is part of the sum and gives no measurement of its own.
    No sum of GPU memory is recorded, so '' replaces the sum there if no process has a rank.
    """
    return [
        Measurement(
            run=record.run,
            step=record.step,
            leg=record.leg,
            attempt=record.attempt,
            node=record.node,
            rank=int(key) if key.isdecimal() else -1,
            metric=metric,
            phase=Phase.RESOURCE,
            value=float(peak),
            unit="bytes",
            source="exit record",
        )
        for metric, peaks in (("peak_rss", record.peak_rss_bytes), ("peak_gpu", record.peak_gpu_bytes))
        for key, peak in sorted(peaks.items())
        if key == _TOTAL or key.isdecimal() or set(peaks) == {""}
    ]
