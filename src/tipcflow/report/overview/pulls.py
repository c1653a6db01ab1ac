"""Pull requests and pushed commits: what was certified, and how it ended."""

from pydantic import BaseModel, ConfigDict

from tipcflow.domain import Status


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class PullChain(_Model):
    """A chain of an attempt.

    Attributes:
        run: '' if it was not started; `reason` then is the problem.
        status: None while it is running.
        base: the run that it is compared with, its chain's newest green run before it; '' without one.
        selected: why the chain was selected.
    """

    chain: str
    run: str
    status: Status | None
    reason: str
    base: str
    selected: str


class PullRow(_Model):
    """An attempt of a commit.

    Attributes:
        number: pull request; 0 for pushes and merge groups.
        why: why it is held, or was cancelled.
    """

    repository: str
    number: int
    head_sha: str
    attempt: int
    state: str
    why: str
    created_at: float
    ended_at: float | None
    chains: tuple[PullChain, ...]

    @property
    def worst(self) -> Status | None:
        """The worst status of the chains that have one."""
        known = [chain.status for chain in self.chains if chain.status is not None]
        return max(known, key=lambda status: status.severity, default=None)


class Pulls(_Model):
    """Attempts, newest first; chains of an attempt, the worst first."""

    schema_version: int = 1
    repository: str
    number: int | None
    attempts: tuple[PullRow, ...]
