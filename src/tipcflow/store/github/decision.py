"""The stored decision of an attempt: what it runs and why, and facts that its start recorded."""

from typing import Any, Self

from pydantic import ConfigDict

from tipcflow.domain import Frozen


class AttemptDecision(Frozen):
    """The decision of an attempt, stored as a JSON object without the fields that were never set.

    Fields of later versions are kept, because an earlier version may store the object again.

    Attributes:
        why: the decision's `Why`; a later version may have more.
        reason: why the attempt runs, waits or is skipped.
        chains: globs of a command; empty for the chains that the change affects.
        whole: whether the mode is whole_train_whole_infer, without a budget.
        failed: whether only chains run that did not pass in an earlier attempt of the commit.
        labels: of the pull request.
        base, base_sha: branch and commit that the change is compared with.
        mode: of the runs; '' in attempts of earlier versions before their selection.
        problems: what the selection cannot use, such as a label that names no chain.
        unconcerned: why no chain was selected.
        unproven: what the budget dropped.
        compared: chains with a history that is too noisy, one sentence each: compared with the base, or why not.
        predicted_s: predicted seconds of the selected chains.
        retry_at: time by the database's clock, before which a failed start or stop is not repeated.
        stopped: whether the DAG runs of a cancelled attempt were stopped.
    """

    model_config = ConfigDict(extra="allow")

    why: str = ""
    reason: str = ""
    chains: tuple[str, ...] = ()
    whole: bool = False
    failed: bool = False
    labels: tuple[str, ...] = ()
    base: str = ""
    base_sha: str = ""
    mode: str = ""
    problems: tuple[str, ...] = ()
    unconcerned: str = ""
    unproven: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()
    predicted_s: float = 0.0
    retry_at: float = 0.0
    stopped: bool = False

    @property
    def is_part(self) -> bool:
        """Whether an attempt leaves out chains that the change affects in its mode."""
        return bool(self.chains) or self.failed

    def later(self, at: float) -> Self:
        """Return the decision with the time of the next start or stop; 0 for no pause."""
        return self.model_copy(update={"retry_at": at})

    def stored(self) -> dict[str, Any]:
        """Return the JSON object to store."""
        return self.model_dump(mode="json", exclude_unset=True)
