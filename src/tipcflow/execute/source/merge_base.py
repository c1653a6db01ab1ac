"""The baseline of a change: the default branch up to the merge base of the change.

Later runs of the branch, and runs of other changes, are not comparable with this change.
"""

from collections.abc import Iterable
from pathlib import Path

from tipcflow.config.suite import Suite
from tipcflow.domain import ConfigError
from tipcflow.domain.run_documents import MergeBaseDocument
from tipcflow.execute.source.snapshot import checkout, commit_at, git

_KEY = "--base"


def merge_base(suite: Suite, base: str, commit: str, *, cache: Path, measured: Iterable[str]) -> MergeBaseDocument:
    """Return the merge base of `base` and `commit`, and the commits whose runs are the change's history.

    The history is the first-parent line of the branch: merged commits count from their merge.

    Args:
        base: target branch of the change, or a commit of it.
        commit: the tested commit; its local changes belong to the change.
        cache: folder with the clones of `git:` suites.
        measured: commits with stored runs.

    Raises:
        ConfigError: unknown ref, not a git checkout, no common history, or a shallow clone.
        InfraError: the suite's git server is unreachable.
    """
    root, clone = checkout(suite, cache), bool(suite.git)
    onto = commit_at(root, base, clone=clone, key=_KEY)
    tested = commit_at(root, commit.partition("+")[0] or "HEAD", clone=clone, key=_KEY)
    try:
        ancestor = git(root, "merge-base", onto, tested).decode().strip()
    except ConfigError as error:
        raise ConfigError(
            "has no common history with the tested commit",
            key=_KEY,
            found=base,
            expected="the target branch of the change",
            hint="a clone that was made with --depth lacks it",
        ) from error
    line = set(git(root, "rev-list", "--first-parent", ancestor).decode().split())
    if _is_cut(root, line):
        raise ConfigError(
            "the clone is shallow: the branch's history is cut off",
            key=_KEY,
            found=base,
            expected="a clone with the whole history",
            hint="`git fetch --unshallow`; with actions/checkout `fetch-depth: 0`",
        )
    return MergeBaseDocument(commit=ancestor, commits=tuple(sorted({ancestor, *line.intersection(measured)})))


def _is_cut(root: Path, line: set[str]) -> bool:
    """Whether a line of commits ends at the boundary of a shallow clone instead of the root of the branch."""
    if git(root, "rev-parse", "--is-shallow-repository").decode().strip() != "true":
        return False
    ends = root / git(root, "rev-parse", "--git-path", "shallow").decode().strip()
    return bool(line.intersection(ends.read_text(encoding="ascii").split()))
