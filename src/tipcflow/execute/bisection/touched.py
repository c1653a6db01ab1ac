"""What the commits of a bisection touch: files of the chain, only documentation, or other files."""

import posixpath
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tipcflow.bisect import ChainFiles, touches
from tipcflow.config.suite import Suite
from tipcflow.domain import ConfigError
from tipcflow.execute.bisection.commits import Commit
from tipcflow.execute.source.snapshot import checkout, git, take_snapshot

# Begins the lines of `git log` that name a commit.
_MARK = "\x01"


def with_touches(
    suite: Suite, commits: tuple[Commit, ...], params: str, *, cache: Path, only_inside: bool = False
) -> tuple[Commit, ...]:
    """Return the commits with what each of them touches, by the params file at the last one.

    Without that file at the last commit, nothing is known about them, and the commits are returned as they are.

    Args:
        params, cache, only_inside: as of `take_snapshot`.

    Raises:
        InfraError: the suite's git server is unreachable.
    """
    try:
        snapshot = take_snapshot(suite, params, commits[-1].id, cache=cache, only_inside=only_inside)
    except ConfigError:
        return commits
    chain = ChainFiles.of(snapshot.params_file, snapshot.params_text, snapshot.names)
    root = checkout(suite, cache, refs=[commits[0].id, commits[-1].id])
    files = _files(root, suite, commits[0].id, commits[-1].id)
    later = (replace(commit, touches=touches(files.get(commit.id, ()), chain)) for commit in commits[1:])
    return (commits[0], *later)


def _files(root: Path, suite: Suite, first: str, last: str) -> Mapping[str, list[str]]:
    """Return commit -> files that it changes, relative to the suite's root; of a merge those that it merges."""
    words = ("--first-parent", "-m", "--no-renames", "--name-only", f"--format={_MARK}%H", f"{first}..{last}")
    listed = git(root, "log", *words, "--", suite.top).decode(errors="replace")
    prefix = git(root, "rev-parse", "--show-prefix").decode().strip() or "."
    files: dict[str, list[str]] = {}
    commit = ""
    for line in listed.splitlines():
        if line.startswith(_MARK):
            commit = line.removeprefix(_MARK)
            files.setdefault(commit, [])
        elif line:
            files[commit].append(posixpath.relpath(line, prefix))
    return files
