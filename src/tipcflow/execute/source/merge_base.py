"""What a change is compared with: the default branch up to the commit at which the change begins, its merge base.

What the branch measured after that, and what other changes measured, says nothing about this change.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tipcflow.config.suite import Suite
from tipcflow.domain import ConfigError
from tipcflow.execute.source.snapshot import checkout, commit_at, git

# What `merge_base` found, as a document of the run. A run that has it is a change's, and joins no other history.
DOCUMENT = "base"
_KEY = "--base"


def merge_base(suite: Suite, base: str, commit: str, *, cache: Path, measured: Iterable[str]) -> dict[str, Any]:
    """{"commit": the merge base of `base` and `commit`, "commits": those whose runs are the change's history}.

    History is the line of first parents, which is the branch itself: what was merged counts from its merge.

    Args:
        base: the branch that the change is for, or a commit of it.
        commit: what is tested; its local changes, where it has some, belong to the change.
        cache: where clones of `git:` suites are kept.
        measured: the commits that there are runs of.

    Raises:
        ConfigError: no such ref, the suite is no git checkout, the two have no common history, or it is cut off.
        InfraError: the suite's git server cannot be reached.
    """
    root, clone = checkout(suite, cache), bool(suite.git)
    onto = commit_at(root, base, clone=clone, key=_KEY)
    tested = commit_at(root, commit.partition("+")[0] or "HEAD", clone=clone, key=_KEY)
    try:
        found = git(root, "merge-base", onto, tested).decode().strip()
    except ConfigError as error:
        raise ConfigError(
            "has no common history with what is tested",
            key=_KEY,
            found=base,
            expected="the branch that the change is for",
            hint="a clone that was made with --depth lacks it",
        ) from error
    line = set(git(root, "rev-list", "--first-parent", found).decode().split())
    if _is_cut(root, line):
        raise ConfigError(
            "the clone is shallow: the branch's history is cut off",
            key=_KEY,
            found=base,
            expected="a clone with the whole history",
            hint="`git fetch --unshallow`; with actions/checkout `fetch-depth: 0`",
        )
    return {"commit": found, "commits": sorted({found, *line.intersection(measured)})}


def _is_cut(root: Path, line: set[str]) -> bool:
    """Whether a line of commits ends where a shallow clone does, not where the branch begins."""
    if git(root, "rev-parse", "--is-shallow-repository").decode().strip() != "true":
        return False
    ends = root / git(root, "rev-parse", "--git-path", "shallow").decode().strip()
    return bool(line.intersection(ends.read_text(encoding="ascii").split()))
