"""The commits of a suite between a good and a bad ref."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tipcflow.bisect import Touches
from tipcflow.config.suite import Suite
from tipcflow.domain import ConfigError
from tipcflow.execute.source.snapshot import checkout, commit_at, git

_SHORT, _TITLE = 8, 60


@dataclass(frozen=True)
class Commit:
    """A commit.

    Attributes:
        title: first line of its message.
        touches: what it touches (`touched.with_touches`).
    """

    NOUN: ClassVar[str] = "commit"

    id: str
    title: str
    touches: Touches = Touches.OTHER

    @property
    def short(self) -> str:
        """The first digits of the id."""
        return self.id[:_SHORT]

    def __str__(self) -> str:
        title = self.title if len(self.title) <= _TITLE else f"{self.title[: _TITLE - 1]}…"
        return f"{self.short} '{title}'"


def commits_between(suite: Suite, good: str, bad: str, *, cache: Path) -> tuple[Commit, ...]:
    """Return the good commit and all later ones up to the bad one, oldest first.

    They are the first-parent line: a merged branch counts as its merge. Commits that change nothing in the suite's
    folder are left out, because they cannot have changed the chain.

    Args:
        cache: folder with the clones of `git:` suites.

    Raises:
        ConfigError: unknown ref, not a git checkout, or `good` is not before `bad`.
        InfraError: the suite's git server is unreachable.
    """
    root, clone = checkout(suite, cache), bool(suite.git)
    first = commit_at(root, good, clone=clone, key="--good")
    last = commit_at(root, bad, clone=clone, key="--bad")
    if first == last:
        raise ConfigError(
            "is the same commit as the bad end", key="--good", found=good, expected="an earlier commit"
        )
    line = git(root, "rev-list", "--first-parent", last).decode().split()
    if first not in line:
        raise ConfigError(
            "is not an earlier commit of the bad end",
            key="--good",
            found=good,
            expected=f"a commit of `git log --first-parent {bad}`",
            hint="exchange the refs if the newer commit is the good one; a shallow clone lacks old commits",
        )
    listed = git(root, "log", "--first-parent", "--reverse", "--format=%H %s", f"{first}..{last}", "--", suite.top)
    later = [line.partition(" ") for line in listed.decode(errors="replace").splitlines()]
    if not later:
        raise ConfigError(
            "changes nothing in the suite's folder since the good end",
            key="--bad",
            found=bad,
            expected="a later change",
        )
    title = git(root, "log", "-1", "--format=%s", first).decode(errors="replace").strip()
    return (Commit(first, title), *(Commit(commit, title) for commit, _, title in later))
