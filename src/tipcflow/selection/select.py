"""From changed paths to chains."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tipcflow.config.repository import Labels, Selection
from tipcflow.domain.numbers.units import counted
from tipcflow.selection.globs import matches
from tipcflow.selection.graph import Tree, reachable


class Because(StrEnum):
    """Why a chain is selected, strongest first."""

    REQUEST = "request"
    LABEL = "label"
    GLOB = "glob"
    OPENED = "opened"
    NEEDED = "needed"
    SENTINEL = "sentinel"
    UNKNOWN_CHANGE = "unknown_change"


@dataclass(frozen=True)
class TracedChain:
    """A chain and the files that it is known to use.

    Attributes:
        roots: its params file, relative to the suite's root, and further files that it starts from.
        opened: files that a recorded run opened, relative to the suite's root; None without a record.
        is_stale: whether some of these have changed since, apart from the change: they may use other files now.
    """

    chain: str
    roots: tuple[str, ...]
    opened: frozenset[str] | None = None
    is_stale: bool = False


@dataclass(frozen=True)
class Change:
    """What changed.

    Attributes:
        paths: changed, added and removed paths, and both names of renamed ones; relative to the suite's root.
        complete: whether these are all; GitHub lists at most 3000 files of a pull request.
        labels: labels of the pull request.
        chains: globs of chains that a command names; these replace the selection.
    """

    paths: tuple[str, ...] = ()
    complete: bool = True
    labels: tuple[str, ...] = ()
    chains: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chosen:
    """One selected chain; `detail` is the path, label or glob."""

    chain: str
    because: Because
    detail: str

    @property
    def reason(self) -> str:
        """The reason for users."""
        return _WORDS[self.because].format(self.detail)


_WORDS = {
    Because.REQUEST: "named by the command ({})",
    Because.LABEL: "label {}",
    Because.GLOB: "{}",
    Because.OPENED: "a recorded run opened {}",
    Because.NEEDED: "{}",
    Because.SENTINEL: "sentinel: {}",
    Because.UNKNOWN_CHANGE: "all chains: {}",
}


@dataclass(frozen=True)
class Choice:
    """The selected chains, in the order of the reasons' strength, and the others.

    Attributes:
        others: chain -> why it is not selected.
        unknown: changed paths that concern no known chain and are not ignored.
        problems: globs and labels that match no chain.
    """

    chosen: tuple[Chosen, ...]
    others: Mapping[str, str]
    unknown: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def chains(self) -> tuple[str, ...]:
        """The names of the selected chains."""
        return tuple(choice.chain for choice in self.chosen)


def select(change: Change, chains: Sequence[TracedChain], tree: Tree, rules: Selection, labels: Labels) -> Choice:
    """Select the chains that a change affects.

    A chain with recorded files is selected by these, its params file and the configs that it includes; a chain
    without a record, or with a stale one, also by the imports of its scripts. If a shared or unknown file changed,
    the sentinels run; if no sentinel is declared, all chains run.
    """
    traced = {entry.chain: entry for entry in chains}
    problems: list[str] = []
    if change.chains:
        return _requested(change.chains, traced, problems)
    if not change.complete:
        return _all(traced, "the list of changed files is incomplete")
    if labels.every in change.labels:
        return Choice(tuple(Chosen(name, Because.LABEL, labels.every) for name in traced), {})
    selected: dict[str, Chosen] = {}
    for label in change.labels:
        for chain in _matching(labels.chains.get(label, ()), traced, f"label {label}", problems):
            selected.setdefault(chain, Chosen(chain, Because.LABEL, label))
    unknown = _by_paths(change.paths, traced, tree, rules, selected, problems)
    shared = [path for path in change.paths if matches(path, rules.shared)]
    if shared or unknown:
        why = f"shared file {shared[0]} changed" if shared else f"no chain is known to use {unknown[0]}"
        sentinels = list(_matching(rules.sentinels, traced, "sentinels", problems))
        for chain in sentinels:
            selected.setdefault(chain, Chosen(chain, Because.SENTINEL, why))
        if not sentinels:
            for chain in traced:
                selected.setdefault(
                    chain, Chosen(chain, Because.UNKNOWN_CHANGE, f"{why}, and no sentinel is declared")
                )
    return _sorted(selected, traced, change, unknown, problems)


def _by_paths(
    paths: Collection[str],
    traced: Mapping[str, TracedChain],
    tree: Tree,
    rules: Selection,
    selected: dict[str, Chosen],
    problems: list[str],
) -> list[str]:
    """Add the chains that use a changed path; return the paths that concern no chain."""
    tree = tree.with_changed(paths)
    needed = {
        name: reachable(entry.roots, tree, imports=entry.opened is None or entry.is_stale)
        for name, entry in traced.items()
    }
    declared = {
        glob: list(_matching(names, traced, f"glob {glob}", problems)) for glob, names in rules.globs.items()
    }
    unknown = []
    for path in dict.fromkeys(paths):
        users = dict.fromkeys(
            chain for glob, names in declared.items() if matches(path, (glob,)) for chain in names
        )
        for chain in users:
            _stronger(selected, Chosen(chain, Because.GLOB, f"{path} matches {matches(path, rules.globs)}"))
        for name, entry in traced.items():
            if entry.opened is not None and path in entry.opened:
                _stronger(selected, Chosen(name, Because.OPENED, path))
            elif path in needed[name]:
                _stronger(selected, Chosen(name, Because.NEEDED, _way(path, needed[name])))
            else:
                continue
            users[name] = None
        if not users and not matches(path, rules.ignored) and not matches(path, rules.shared):
            unknown.append(path)
    return unknown


def _stronger(selected: dict[str, Chosen], new: Chosen) -> None:
    order = list(Because)
    old = selected.get(new.chain)
    if old is None or order.index(new.because) < order.index(old.because):
        selected[new.chain] = new


def _way(path: str, needed: Mapping[str, str]) -> str:
    by = needed[path]
    return f"{by} uses {path}" if by else f"{path} is its file"


def _matching(
    globs: Iterable[str], traced: Mapping[str, TracedChain], what: str, problems: list[str]
) -> Iterable[str]:
    names: dict[str, None] = {}
    for glob in globs:
        matching = [chain for chain in traced if matches(chain, (glob,))]
        if not matching:
            problems.append(f"{what}: no chain matches {glob}")
        names |= dict.fromkeys(matching)
    return names


def _requested(globs: Sequence[str], traced: Mapping[str, TracedChain], problems: list[str]) -> Choice:
    chosen = [
        Chosen(chain, Because.REQUEST, matches(chain, globs))
        for chain in _matching(globs, traced, "command", problems)
    ]
    names = {choice.chain for choice in chosen}
    others = {chain: "not named by the command" for chain in traced if chain not in names}
    return Choice(tuple(chosen), others, problems=tuple(problems))


def _all(traced: Mapping[str, TracedChain], why: str) -> Choice:
    return Choice(tuple(Chosen(chain, Because.UNKNOWN_CHANGE, why) for chain in traced), {})


def _sorted(
    selected: Mapping[str, Chosen],
    traced: Mapping[str, TracedChain],
    change: Change,
    unknown: Sequence[str],
    problems: Sequence[str],
) -> Choice:
    order = list(Because)
    chosen = sorted(selected.values(), key=lambda choice: order.index(choice.because))
    count = len(set(change.paths))
    why = f"uses none of {counted(count, 'changed file')}" if count else "no file changed"
    others = {chain: why for chain in traced if chain not in selected}
    return Choice(tuple(chosen), others, tuple(unknown), tuple(dict.fromkeys(problems)))
