"""Handles deliveries: an event becomes decisions, and these become rows."""

import logging
from collections.abc import Callable
from typing import Any, Protocol

from pydantic import ValidationError

from tipcflow.config.repository import Repositories, Repository
from tipcflow.domain import ConfigError, InfraError
from tipcflow.domain.masking import mask
from tipcflow.github.client import PullState
from tipcflow.github.commands import Accept, Help, Wrong, parse
from tipcflow.github.flow.comparisons import cancel_comparisons, request_comparison
from tipcflow.github.flow.outgoing import MessageKind, ReactionBody, TextBody
from tipcflow.github.trust import Decision, Do, ExternalId, Known, Previous, decide
from tipcflow.github.webhook import (
    CheckRunEvent,
    CheckSuiteEvent,
    CommentEvent,
    Event,
    MergeGroupEvent,
    PullRequestEvent,
    PushEvent,
    stored_event,
)
from tipcflow.store import Store
from tipcflow.store.github.attempts import HELD, NEW, SKIPPED, PullAttempt
from tipcflow.store.github.decision import AttemptDecision
from tipcflow.store.outbox import OutboxRow

# Pauses before a delivery that could not be handled is taken again, and when that ends.
RETRY_S = (10.0, 30.0, 60.0, 120.0)
REFUSED_S = 600.0
MOST_REFUSALS = 12
_LOG = logging.getLogger(__name__)


class Reader(Protocol):
    """What handling reads from GitHub."""

    def pull(self, number: int) -> PullState:
        """The current state of a pull request."""

    def permission(self, login: str) -> str:
        """The permission of a user."""


Clients = Callable[[Repository], Any]
# (attempt, metric, reason, user) -> a reply to the comment.
Acceptor = Callable[[PullAttempt, Accept, str], str]


def handle(
    row: OutboxRow, store: Store, repositories: Repositories, clients: Clients, accept: Acceptor
) -> tuple[str, bool]:
    """Handle one delivery; returns (what was done, whether it is done).

    A failure leaves the row for later: GitHub's problems for as long as they last, refusals for two hours.
    """
    try:
        outcome = _handle(row, store, repositories, clients, accept)
    except InfraError as error:
        wait = RETRY_S[min(row.takes, len(RETRY_S)) - 1]
        store.outbox.leave(row.delivery, error.message, wait_s=wait)
        return error.message, False
    except ConfigError as error:
        if row.takes < MOST_REFUSALS:
            store.outbox.leave(row.delivery, error.message, wait_s=REFUSED_S)
            return error.message, False
        outcome = f"dropped: {error.message}"
    except Exception as error:
        # A response of GitHub with an unknown form must not stop the other deliveries.
        _LOG.exception("delivery %s", row.delivery)
        if row.takes < MOST_REFUSALS:
            store.outbox.leave(row.delivery, f"internal error: {mask(repr(error))}", wait_s=REFUSED_S)
            return f"internal error: {mask(repr(error))}", False
        outcome = f"dropped: internal error: {mask(repr(error))}"
    store.outbox.done(row.delivery, outcome)
    return outcome, True


def _handle(row: OutboxRow, store: Store, repositories: Repositories, clients: Clients, accept: Acceptor) -> str:
    repository = repositories.of(row.connection, row.repository) if row.repository else None
    if repository is None:
        return "no repository" if not row.repository else "the repository is no longer configured"
    try:
        event = stored_event(row.event, row.body or {})
    except (KeyError, ValidationError):
        return "stored by an incompatible version of tipcflow"
    if isinstance(event, CheckSuiteEvent):
        attempts = store.pulls.newest(repository=repository.name, head_sha=event.head_sha, limit=1)
        if not attempts:
            return f"ignore: {event.head_sha[:8]} has no run of tipcflow"
        event = event.check_run(repository.check, ExternalId(attempts[0].number, attempts[0].attempt))
    known = known_facts(event, row, store, repository, clients)
    done = [
        _apply(decision, event, known, store, repository, accept) for decision in decide(event, repository, known)
    ]
    return "; ".join(done)


def known_facts(event: Event, row: OutboxRow, store: Store, repository: Repository, clients: Clients) -> Known:
    """The facts that decide about an event; GitHub is read only where they matter.

    Raises:
        InfraError, ConfigError: GitHub does not respond; nothing is decided then.
    """
    number = _number(event)
    login = _who(event, repository)
    reads = bool(number) and (login or isinstance(event, PullRequestEvent))
    previous = tuple(
        Previous(
            attempt.head_sha,
            attempt.attempt,
            attempt.request,
            attempt.body.labels,
            cancelled=bool(attempt.cancel),
        )
        for attempt in store.pulls.of(repository.name, number, head_sha="" if number else _head(event))
        if attempt.state not in (HELD, SKIPPED)
    )
    common: dict[str, Any] = {"previous": previous, "delivery": row.delivery}
    if not reads and not login:
        return Known(**common)
    client: Reader = clients(repository)
    if login:
        common["permission"] = _permission(client, login)
    if not reads:
        return Known(**common)
    pull = client.pull(number)
    if isinstance(event, PullRequestEvent) and row.takes < 2 and _is_other_state(event, pull):
        # GitHub's reads may lag behind its events: the second read shows whether there is a newer event.
        raise InfraError(f"GitHub shows another state of pull request {number} than the event", passing=True)
    return Known(
        **common,
        head_sha=pull.head_sha,
        head_repository=pull.head_repository,
        base_ref=pull.base_ref,
        author=pull.author,
        open=pull.open,
        labels=pull.labels,
        approved=store.pulls.approved(repository.name, number),
    )


def _is_other_state(event: PullRequestEvent, pull: PullState) -> bool:
    if event.action == "closed":
        return pull.open
    return not pull.open or pull.head_sha != event.head_sha


def _permission(client: Reader, login: str) -> str:
    """The permission of a user; none for one that GitHub does not know here."""
    try:
        return client.permission(login)
    except ConfigError:
        return "none"


def _number(event: Event) -> int:
    if isinstance(event, PullRequestEvent | CommentEvent):
        return event.number
    known = ExternalId.parse_or_none(event.external_id) if isinstance(event, CheckRunEvent) else None
    return known.number if known else 0


def _head(event: Event) -> str:
    if isinstance(event, PushEvent):
        return event.after
    return event.head_sha if isinstance(event, MergeGroupEvent | CheckRunEvent) else ""


def _who(event: Event, repository: Repository) -> str:
    """The user whose permission decides; '' if no permission is needed."""
    if event.by_bot or event.sender.lower() == repository.bot.lower():
        return ""
    if isinstance(event, CheckRunEvent):
        return event.sender
    if not isinstance(event, CommentEvent) or not event.pull_request:
        return ""
    command = parse(event.body)
    return "" if command is None or isinstance(command, Wrong | Help) else event.sender


def _apply(
    decision: Decision, event: Event, known: Known, store: Store, repository: Repository, accept: Acceptor
) -> str:
    """Carry out one decision; returns what was done."""
    reply, reaction, done = decision.reply, decision.reaction, decision.do.value
    if decision.do is Do.CANCEL:
        count = store.pulls.cancel(repository.name, decision.number, decision.reason, but=decision.cancel_before)
        if decision.cancel_before is None:
            count += cancel_comparisons(store, repository, decision.number, decision.reason)
        done = f"cancel {count}"
    elif decision.do is Do.START:
        if decision.approve:
            store.pulls.approve(repository.name, decision.number, decision.approve, event.sender)
        added = store.pulls.add(_attempt(decision, event, known, store, repository, NEW))
        done = "start" if added else "already started"
    elif decision.do in (Do.WAIT, Do.REPORT) and decision.key:
        state = HELD if decision.do is Do.WAIT else SKIPPED
        added = store.pulls.add(_attempt(decision, event, known, store, repository, state))
        done = state if added else "already reported"
    elif decision.do is Do.ACCEPT and decision.accept:
        reply, reaction = _accepted(decision, event, known, store, repository, accept)
    elif decision.do is Do.COMPARE and isinstance(event, CommentEvent):
        request_comparison(store, repository, decision, event.comment, event.sender)
    if isinstance(event, CommentEvent):
        _answer(store, repository, event, reply, reaction)
    return f"{done}: {decision.reason}"


def _accepted(
    decision: Decision, event: Event, known: Known, store: Store, repository: Repository, accept: Acceptor
) -> tuple[str, str]:
    """(Reply, reaction) to an accept command, which is for the newest attempt of the head."""
    assert decision.accept
    attempts = store.pulls.of(repository.name, decision.number, head_sha=known.head_sha)
    if not attempts:
        return "The head of this pull request has no run whose values can be accepted.", "-1"
    try:
        return accept(attempts[-1], decision.accept, event.sender), "+1"
    except ConfigError as error:
        return error.message, "-1"


def _answer(store: Store, repository: Repository, event: CommentEvent, reply: str, reaction: str) -> None:
    subject = str(event.comment)
    if reaction:
        body = ReactionBody(comment=event.comment, content=reaction)
        store.messages.put(repository.name, MessageKind.REACTION, subject, body.stored())
    if reply:
        text = TextBody(number=event.number, text=reply)
        store.messages.put(repository.name, MessageKind.REPLY, subject, text.stored())


def _attempt(
    decision: Decision, event: Event, known: Known, store: Store, repository: Repository, state: str
) -> PullAttempt:
    assert decision.key
    key = decision.key
    earlier = None if key.number else next(iter(store.pulls.of(key.repository, 0, head_sha=key.head_sha)), None)
    base, base_sha = known.base_ref, ""
    if isinstance(event, PullRequestEvent):
        base, base_sha = event.base_ref, event.base_sha
    elif isinstance(event, MergeGroupEvent):
        base, base_sha = event.branch, event.base_sha
    elif isinstance(event, PushEvent):
        base, base_sha = "", event.before
    elif earlier:
        base, base_sha = earlier.body.base, earlier.body.base_sha
    body = AttemptDecision(
        why=decision.why.value,
        reason=decision.reason,
        chains=decision.chains,
        whole=decision.whole,
        failed=decision.failed,
        labels=decision.labels or known.labels,
        base=base,
        base_sha=base_sha,
        mode=repository.mode_of(whole=decision.whole),
    )
    return PullAttempt(
        repository=key.repository,
        number=key.number,
        head_sha=key.head_sha,
        attempt=key.attempt,
        request=decision.request if state == NEW else "",
        state=state,
        body=body,
    )
