"""The input of `tipcflow.selection` for one repository."""

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from tipcflow.config.cluster import load_cluster, require_framework
from tipcflow.config.repository import Repository
from tipcflow.config.suite import Suite, load_suite
from tipcflow.domain import ConfigError, TipcflowError
from tipcflow.domain.run.names import ModeName
from tipcflow.execute.source.snapshot import Files, checkout, commit_at, files_at, git, matches_glob
from tipcflow.plan import file_modes
from tipcflow.selection import Change, Choice, TracedChain, Tree, select
from tipcflow.selection.globs import matches


@dataclass(frozen=True)
class Candidates:
    """The chains of a repository at a commit.

    Attributes:
        chains: chains that may run, with their params files.
        others: chain -> why it cannot run in this mode.
        commit: full id of the commit.
        folder: folder of the suite in its repository, '' or ending with `/`.
    """

    tree: Tree
    chains: tuple[TracedChain, ...]
    others: Mapping[str, str]
    commit: str
    folder: str = ""


def candidates(repository: Repository, ref: str, config_dir: Path, *, cache: Path, mode: str = "") -> Candidates:
    """The chains of configs/chains that may run for a repository, with the suite's files at `ref`.

    The chains are the controller's: a change adds none.

    Args:
        cache: folder with the clones of `git:` suites.
        mode: '' means the repository's mode.

    Raises:
        ConfigError: unknown suite or ref, or the repository's cluster does not have the suite's framework.
        InfraError: the suite's git server is unreachable.
    """
    suite = load_suite(repository.suite, config_dir)
    _require_framework(suite, repository.cluster, config_dir)
    root = checkout(suite, cache, refs=[ref])
    files, commit = files_at(root, ref, clone=bool(suite.git), top=suite.top)
    tops = ("", suite.top) if suite.whole_repository else ("",)
    tree = Tree(files, lambda path: files[path].data.decode("utf-8"), tops=tops)
    chains, others = [], {}
    for name, path in catalog(suite.name, config_dir):
        if not matches(name, repository.chains):
            continue
        why = unsupported(path, mode or repository.mode, suite)
        if why:
            others[name] = why
        else:
            chains.append(TracedChain(name, _params_files(path, files, suite)))
    return Candidates(tree, tuple(chains), others, commit, folder_of(suite, cache=cache, root=root))


def choose(options: Candidates, change: Change, repository: Repository) -> Choice:
    """The chains that a change affects, and why; the others, and why not."""
    chains = [_with_removed(chain, change, options) for chain in options.chains]
    choice = select(change, chains, options.tree, repository.selection, repository.labels)
    return replace(choice, others={**choice.others, **options.others})


def _with_removed(chain: TracedChain, change: Change, options: Candidates) -> TracedChain:
    """The chain with the removed or renamed files that its params file may have been."""
    wanted = tuple(PurePosixPath(f"{chain.chain}.txt").parts[-2:])
    removed = (path for path in change.paths if path not in options.tree.paths)
    return replace(chain, roots=(*chain.roots, *(p for p in removed if PurePosixPath(p).parts[-2:] == wanted)))


def changed_between(suite: Suite, base: str, head: str, *, cache: Path) -> tuple[tuple[str, ...], bool]:
    """(Paths that differ between two commits, relative to the suite's root; whether these are all).

    Raises:
        InfraError: the suite's git server is unreachable.
    """
    root, clone = checkout(suite, cache, refs=[base, head]), bool(suite.git)
    try:
        commits = [commit_at(root, ref, clone=clone, key="change") for ref in (base, head)]
        listed = git(root, "diff", "--name-only", "--no-renames", "-z", *commits, "--")
        top = git(root, "rev-parse", "--show-prefix").decode().strip()
    except ConfigError:
        # A forced push: the old commit no longer exists, so nothing is known about the change.
        return (), False
    paths = (path for path in listed.decode("utf-8", "replace").split("\0") if path)
    return tuple(inside(path, top, suite) for path in paths), True


def folder_of(suite: Suite, *, cache: Path, root: Path | None = None) -> str:
    """The suite's folder in its repository, '' or ending with `/`.

    Args:
        root: the suite's folder on this machine, if it is known to be up to date.
    """
    return git(root or checkout(suite, cache), "rev-parse", "--show-prefix").decode().strip()


def lines_of(tree: Tree, path: str) -> dict[str, int]:
    """Key -> line of its first value, of a params file."""
    lines: dict[str, int] = {}
    for number, line in enumerate(tree.text(path).splitlines(), start=1):
        key, colon, value = line.partition(":")
        if colon and value.strip() not in ("", "null"):
            lines.setdefault(key.strip(), number)
    return lines


def inside(path: str, folder: str, suite: Suite) -> str:
    """A path of the repository relative to the suite's folder; one that no run gets stays as it is."""
    prefix = f"{folder.strip('/')}/"
    if suite.whole_repository:
        return posixpath.relpath(path, prefix)
    return path.removeprefix(prefix) if prefix != "/" else path


def _require_framework(suite: Suite, name: str, config_dir: Path) -> None:
    """Refuse a cluster without the suite's framework; the run of a chain reports one that cannot be read."""
    try:
        cluster = load_cluster(name, config_dir)
    except ConfigError:
        return
    require_framework(suite, cluster)


def catalog(suite: str, config_dir: Path) -> Iterator[tuple[str, Path]]:
    """(Chain, params file of the controller), sorted by path."""
    for path in sorted((config_dir / "chains" / suite).glob("*/*.txt")):
        yield f"{suite}/{path.parent.name}/{path.stem}", path


def unsupported(path: Path, mode: str, suite: Suite) -> str:
    """Why a params file has no such mode; '' if it has, or if it is unreadable, which its run reports."""
    try:
        known = file_modes(path.read_text(encoding="utf-8"), file=str(path), dialects=suite.dialects)
    except (TipcflowError, OSError, UnicodeDecodeError):
        return ""
    return "" if ModeName.parse(mode).mode in known else f"this kind of file does not support mode {mode}"


def _params_files(path: Path, files: Files, suite: Suite) -> tuple[str, ...]:
    """The params files of the suite with the folder and name of the controller's copy."""
    wanted = (path.parent.name, path.name)
    return tuple(
        name
        for name in sorted(files)
        if PurePosixPath(name).parts[-2:] == wanted and any(matches_glob(name, glob) for glob in suite.params)
    )
