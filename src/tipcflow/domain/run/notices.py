"""Notifications and issues about a problem or an alert, stored with the run that began it: none is sent twice."""

from typing import ClassVar

from tipcflow.domain.base import Record
from tipcflow.domain.run_documents import Root

# Kinds of messages without a run, recorded in the table `messages`.
DIGEST, WEEKLY_REPORT = "digest", "weekly report"


class Notified(Record):
    """A team was notified about a problem.

    Attributes:
        chain, mode, environment: of the problem.
        at: time of the message, seconds since the epoch.
        open: whether the end of the problem is still to be reported.
    """

    chain: str
    mode: str
    environment: str
    at: float
    open: bool = True


class NoticesDocument(Root[dict[str, Notified]]):
    """Team -> notice about the problem that this run began."""

    NAME: ClassVar[str] = "notices"
    root: dict[str, Notified] = {}


class AlertNotified(Record):
    """A team was notified about an alert.

    Attributes:
        alert: its number.
        event: ordinal of the newest event, of those that opened or reopened it, of which the team was notified.
        at: time of the message, seconds since the epoch.
        open: whether the end of the alert is still to be reported.
    """

    alert: int
    event: int
    at: float
    open: bool = True


class AlertNoticesDocument(Root[dict[str, AlertNotified]]):
    """Team -> notice about the alert that this run opened."""

    NAME: ClassVar[str] = "alert_notices"
    root: dict[str, AlertNotified] = {}


class IssueRef(Record):
    """An issue on GitHub.

    Attributes:
        url: its address for users.
    """

    number: int
    url: str = ""


class IssuesDocument(Root[dict[str, IssueRef]]):
    """Repository -> issue about the cause of the alert that this run opened, the first one with that cause."""

    NAME: ClassVar[str] = "alert_issues"
    root: dict[str, IssueRef] = {}
