"""Notifications about a problem: stored with the run that began it, so that none is sent twice."""

from typing import ClassVar

from tipcflow.domain.base import Record
from tipcflow.domain.run_documents import Root


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
