"""Verification of webhook deliveries and their reduction to the fields that are used.

Public: `__all__`, `delivery`, `events`.
"""

from tipcflow.github.webhook.delivery import Accepted, Headers, Refused, receive
from tipcflow.github.webhook.events import (
    CheckRunEvent,
    CheckSuiteEvent,
    CommentEvent,
    Event,
    InstallationEvent,
    MergeGroupEvent,
    PingEvent,
    PullRequestEvent,
    PushEvent,
    event_of,
    stored_event,
)

__all__ = [
    "Accepted",
    "CheckRunEvent",
    "CheckSuiteEvent",
    "CommentEvent",
    "Event",
    "Headers",
    "InstallationEvent",
    "MergeGroupEvent",
    "PingEvent",
    "PullRequestEvent",
    "PushEvent",
    "Refused",
    "event_of",
    "receive",
    "stored_event",
]
