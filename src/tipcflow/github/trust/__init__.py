"""What an event may start: pure functions from (event, repository, known facts) to decisions.

Public: `__all__`.
"""

from tipcflow.github.trust.decide import decide
from tipcflow.github.trust.decisions import (
    Decision,
    Do,
    ExternalId,
    Known,
    Previous,
    RunKey,
    Why,
    approved,
    next_attempt,
)

__all__ = [
    "Decision",
    "Do",
    "ExternalId",
    "Known",
    "Previous",
    "RunKey",
    "Why",
    "approved",
    "decide",
    "next_attempt",
]
