"""Sends the outgoing outbox to GitHub: in order, until GitHub has it, and nothing twice."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from tipcflow.config.repository import Repositories, Repository
from tipcflow.domain import ConfigError, InfraError
from tipcflow.domain.masking import mask
from tipcflow.domain.run.notices import IssueRef, IssuesDocument
from tipcflow.github.client.errors import LimitedError
from tipcflow.github.flow.observe import from_json
from tipcflow.github.flow.outgoing import IssueBody, MessageKind, ReactionBody, TextBody
from tipcflow.github.report import CheckRun, Issue, marker
from tipcflow.store import Store
from tipcflow.store.github.messages import Message

_LOG = logging.getLogger(__name__)
LONGEST_WAIT_S = 120.0
LONGEST_REFUSED_S = 3600.0
# A message that GitHub refuses is repeated until then: the App's permissions may be corrected.
REFUSED_S = 3 * 86400.0


class Writer(Protocol):
    """What delivery writes to GitHub. Each call first looks for the effect of an interrupted one."""

    def publish(self, check: CheckRun) -> int:
        """Create or update a check run."""

    def comment(self, number: int, marker: str, text: str) -> int:
        """Write or edit the comment with this first line."""

    def react(self, comment: int, reaction: str) -> None:
        """Add a reaction."""

    def issue(self, issue: Issue, number: int) -> tuple[int, str]:
        """Create or update an issue, and add its comments."""


@dataclass
class Delivered:
    """Numbers of messages."""

    sent: int = 0
    failed: int = 0
    postponed: int = 0
    paused: dict[str, float] = field(default_factory=dict)


def deliver(
    store: Store, repositories: Repositories, clients: Callable[[Repository], Any], *, limit: int = 50
) -> Delivered:
    """Send the messages that are due.

    After a temporary failure the other messages of that repository wait as long, so the order stays and a limited
    rate is not used up by retries.
    """
    by_name = {configured.name: configured for configured in repositories}
    delivered = Delivered()
    for message in store.messages.take(limit=limit):
        repository = by_name.get(message.repository)
        if repository is None:
            store.messages.give_up(message, "the repository is no longer configured")
            continue
        if message.repository in delivered.paused:
            store.messages.postpone(message, wait_s=delivered.paused[message.repository])
            delivered.postponed += 1
            continue
        _deliver_message(message, store, repository, clients, delivered)
    return delivered


def _deliver_message(
    message: Message,
    store: Store,
    repository: Repository,
    clients: Callable[[Repository], Any],
    delivered: Delivered,
) -> None:
    try:
        _send(store, clients(repository), message, repository)
    except InfraError as error:
        wait = wait_s(message.tries, error)
        store.messages.failed(message, error.message, wait_s=wait)
        delivered.paused[message.repository] = wait
        delivered.failed += 1
        _LOG.warning("%s %s is sent again in %.0f s: %s", message.kind, message.subject, wait, error.message)
    except ConfigError as error:
        delivered.failed += 1
        _LOG.error("GitHub refuses %s %s: %s", message.kind, message.subject, error.message)
        if store.now() - message.created_at > REFUSED_S:
            store.messages.give_up(message, error.message)
        else:
            wait = min(LONGEST_REFUSED_S, 30.0 * 2 ** min(message.tries, 10))
            store.messages.failed(message, error.message, wait_s=wait)
    except Exception as error:
        # A message that cannot be sent because of a defect must not stop the others.
        _LOG.exception("%s %s", message.kind, message.subject)
        delivered.failed += 1
        store.messages.failed(message, f"internal error: {mask(repr(error))}", wait_s=LONGEST_REFUSED_S)
    else:
        store.messages.sent(message)
        delivered.sent += 1


def wait_s(tries: int, error: InfraError) -> float:
    """Seconds until the next attempt: what GitHub requests, otherwise twice the last pause."""
    requested = error.wait_s if isinstance(error, LimitedError) else 0.0
    return max(requested, min(LONGEST_WAIT_S, 5.0 * 2.0 ** min(tries, 10)))


def _send(store: Store, client: Writer, message: Message, repository: Repository) -> None:
    if message.kind == MessageKind.CHECK:
        client.publish(from_json(message.body))
    elif message.kind == MessageKind.COMMENT:
        comment = TextBody.of(message)
        client.comment(comment.number, marker(repository), comment.text)
    elif message.kind == MessageKind.REACTION:
        reaction = ReactionBody.of(message)
        client.react(reaction.comment, reaction.content)
    elif message.kind in (MessageKind.REPLY, MessageKind.COMPARISON):
        mark = f"<!-- tipcflow:{repository.check}:reply:{message.subject} -->"
        reply = TextBody.of(message)
        client.comment(reply.number, mark, f"{mark}\n{reply.text}\n")
    elif message.kind == MessageKind.ISSUE:
        _send_issue(store, client, IssueBody.of(message), repository)
    else:
        raise ConfigError("unknown kind of message", found=message.kind)


def _send_issue(store: Store, client: Writer, body: IssueBody, repository: Repository) -> None:
    """Send an issue, and store its number: until then, the issue is found by its first line."""
    known = store.documents.get(body.first, IssuesDocument)
    there = None if known is None else known.root.get(repository.name)
    number, url = client.issue(body.issue, there.number if there else 0)
    if number and there is None:
        reference = IssueRef(number=number, url=url)
        store.documents.merge(body.first, IssuesDocument, {repository.name: reference})
