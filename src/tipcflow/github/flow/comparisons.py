"""A/B comparisons that `/tipc ab` requests. The state of one is the message that shows its result."""

import hashlib
from typing import Any

from tipcflow.config.repository import Repository
from tipcflow.domain import Status
from tipcflow.domain.base import Record
from tipcflow.domain.run_documents import AbDocument
from tipcflow.github.flow.outgoing import MessageKind, TextBody
from tipcflow.github.report import ComparedChain, ComparedMetric, ComparisonFacts, comparison_text
from tipcflow.github.trust import Decision
from tipcflow.store import Store

# Rank of a message about a comparison that has ended.
_ENDED = 1.0


class AbRun(Record):
    """The comparison of one chain.

    Attributes:
        params_file: as a param of the DAG `ab`.
        run_id: ID of its run of the DAG `ab`.
        first: the first run of the comparison, with which the result is stored.
        status: of the result; '' before it.
    """

    chain: str
    params_file: str
    run_id: str
    first: str
    status: str = ""
    verdict: str = ""


class ComparisonBody(TextBody):
    """A requested comparison of the base and the head of a pull request.

    Attributes:
        comment: id of the comment with the command; 0 if the planner chose the comparison.
        head_sha, base: commit B, and the branch of commit A.
        base_sha: commit A; '' before the start.
        by: the user.
        globs: of the chains; empty for those that the change affects.
        why: the planner's reasons, one sentence each.
        budget_minutes: of each chain; 0 for that of the repository's file.
        requested_at, retry_at: seconds since the epoch.
        problem: why nothing was started.
        cancel: why it is cancelled; '' if it is not.
    """

    comment: int
    head_sha: str
    base: str
    base_sha: str = ""
    by: str
    globs: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    budget_minutes: float = 0.0
    requested_at: float
    retry_at: float = 0.0
    runs: tuple[AbRun, ...] = ()
    problem: str = ""
    cancel: str = ""
    ended: bool = False

    @property
    def subject(self) -> str:
        """The subject of its message: one comparison per comment, and one of the planner per commit."""
        return str(self.comment) if self.comment else f"plan/{self.number}/{self.head_sha}"

    def dag_run_id(self, repository: str, chain: str) -> str:
        """Return the ID of the run of the DAG `ab` for a chain, equal in every repetition."""
        digest = hashlib.sha256(f"{repository.lower()}\n{self.subject}\n{chain}".encode()).hexdigest()
        return f"github__{digest[:24]}"


def request_comparison(store: Store, repository: Repository, decision: Decision, comment: int, by: str) -> None:
    """Store a requested comparison; a repeated delivery changes nothing."""
    assert decision.compare
    assert decision.key
    body = ComparisonBody(
        number=decision.number,
        text="",
        comment=comment,
        head_sha=decision.key.head_sha,
        base=decision.base,
        by=by,
        globs=decision.compare.chains,
        requested_at=store.now(),
    )
    add_comparison(store, repository, body)


def add_comparison(store: Store, repository: Repository, body: ComparisonBody) -> None:
    """Store a new comparison; nothing happens if it exists."""
    if store.messages.get(repository.name, MessageKind.COMPARISON, body.subject) is None:
        save_comparison(store, repository, body)


def living_comparisons(store: Store, repository: str = "") -> list[tuple[str, ComparisonBody]]:
    """Return (repository, comparison) of all that have not ended, oldest first.

    Args:
        repository: only of this one; '' for all.
    """
    waiting = store.messages.below(MessageKind.COMPARISON, _ENDED)
    return [
        (message.repository, ComparisonBody.of(message))
        for message in waiting
        if repository in ("", message.repository)
    ]


def cancel_comparisons(store: Store, repository: Repository, number: int, reason: str) -> int:
    """Cancel the comparisons of a pull request; return their number."""
    own = [body for _, body in living_comparisons(store, repository.name) if body.number == number]
    for body in own:
        save_comparison(store, repository, body.model_copy(update={"cancel": body.cancel or reason}))
    return len(own)


def comparison_acts(store: Store, body: ComparisonBody, now: float) -> bool:
    """Whether a comparison is to be started or cancelled, or a result of it is not shown."""
    if body.cancel:
        return body.retry_at <= now
    if not body.runs:
        return body.retry_at <= now
    return any(not run.status and store.documents.get(run.first, AbDocument) for run in body.runs)


def save_comparison(store: Store, repository: Repository, body: ComparisonBody) -> None:
    """Store a comparison, with the text that GitHub is to show."""
    facts = ComparisonFacts(
        head_sha=body.head_sha,
        base=body.base,
        base_sha=body.base_sha,
        by=body.by,
        chains=tuple(_facts(store, run) for run in body.runs),
        why=body.why,
        problem=body.cancel or body.problem,
        ended=body.ended,
    )
    stored = body.model_copy(update={"text": comparison_text(facts, repository)}).stored()
    rank = _ENDED if body.ended else 0.0
    store.messages.put(repository.name, MessageKind.COMPARISON, body.subject, stored, rank=rank, final=body.ended)


def _facts(store: Store, run: AbRun) -> ComparedChain:
    document = store.documents.get(run.first, AbDocument) if run.status else None
    result: Any = document.root if document else {}
    metrics = tuple(
        ComparedMetric(
            where=" ".join(part for part in (each["step"], each["leg"]) if part),
            metric=each["metric"],
            ratio=each["ratio"],
            low=each["low"],
            high=each["high"],
            outcome=each["outcome"],
        )
        for each in result.get("metrics", ())
    )
    status = Status(run.status) if run.status else None
    return ComparedChain(chain=run.chain, status=status, verdict=run.verdict, metrics=metrics)
