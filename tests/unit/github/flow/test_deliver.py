"""Outgoing messages: order, pauses after failures, and what ends a message that GitHub refuses."""

from pathlib import Path
from typing import Any

import pytest

from tipcflow.config.repository import Repositories
from tipcflow.domain import ConfigError, InfraError
from tipcflow.github.client.errors import LimitedError
from tipcflow.github.flow.deliver import LONGEST_WAIT_S, REFUSED_S, deliver, wait_s
from tipcflow.github.flow.outgoing import MessageKind, ReactionBody, TextBody
from tipcflow.store import Store
from tipcflow.store.github.messages import Message

NAME = "Codertocat/Hello-World"


class Client:
    """What was sent; `error` is raised instead."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, ...]] = []
        self.error: Exception | None = None

    def comment(self, number: int, marker: str, text: str) -> int:
        self._send("comment", number, marker, text)
        return 1

    def react(self, comment: int, reaction: str) -> None:
        self._send("react", comment, reaction)

    def _send(self, *what: Any) -> None:
        if self.error is not None:
            raise self.error
        self.sent.append(what)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store.open(f"sqlite:///{tmp_path / 'tipcflow.db'}") as store:
        yield store


@pytest.fixture
def client() -> Client:
    return Client()


def put(store: Store, number: int, *, kind: str = "comment", repository: str = NAME) -> None:
    body = {"number": number, "text": f"text {number}", "comment": number, "content": "+1"}
    assert store.messages.put(repository, kind, str(number), body)


def test_messages_are_sent_once_and_in_order(store: Store, repositories: Repositories, client: Client) -> None:
    for number in (3, 1, 2):
        put(store, number)
    found = deliver(store, repositories, lambda _: client)
    assert (found.sent, found.failed, found.postponed) == (3, 0, 0)
    assert [number for _, number, *_ in client.sent] == [3, 1, 2]
    assert deliver(store, repositories, lambda _: client).sent == 0


def test_reply_begins_with_its_mark(store: Store, repositories: Repositories, client: Client) -> None:
    put(store, 5, kind="reply")
    deliver(store, repositories, lambda _: client)
    ((_, number, mark, text),) = client.sent
    assert number == 5
    assert ":reply:5 " in mark
    assert text == f"{mark}\ntext 5\n"


def test_reaction_is_sent_to_its_comment(store: Store, repositories: Repositories, client: Client) -> None:
    put(store, 8, kind="reaction")
    deliver(store, repositories, lambda _: client)
    assert client.sent == [("react", 8, "+1")]


def test_other_messages_wait_after_a_temporary_failure(
    store: Store, repositories: Repositories, client: Client
) -> None:
    put(store, 1)
    put(store, 2)
    client.error = InfraError("GitHub is away", passing=True)
    found = deliver(store, repositories, lambda _: client)
    assert (found.sent, found.failed, found.postponed) == (0, 1, 1)
    client.error = None
    assert deliver(store, repositories, lambda _: client).sent == 0, "the messages are not due yet"
    assert [(one.subject, one.tries, one.error) for one in store.messages.waiting()] == [
        ("1", 1, "GitHub is away"),
        ("2", 0, ""),
    ]


def test_refused_message_does_not_stop_the_others(
    store: Store, repositories: Repositories, client: Client
) -> None:
    put(store, 1, kind="unknown")
    put(store, 2)
    found = deliver(store, repositories, lambda _: client)
    assert (found.sent, found.failed) == (1, 1)
    (left,) = store.messages.waiting()
    assert "unknown kind of message" in left.error


def test_message_that_is_refused_for_days_is_dropped(
    store: Store, repositories: Repositories, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, 1)
    client.error = ConfigError("not allowed")
    created = store.messages.waiting()[0].created_at
    monkeypatch.setattr(store, "now", lambda: created + REFUSED_S + 1)
    deliver(store, repositories, lambda _: client)
    assert store.messages.waiting() == []


def test_defect_of_one_message_does_not_stop_the_others(
    store: Store, repositories: Repositories, client: Client
) -> None:
    assert store.messages.put(NAME, "comment", "1", {"text": "without a number"})
    put(store, 2)
    found = deliver(store, repositories, lambda _: client)
    assert (found.sent, found.failed) == (1, 1)
    (left,) = store.messages.waiting()
    assert left.error == "internal error: ValueError(\"the stored comment has no valid field 'number'\")"


def test_message_of_an_unconfigured_repository_is_dropped(
    store: Store, repositories: Repositories, client: Client
) -> None:
    put(store, 1, repository="o/gone")
    found = deliver(store, repositories, lambda _: client)
    assert (found.sent, found.failed, store.messages.waiting()) == (0, 0, [])


@pytest.mark.parametrize(
    ("tries", "error", "seconds"),
    [
        (0, InfraError("away"), 5.0),
        (2, InfraError("away"), 20.0),
        (50, InfraError("away"), LONGEST_WAIT_S),
        (0, LimitedError("rate", 300.0), 300.0),
        (4, LimitedError("rate", 1.0), 80.0),
    ],
)
def test_pause_is_doubled_and_at_least_as_github_requests(tries: int, error: InfraError, seconds: float) -> None:
    assert wait_s(tries, error) == seconds


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (TextBody(number=7, text="t"), {"number": 7, "text": "t"}),
        (ReactionBody(comment=8, content="+1"), {"comment": 8, "content": "+1"}),
    ],
)
def test_body_of_a_message_is_stored_with_its_former_keys(
    body: TextBody | ReactionBody, expected: dict[str, Any]
) -> None:
    assert body.stored() == expected
    message = Message(repository=NAME, kind="comment", subject="7", body={**expected, "urgency": 3})
    assert type(body).of(message) == body


def test_kinds_of_messages_keep_their_stored_names() -> None:
    assert [kind.value for kind in MessageKind] == ["check", "comment", "reaction", "reply", "issue", "comparison"]
