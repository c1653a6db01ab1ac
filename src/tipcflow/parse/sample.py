"""A metric value as a log printed it, and the conversion of samples to measurements."""

from collections.abc import Iterable
from dataclasses import dataclass

from tipcflow.domain import Measurement, Phase


@dataclass(frozen=True, slots=True)
class Sample:
    """One metric value of one line. `epoch` and `iteration` are as printed, -1 if not printed.

    `offset` is the byte offset of the line in its file, -1 if the value is not from a file. `rank` is the rank
    that a line of a multi-rank log names, -1 if it names none.
    """

    metric: str
    value: float
    unit: str
    phase: Phase
    epoch: int = -1
    iteration: int = -1
    offset: int = -1
    rank: int = -1


def to_measurements(
    samples: Iterable[Sample],
    *,
    run: str,
    step: str,
    node: str,
    leg: str = "",
    attempt: int = 1,
    rank: int = -1,
    source: str = "",
) -> list[Measurement]:
    """Convert the samples of one (run, step, leg, attempt, node) to measurements.

    `ordinal` counts from 0 within (rank, metric, phase) in the order of the samples, so all samples of that key
    must be passed in one call: parse the whole log of a rank, not parts of it. `rank` applies to samples that
    name none.
    """
    seen: dict[tuple[int, str, Phase], int] = {}
    measurements = []
    for sample in samples:
        of_rank = rank if sample.rank < 0 else sample.rank
        key = (of_rank, sample.metric, sample.phase)
        ordinal = seen.get(key, 0)
        seen[key] = ordinal + 1
        measurements.append(
            Measurement(
                run=run,
                step=step,
                leg=leg,
                attempt=attempt,
                node=node,
                rank=of_rank,
                metric=sample.metric,
                phase=sample.phase,
                ordinal=ordinal,
                value=sample.value,
                unit=sample.unit,
                epoch=sample.epoch,
                iteration=sample.iteration,
                source=source,
                offset=sample.offset,
            )
        )
    return measurements
