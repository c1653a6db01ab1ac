"""Decisions, and the facts that they need."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from tipcflow.github.commands import Ab, Accept


class Do(StrEnum):
    """What is done."""

    START = "start"
    WAIT = "wait"
    CANCEL = "cancel"
    REPORT = "report"  # a check run with the reason why nothing runs
    ACCEPT = "accept"
    COMPARE = "compare"
    HELP = "help"
    IGNORE = "ignore"


class Why(StrEnum):
    """Why it is done. Readers see the reason; logic uses these."""

    CHANGE = "change"
    PUSH = "push"
    MERGE_GROUP = "merge_group"
    COMMAND = "command"
    BUTTON = "button"
    APPROVAL = "approval"
    LABEL = "label"
    FORK = "fork"
    FORKS_OFF = "forks_off"
    DRAFT = "draft"
    SKIP_LABEL = "skip_label"
    BRANCH = "branch"
    CLOSED = "closed"
    NEWER = "newer"
    NOT_ALLOWED = "not_allowed"
    WRONG_COMMAND = "wrong_command"
    OTHER_COMMIT = "other_commit"
    NOT_A_COMMAND = "not_a_command"
    BOT = "bot"
    NOT_OURS = "not_ours"
    UNKNOWN_STATE = "unknown_state"


@dataclass(frozen=True, order=True, slots=True)
class ExternalId:
    """The id that a check run gets, to find its attempt again: GitHub lists no pull requests of forks.

    Attributes:
        number: pull request; 0 for pushes and merge groups.
    """

    number: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.number}/{self.attempt}"

    @classmethod
    def parse_or_none(cls, text: str) -> Self | None:
        """Read what `str` wrote; None for the id of another application."""
        number, slash, attempt = text.partition("/")
        is_ours = slash and number.isdecimal() and attempt.isdecimal() and len(number) < 10
        return cls(int(number), int(attempt)) if is_ours else None


@dataclass(frozen=True)
class RunKey:
    """Identifies one run of a commit; equal keys are one run, however often GitHub retries.

    Attributes:
        number: pull request; 0 for pushes and merge groups.
        attempt: 1 for the first; each requested repetition has its own.
    """

    repository: str
    number: int
    head_sha: str
    attempt: int = 1

    @property
    def external_id(self) -> ExternalId:
        """The id of its check run."""
        return ExternalId(self.number, self.attempt)

    @property
    def run_id(self) -> str:
        """Airflow's run ID `github__<hash>`."""
        text = f"{self.repository.lower()}\n{self.number}\n{self.head_sha}\n{self.attempt}"
        return f"github__{hashlib.sha256(text.encode()).hexdigest()[:24]}"


@dataclass(frozen=True)
class Previous:
    """An attempt that was started before.

    Attributes:
        request: id of the origin (`comment:12`, `check:7`, `head`): the same request is the same attempt.
        labels: the labels of the pull request at its start.
        cancelled: whether it was cancelled.
    """

    head_sha: str
    attempt: int
    request: str
    labels: tuple[str, ...] = ()
    cancelled: bool = False


@dataclass(frozen=True)
class Known:
    """Facts about the pull request that the event does not have, read from the API and the database.

    Attributes:
        permission: of the event's sender on the repository; '' if it could not be read.
        head_sha: current head of the pull request, to which commands apply; '' if it could not be read.
        head_repository: repository of the head; '' for a deleted fork.
        base_ref: base branch.
        author: author of the pull request.
        open: whether the pull request is open.
        labels: its labels.
        approved: commits with an approval, recorded by earlier decisions.
        previous: earlier attempts.
        delivery: id of the event's delivery.
    """

    permission: str = ""
    head_sha: str = ""
    head_repository: str = ""
    base_ref: str = ""
    author: str = ""
    open: bool = True
    labels: tuple[str, ...] = ()
    approved: frozenset[str] = frozenset()
    previous: tuple[Previous, ...] = ()
    delivery: str = ""

    def fork(self, repository: str) -> bool:
        """Whether the head is not in the repository."""
        return self.head_repository.lower() != repository.lower()


@dataclass(frozen=True)
class Decision:
    """One thing to do.

    Attributes:
        reason: for users, one sentence.
        key: the run to start, or the commit that waits; None for the others.
        request: id of its origin, stored with the attempt.
        chains: globs of the requested chains; empty for the selected ones.
        whole: run on the full dataset.
        failed: only chains without a pass in the previous attempt.
        cancel_before: for `CANCEL`: runs of other commits of this pull request; None cancels all.
        approve: commit whose approval is recorded.
        accept: metric and reason.
        compare: the chains of a comparison of `base`, a branch, with the head of `key`.
        reply: comment to write, '' for none.
        reaction: reaction to the comment: `+1`, `-1`, `eyes`, '' for none.
    """

    do: Do
    why: Why
    reason: str
    key: RunKey | None = None
    request: str = ""
    chains: tuple[str, ...] = ()
    whole: bool = False
    failed: bool = False
    number: int = 0
    cancel_before: str | None = None
    approve: str = ""
    accept: Accept | None = None
    compare: Ab | None = None
    base: str = ""
    reply: str = ""
    reaction: str = ""
    labels: tuple[str, ...] = ()

    def with_reply(self, reaction: str, reply: str = "") -> "Decision":
        """The same, with a reply to the comment."""
        return replace(self, reaction=reaction, reply=reply)


def next_attempt(previous: Iterable[Previous], head_sha: str, request: str) -> int:
    """The attempt of a request: the number it already has, or one more than the last of this commit."""
    attempts = [attempt for attempt in previous if attempt.head_sha == head_sha]
    again = [attempt.attempt for attempt in attempts if attempt.request == request]
    return again[0] if again else max((attempt.attempt for attempt in attempts), default=0) + 1


def approved(known: Known, head_sha: str) -> bool:
    """Whether exactly this commit has an approval."""
    return bool(head_sha) and head_sha in known.approved
