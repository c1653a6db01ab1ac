"""Differences between two runs of one environment class: possible causes of a changed metric."""

from collections.abc import Iterable, Sequence

from tipcflow.domain.base import Frozen
from tipcflow.domain.node import NodeFacts
from tipcflow.domain.run.names import FrameworkVersion
from tipcflow.domain.run.run import Run

_COMMIT = 7


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
    phrases = [_framework(before.framework, now.framework), _suite(before, now)]
    phrases.append(_differ("nodes" if len(now.nodes) > 1 else "node", before.nodes, now.nodes))
    phrases += [_differ("GPU driver", before.drivers, now.drivers), _differ("CUDA", before.cuda, now.cuda)]
    return [phrase for phrase in phrases if phrase]


def since(run: str, phrases: Sequence[str]) -> str:
    """Return the changes since a run as one phrase."""
    if not phrases:
        return f"since run {run} framework, suite, nodes and driver are the same"
    return f"since run {run}: {', '.join(phrases)}"


def _framework(before: str, now: str) -> str:
    if not before or not now or before == now:
        return ""
    old, new = FrameworkVersion.parse(before), FrameworkVersion.parse(now)
    if old.name == new.name and old.version and new.version:
        return f"framework {old.version} -> {new.version}"
    return f"framework {before} -> {now}"


def _suite(before: Origin, now: Origin) -> str:
    if before.suite_commit != now.suite_commit and before.suite_commit and now.suite_commit:
        return f"suite {_commit(before.suite_commit)} -> {_commit(now.suite_commit)}"
    if before.suite_sha256 != now.suite_sha256 and before.suite_sha256 and now.suite_sha256:
        return f"suite content {before.suite_sha256[:_COMMIT]} -> {now.suite_sha256[:_COMMIT]}"
    return ""


def _commit(commit: str) -> str:
    name, plus, _ = commit.partition("+")
    return name[:_COMMIT] + (" with local changes" if plus else "")


def _differ(name: str, before: Sequence[str], now: Sequence[str]) -> str:
    if not before or not now or tuple(before) == tuple(now):
        return ""
    return f"{name} {'+'.join(before)} -> {'+'.join(now)}"
