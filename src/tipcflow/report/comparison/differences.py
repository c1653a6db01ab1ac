"""Differences between runs other than their results."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tipcflow.domain.masking import mask
from tipcflow.domain.numbers.changes import Origin, origin_of
from tipcflow.report.run.data import RunData

_SHORT = 12
# Longer values of keys are cut off.
_LONGEST = 80


@dataclass(frozen=True)
class FactRow:
    """A fact of each run, as text; '' where it is unknown."""

    name: str
    values: tuple[str, ...]
    differs: bool


def hash_of_settings(settings: Mapping[str, Any]) -> str:
    """Return the SHA-256 of what a suite file sets (`Suite.settings`)."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def fact_rows(
    runs: Sequence[RunData], policies: Sequence[str], settings: Sequence[Mapping[str, Any] | None]
) -> list[FactRow]:
    """One row per fact that any of the runs has: the ones that differ first, otherwise in a fixed order.

    Args:
        policies: name of each run's policy.
        settings: what each run's suite file set, None if unknown. Each key that differs is a row.
    """
    origins = [origin_of(data.run, data.facts.node_facts) for data in runs]
    columns = [(name, [text(data) for data in runs]) for name, text in _OF_RUN]
    columns[3:3] = [(name, [", ".join(text(origin)) for origin in origins]) for name, text in _OF_ORIGIN]
    columns[2:2] = _suite_file(settings)
    columns.append(("policy", list(policies)))
    rows = [FactRow(name, tuple(values), len(set(values)) > 1) for name, values in columns if any(values)]
    return sorted(rows, key=lambda row: not row.differs)


def _suite_file(settings: Sequence[Mapping[str, Any] | None]) -> list[tuple[str, list[str]]]:
    """The hash of each suite file's settings, and the keys that differ between known ones; '' for a default."""
    known = [each for each in settings if each is not None]
    keys = sorted({key for each in known for key in each})
    differing = [key for key in keys if any(each.get(key) != known[0].get(key) for each in known)]
    rows = [("suite file", ["" if each is None else hash_of_settings(each)[:_SHORT] for each in settings])]
    for key in differing:
        rows.append((f"suite file: {key}", [_shown((each or {}).get(key)) for each in settings]))
    return rows


def _shown(value: Any) -> str:
    if value is None:
        return ""
    text = mask(value if isinstance(value, str) else json.dumps(value, sort_keys=True))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


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
