"""Recorded opened files of chains, and how often the selection would have missed a regression of a full run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tipcflow.config.repository import WHOLE, Repository
from tipcflow.config.run_documents import SelectorDocument
from tipcflow.config.suite import load_suite
from tipcflow.domain import InfraError, Run
from tipcflow.domain.numbers.units import percentage
from tipcflow.execute.changes.choose import Candidates, candidates, changed_between, choose
from tipcflow.selection import Change
from tipcflow.store import Store

# The false-green rate covers the full runs of this time.
DAYS = 182


def with_opened(
    options: Candidates,
    change: Change,
    repository: Repository,
    store: Store,
    config_dir: Path,
    *,
    cache: Path,
    mode: str = "",
) -> Candidates:
    """The candidates with the files that their newest recorded runs opened.

    A record is stale if the commit differs from the recorded one in an opened file that the change does not touch,
    or if that is unknown because the git server is unreachable, which is tried once.

    Args:
        mode: of the runs that are selected, '' means the repository's mode.
    """
    # The record of a full run covers the other modes of training.
    records = store.opened.newest([traced.chain for traced in options.chains], (mode or repository.mode, WHOLE))
    suite = load_suite(repository.suite, config_dir)
    since: dict[str, tuple[frozenset[str], bool]] = {}
    reachable = True
    for commit in {record.commit for record in records.values()} - {options.commit}:
        paths: tuple[str, ...] = ()
        complete = False
        if reachable:
            try:
                paths, complete = changed_between(suite, commit, options.commit, cache=cache)
            except InfraError:
                reachable = False
        since[commit] = frozenset(paths) - set(change.paths), complete
    chains = []
    for traced in options.chains:
        if record := records.get(traced.chain):
            opened = frozenset(record.paths)
            others, complete = since.get(record.commit, (frozenset(), True))
            traced = replace(traced, opened=opened, is_stale=not complete or not opened.isdisjoint(others))
        chains.append(traced)
    return replace(options, chains=tuple(chains))


@dataclass
class Selections:
    """The selections of repositories for several changes; the files of a commit are read once.

    Attributes:
        cache: folder with the clones of `git:` suites.
    """

    store: Store
    repositories: Sequence[Repository]
    config_dir: Path
    cache: Path
    _last: tuple[tuple[str, str], Candidates] | None = None

    def candidates(self, repository: Repository, commit: str) -> Candidates:
        """As `choose.candidates`; the last ones are kept."""
        key = (repository.name, commit)
        if self._last is None or self._last[0] != key:
            self._last = key, candidates(repository, commit, self.config_dir, cache=self.cache)
        return self._last[1]


def measure(selections: Selections, run: Run, before: Run) -> SelectorDocument | None:
    """Store whether the selection would have run the chain of a run that got worse.

    The change is that from the last good run to this one.

    Args:
        before: the last good run of the chain.

    Returns:
        None if the suite's commits are unknown or equal, or no repository may run the chain: then nothing that
        a pull request changed made it worse.

    Raises:
        ConfigError, InfraError: the suite cannot be read.
    """
    commits = (before.suite_commit, run.suite_commit)
    if commits[0] == commits[1] or not all(commit and "+" not in commit for commit in commits):
        return None
    store, config_dir, cache = selections.store, selections.config_dir, selections.cache
    verdicts: dict[str, str] = {}
    for repository in selections.repositories:
        if repository.suite != run.suite:
            continue
        options = selections.candidates(repository, run.suite_commit)
        if run.chain not in {traced.chain for traced in options.chains}:
            continue
        suite = load_suite(repository.suite, config_dir)
        paths, complete = changed_between(suite, *commits, cache=cache)
        change = Change(paths=paths, complete=complete)
        options = with_opened(options, change, repository, store, config_dir, cache=cache)
        choice = choose(options, change, repository)
        verdicts[repository.name] = next(
            (selected.reason for selected in choice.chosen if selected.chain == run.chain), ""
        )
    if not verdicts:
        return None
    document = SelectorDocument(base=commits[0], head=commits[1], verdicts=verdicts)
    store.documents.put(run.id, document)
    return document


@dataclass(frozen=True)
class FalseGreen:
    """The regressions of full runs in chains that the selection would have left out.

    Attributes:
        missed: (chain, run) of these, newest first.
        regressions: number of all measured regressions.
        days: the time that is covered.
    """

    missed: tuple[tuple[str, str], ...]
    regressions: int
    days: int = DAYS

    @property
    def line(self) -> str:
        """One line for users."""
        if not self.regressions:
            return f"false-green rate: no regression of a full run was measured in the last {self.days} days"
        share = len(self.missed) / self.regressions
        what = "regression" if self.regressions == 1 else "regressions"
        return (
            f"false-green rate: {percentage(share, 0)}: the selection would have missed {len(self.missed)} of "
            f"{self.regressions} {what} of full runs in the last {self.days} days"
        )


def false_green(store: Store, repository: str = "", *, days: int = DAYS) -> FalseGreen:
    """The false-green rate of the selection of one repository, '' of all."""
    missed: list[tuple[str, str]] = []
    count = 0
    for regressed in store.opened.measured(store.now() - days * 86400):
        for name, why in regressed.measured.verdicts.items():
            if repository in ("", name):
                count += 1
                missed += [] if why else [(regressed.run.chain, regressed.run.id)]
    return FalseGreen(tuple(missed), count, days)
