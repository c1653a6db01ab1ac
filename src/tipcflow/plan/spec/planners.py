"""Planner selection by a file's kind and mode."""

from tipcflow.domain import Cluster
from tipcflow.params.modes import BENCHMARK
from tipcflow.plan.source.options import PlanOptions
from tipcflow.plan.source.reader import Reader
from tipcflow.plan.spec.benchmark import BenchmarkPlanner
from tipcflow.plan.spec.blocks import BlocksPlanner
from tipcflow.plan.spec.planner import SpecPlanner
from tipcflow.plan.spec.sequence import SequencePlanner


def planner_for(
    text: str, reader: Reader, *, word: str, cluster: Cluster | None, options: PlanOptions
) -> SpecPlanner:
    """Return the planner of a file's kind and mode; `word` selects one benchmark case.

    Raises:
        ConfigError: a block of the file, or its benchmark section, cannot be parsed.
    """
    dialect = reader.dialect
    if dialect.blocks is not None:
        return BlocksPlanner(text, reader, cluster=cluster, options=options)
    if dialect.sequence:
        return SequencePlanner(reader, cluster=cluster, options=options)
    if reader.mode == BENCHMARK:
        return BenchmarkPlanner(reader, word, cluster=cluster, options=options)
    return SpecPlanner(reader, cluster=cluster, options=options)
