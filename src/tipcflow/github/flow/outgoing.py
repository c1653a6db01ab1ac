"""Kinds and bodies of the messages to GitHub, as they are stored in the outgoing outbox."""

from enum import StrEnum
from typing import Any, Self

from pydantic import ValidationError

from tipcflow.domain.base import Record
from tipcflow.github.report import Issue
from tipcflow.store.github.messages import Message


class MessageKind(StrEnum):
    """What a message is; stored, and never renamed."""

    CHECK = "check"
    COMMENT = "comment"
    REACTION = "reaction"
    REPLY = "reply"
    ISSUE = "issue"
    COMPARISON = "comparison"


class _Body(Record):
    @classmethod
    def of(cls, message: Message) -> Self:
        """Return the body of a stored message.

        Raises:
            ValueError: a field is missing or invalid; names the field.
        """
        try:
            return cls.model_validate(message.body)
        except ValidationError as error:
            field = ".".join(map(str, error.errors(include_url=False)[0]["loc"]))
            raise ValueError(f"the stored {message.kind} has no valid field {field!r}") from error

    def stored(self) -> dict[str, Any]:
        """Return the JSON object to store."""
        return self.model_dump(mode="json")


class TextBody(_Body):
    """Body of a comment or a reply.

    Attributes:
        number: the pull request.
    """

    number: int
    text: str


class ReactionBody(_Body):
    """Body of a reaction.

    Attributes:
        comment: id of the comment.
        content: GitHub's name of the reaction.
    """

    comment: int
    content: str


class IssueBody(_Body):
    """Body of an issue about alerts with one cause.

    Attributes:
        first: the run that opened the first alert with this cause; the issue's number is stored with this run.
        covered: alert -> ordinal of its newest event that the issue includes.
    """

    first: str
    issue: Issue
    covered: dict[int, int] = {}
