"""A quarantine: failures of one check of a chain that do not block, for a limited time (ADR 25)."""

import math
from typing import Annotated

from pydantic import AfterValidator

from tipcflow.domain.base import Frozen
from tipcflow.domain.check import CheckResult
from tipcflow.domain.keys import without_repeat
from tipcflow.domain.numbers.units import utc_minute
from tipcflow.domain.quarantine.signature import current_signature, refusal, signature_of, size_of

# A failure is covered up to this multiple of the largest size in the evidence.
GROWTH = 2.0
# Accepted risk that a chain whose failure rate is unchanged is released.
_RISK = 0.05


class Quarantine(Frozen):
    """Failures of a check with one signature, of one chain in one mode and environment class.

    Attributes:
        number: its name; 0 before it is stored.
        check, step, leg, metric: of the covered results; `step` without its repeat.
        signature: `signature_of` the covered results.
        largest: the largest size (`size_of`) in the evidence; None if the results have none.
        owner: the user or team that fixes the failure; `who` made the quarantine, and `why`.
        run: the run whose failure was quarantined.
        evidence: the runs with that failure, newest first; `failed` of `judged` runs had it.
        expires_at: the failure blocks again from then on.
        released_at, released_by, released_because: the end before that; None and '' without one.
    """

    schema_version: int = 1
    number: int = 0
    chain: str
    mode: str
    environment: str
    check: str
    step: str = ""
    leg: str = ""
    metric: str = ""
    signature: Annotated[str, AfterValidator(current_signature)]
    largest: float | None = None
    owner: str
    who: str
    why: str
    run: str
    evidence: tuple[str, ...] = ()
    failed: int
    judged: int
    created_at: float
    expires_at: float
    released_at: float | None = None
    released_by: str = ""
    released_because: str = ""

    @property
    def clean_runs(self) -> int:
        """The number of consecutive clean runs that end it."""
        return clean_runs_needed(self.failed, self.judged)

    @property
    def until(self) -> str:
        """The time at which it expires: `2026-12-01 00:00 UTC`."""
        return utc_minute(self.expires_at)

    @property
    def label(self) -> str:
        """Number, owner and end: `quarantine 7 of mia, until 2026-12-01 00:00 UTC`."""
        return f"quarantine {self.number} of {self.owner}, until {self.until}"

    @property
    def about(self) -> str:
        """The check with its scope: `parity.onednn (v/infer_cpu cpu_bs1)`."""
        scope = " ".join(part for part in (self.step, self.leg) if part)
        return f"{self.check} ({scope})" if scope else self.check

    def is_active(self, at: float) -> bool:
        """Whether it is in force at a time, seconds since the epoch."""
        released = self.released_at is not None and self.released_at <= at
        return self.created_at <= at < self.expires_at and not released

    def is_about(self, result: CheckResult) -> bool:
        """Whether it is about this check with this scope, whatever the result."""
        scope = (result.check, without_repeat(result.step), result.leg, result.metric)
        return scope == (self.check, self.step, self.leg, self.metric)

    def covers(self, result: CheckResult) -> bool:
        """Whether a result is a failure with its signature that is not much larger than the evidence."""
        if not self.is_about(result) or refusal(result) or signature_of(result) != self.signature:
            return False
        size = size_of(result)
        return size is None or self.largest is None or size <= GROWTH * self.largest


def clean_runs_needed(failed: int, judged: int) -> int:
    """Return the smallest n with (1 - p)^n <= 0.05: an unchanged chain has n clean runs with at most that chance.

    p is the measured failure rate, as if one more run had been clean: otherwise a chain that always failed would
    be released by its first clean run.

    Args:
        failed: at least 1.
        judged: at least `failed`.
    """
    return math.ceil(math.log(_RISK) / math.log1p(-failed / (judged + 1)))
