"""`tipcflow parse --csv`: one row per sample, in the order of the log."""

import csv
import math
import sys
from collections.abc import Sequence

from tipcflow.cli.parse.inputs import pieces_of, rank_of
from tipcflow.domain import ConfigError
from tipcflow.parse.training.stream import samples_of

HEADER = ("file", "format", "offset", "phase", "epoch", "iteration", "rank", "metric", "value", "unit")


def print_csv(files: Sequence[str], log_format: str) -> list[str]:
    """Print the samples of all files; returns the errors of unreadable files."""
    errors = []
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(HEADER)
    for file in files:
        try:
            for form, sample in samples_of(pieces_of(file), log_format):
                rank = rank_of(file) if sample.rank < 0 else sample.rank
                writer.writerow(
                    (
                        file, form, sample.offset, sample.phase.value, sample.epoch, sample.iteration, rank,
                        sample.metric, _exact(sample.value), sample.unit,
                    )
                )  # fmt: skip
        except ConfigError as error:
            errors.append(str(error))
    sys.stdout.flush()
    return errors


def _exact(value: float) -> str:
    return "NaN" if math.isnan(value) else repr(value)
