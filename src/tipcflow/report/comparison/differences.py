"""Differences between runs other than their results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tipcflow.domain.numbers.changes import Origin, origin_of
from tipcflow.report.run.data import RunData

_SHORT = 12


@dataclass(frozen=True)
class FactRow:
    """A fact of each run, as text; '' where it is unknown."""

    name: str
    values: tuple[str, ...]
    differs: bool


def fact_rows(runs: Sequence[RunData], policies: Sequence[str]) -> list[FactRow]:
    """One row per fact that any of the runs has: the ones that differ first, otherwise in a fixed order.

    Args:
        policies: name of each run's policy.
    """
    origins = [origin_of(data.run, data.facts.node_facts) for data in runs]
    columns = [(name, [text(data) for data in runs]) for name, text in _OF_RUN]
    columns[3:3] = [(name, [", ".join(text(origin)) for origin in origins]) for name, text in _OF_ORIGIN]
    columns.append(("policy", list(policies)))
    rows = [FactRow(name, tuple(values), len(set(values)) > 1) for name, values in columns if any(values)]
    return sorted(rows, key=lambda row: not row.differs)


def _commit(data: RunData) -> str:
    commit, plus, _ = data.run.suite_commit.partition("+")
    return commit[:_SHORT] + (" with local changes" if plus else "")


def _params(data: RunData) -> str:
    return f"{data.plan.params_file} ({data.plan.params_sha256[:_SHORT]})" if data.plan else ""


def _seed(data: RunData) -> str:
    return "" if data.run.seed is None else str(data.run.seed)


_OF_RUN: tuple[tuple[str, Callable[[RunData], str]], ...] = (
    ("suite commit", _commit),
    ("suite content", lambda data: data.run.suite_sha256[:_SHORT]),
    ("framework", lambda data: data.run.framework),
    ("environment class", lambda data: data.run.environment),
    ("cluster", lambda data: data.run.cluster),
    ("mode", lambda data: data.run.mode),
    ("semantics", lambda data: data.run.compat),
    ("seed", _seed),
    ("params file", _params),
    ("merge base", lambda data: data.merge_base[:_SHORT]),
    ("trigger", lambda data: data.run.trigger),
)
_OF_ORIGIN: tuple[tuple[str, Callable[[Origin], Sequence[str]]], ...] = (
    ("nodes", lambda origin: origin.nodes),
    ("GPU driver", lambda origin: origin.drivers),
    ("CUDA", lambda origin: origin.cuda),
)
