"""An action of a user, for the list of all of them."""

from tipcflow.domain.base import Frozen

# Actions that end a DAG run early.
STOPS = frozenset({"stop run", "mark run failed", "mark run success"})


class AuditEntry(Frozen):
    """An action of a user.

    Attributes:
        at: seconds since the epoch.
        action: in words, for example `accept baseline`.
        about: what it concerns: a chain, a DAG run, or a pull request as `owner/name#number`.
        run: the run that it concerns, '' for none.
        text: reason, or what was changed.
    """

    at: float
    who: str
    action: str
    about: str
    run: str = ""
    text: str = ""
