"""Differences between two runs of one environment class: possible causes of a changed metric."""

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from tipcflow.domain.base import Frozen
from tipcflow.domain.node import NodeFacts
from tipcflow.domain.run.names import FrameworkVersion
from tipcflow.domain.run.run import Run

_COMMIT = 7


class ChangeKind(StrEnum):
    """What differs between two runs."""

    FRAMEWORK = "framework"
    SUITE = "suite"
    SUITE_CONTENT = "suite content"
    NODE = "node"
    NODES = "nodes"
    DRIVER = "GPU driver"
    CUDA = "CUDA"


@dataclass(frozen=True, slots=True)
class OriginChange:
    """A difference between two runs; stored and shown as `<kind> <before> -> <after>`."""

    kind: ChangeKind
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.kind} {self.before} -> {self.after}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str` wrote.

        Raises:
            ValueError: the text is not a difference.
        """
        before, arrow, after = text.partition(" -> ")
        kinds = [kind for kind in ChangeKind if before.startswith(f"{kind} ")]
        if not arrow or not kinds:
            raise ValueError(f"{text!r} is not a difference between runs, '<kind> <before> -> <after>'")
        kind = max(kinds, key=len)
        return cls(kind, before[len(kind) + 1 :], after)


class Origin(Frozen):
    """The origin of a run, in addition to its environment class.

    Attributes:
        framework: name and version.
        suite_commit: commit of the suite; `+…` marks local changes.
        suite_sha256: hash of the suite's content.
        nodes: the nodes that the run used.
        drivers, cuda: versions on these nodes; empty without GPUs.
    """

    framework: str = ""
    suite_commit: str = ""
    suite_sha256: str = ""
    nodes: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()
    cuda: tuple[str, ...] = ()


def origin_of(run: Run, nodes: Iterable[NodeFacts]) -> Origin:
    """Return the origin of a run from its nodes' facts."""
    used = [fact for fact in nodes if fact.node in run.nodes]
    return Origin(
        framework=run.framework,
        suite_commit=run.suite_commit,
        suite_sha256=run.suite_sha256,
        nodes=run.nodes,
        drivers=tuple(sorted({fact.driver for fact in used if fact.driver})),
        cuda=tuple(sorted({fact.cuda for fact in used if fact.cuda})) if any(fact.gpus for fact in used) else (),
    )


def changes(before: Origin, now: Origin) -> list[str]:
    """Return the changes between two runs, as text, without facts that are unknown for either run."""
    several = ChangeKind.NODES if len(now.nodes) > 1 else ChangeKind.NODE
    differences = [
        _framework(before.framework, now.framework),
        _suite(before, now),
        _differ(several, before.nodes, now.nodes),
        _differ(ChangeKind.DRIVER, before.drivers, now.drivers),
        _differ(ChangeKind.CUDA, before.cuda, now.cuda),
    ]
    return [str(difference) for difference in differences if difference is not None]


def read_changes(texts: Iterable[str]) -> list[OriginChange]:
    """Return stored differences; a text that another version of tipcflow wrote in another form is left out."""
    result = []
    for text in texts:
        with contextlib.suppress(ValueError):
            result.append(OriginChange.parse(text))
    return result


def since(run: str, phrases: Sequence[str]) -> str:
    """Return the changes since a run as one phrase."""
    if not phrases:
        return f"since run {run} framework, suite, nodes and driver are the same"
    return f"since run {run}: {', '.join(phrases)}"


def _framework(before: str, now: str) -> OriginChange | None:
    if not before or not now or before == now:
        return None
    old, new = FrameworkVersion.parse(before), FrameworkVersion.parse(now)
    if old.name == new.name and old.version and new.version:
        return OriginChange(ChangeKind.FRAMEWORK, old.version, new.version)
    return OriginChange(ChangeKind.FRAMEWORK, before, now)


def _suite(before: Origin, now: Origin) -> OriginChange | None:
    if before.suite_commit != now.suite_commit and before.suite_commit and now.suite_commit:
        return OriginChange(ChangeKind.SUITE, _commit(before.suite_commit), _commit(now.suite_commit))
    if before.suite_sha256 != now.suite_sha256 and before.suite_sha256 and now.suite_sha256:
        old, new = before.suite_sha256[:_COMMIT], now.suite_sha256[:_COMMIT]
        return OriginChange(ChangeKind.SUITE_CONTENT, old, new)
    return None


def _commit(commit: str) -> str:
    name, plus, _ = commit.partition("+")
    return name[:_COMMIT] + (" with local changes" if plus else "")


def _differ(kind: ChangeKind, before: Sequence[str], now: Sequence[str]) -> OriginChange | None:
    if not before or not now or tuple(before) == tuple(now):
        return None
    return OriginChange(kind, "+".join(before), "+".join(now))
