"""Resource samples of the node runner, and the peaks of its exit records, as measurements.

A line of `samples.jsonl` (bytes; `ranks` are the ranks on this node, '' what belongs to none):

    {"t": 12.5, "rss": {"0": 345678848, "": 314572800, "total": 660251648}, "gpu": {}}
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from tipcflow.domain import ExitRecord, Measurement, Phase

_TOTAL = "total"


def peak_measurements(record: ExitRecord) -> list[Measurement]:
    """Peak memory of a job or leg: one `peak_rss` (and `peak_gpu`) per rank; rank -1 is the sum of all processes.

    The key '' of a record (processes of no rank) is part of the sum and gives no measurement of its own.
    """
    return [
        Measurement(
            run=record.run,
            step=record.step,
            leg=record.leg,
            attempt=record.attempt,
            node=record.node,
            rank=rank,
            metric=metric,
            phase=Phase.RESOURCE,
            value=float(peak),
            unit="bytes",
        )
        for metric, peaks in (("peak_rss", record.peak_rss_bytes), ("peak_gpu", record.peak_gpu_bytes))
        for rank, peak in sorted(_by_rank(peaks))
    ]


def _by_rank(peaks: dict[str, int]) -> Iterator[tuple[int, int]]:
    for key, peak in peaks.items():
        if key == _TOTAL:
            yield -1, peak
        elif key.isdigit():
            yield int(key), peak


def parse_resources(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """(byte offset, object) of every complete line of a samples file; a torn last line is skipped."""
    for offset, line in lines:
        try:
            sample = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(sample, dict):
            yield offset, sample
