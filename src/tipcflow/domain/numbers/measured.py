"""Keys of `CheckResult.values`, and typed access to the values that other code reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class ValueKey(StrEnum):
    """Keys of `CheckResult.values` that other code reads; stored, and never renamed.

    Checks set more keys that only the page and the certificate show.
    """

    VALUE = "value"
    UNIT = "unit"
    TARGET = "target"
    TOLERANCE = "tolerance"
    PINNED = "pinned"
    BASELINE = "baseline"
    SIGMA = "sigma"
    RATIO = "ratio"
    LIMIT = "limit"
    N = "n"
    NEEDED = "needed"
    SEARCHED = "searched"
    CONFIRM = "confirm"
    CONFIRMED_BY = "confirmed_by"
    RANK = "rank"
    SLOWEST = "slowest"
    SIZE = "size"
    CONFIDENCE = "confidence"
    SINCE = "since"
    LAST = "last"
    WORST = "worst"
    MAX_ABS = "max_abs"
    FIRST_DIVERGENT = "first_divergent"
    COMPARED_WITH = "compared_with"
    GOLDEN_LEG = "golden_leg"
    SUMMARY = "summary"
    SEEN_FROM_OUTSIDE = "seen_from_outside"
    CODE = "code"
    QUARANTINE = "quarantine"
    SIGNATURE = "quarantine_signature"


@dataclass(frozen=True, slots=True)
class Measured:
    """Typed access to `CheckResult.values`: a missing value, or one of another type, is None, '' or False."""

    values: Mapping[str, Any]

    @property
    def value(self) -> float | None:
        """The measured value."""
        return self.number(ValueKey.VALUE)

    @property
    def unit(self) -> str:
        """The unit of the value."""
        return self._text(ValueKey.UNIT)

    @property
    def target(self) -> float | None:
        """The target of the suite file."""
        return self.number(ValueKey.TARGET)

    @property
    def tolerance(self) -> float | None:
        """The tolerance of the target."""
        return self.number(ValueKey.TOLERANCE)

    @property
    def baseline(self) -> float | None:
        """The median of the earlier runs."""
        return self.number(ValueKey.BASELINE)

    @property
    def sigma(self) -> float | None:
        """The standard deviation of the earlier runs."""
        return self.number(ValueKey.SIGMA)

    @property
    def ratio(self) -> float | None:
        """The value, relative to the baseline."""
        return self.number(ValueKey.RATIO)

    @property
    def limit(self) -> float | None:
        """The largest relative change that passes."""
        return self.number(ValueKey.LIMIT)

    @property
    def earlier_runs(self) -> tuple[int, int] | None:
        """(Number of comparable earlier runs, number that a comparison needs)."""
        n, needed = self._whole(ValueKey.N), self._whole(ValueKey.NEEDED)
        return None if n is None or needed is None else (n, needed)

    @property
    def searched(self) -> int | None:
        """Number of accepted runs of which most left the leg out; None for a leg that is executed or new."""
        return self._whole(ValueKey.SEARCHED)

    @property
    def needs_confirm(self) -> bool:
        """Whether the check requests a confirm run."""
        return bool(self.values.get(ValueKey.CONFIRM))

    @property
    def needs_another(self) -> bool:
        """Whether confirm runs show the change, and the check requests a further one."""
        return self.needs_confirm and self._whole(ValueKey.CONFIRMED_BY) is not None

    @property
    def rank(self) -> int | None:
        """The rank that measured the value; None for a value of all ranks."""
        return self._whole(ValueKey.RANK)

    @property
    def is_of_slowest(self) -> bool:
        """Whether the value is of the slowest rank."""
        return ValueKey.SLOWEST in self.values

    @property
    def size(self) -> float | None:
        """The relative size of the change that the change-point detector reports."""
        return self.number(ValueKey.SIZE)

    @property
    def confidence(self) -> float | None:
        """The confidence of that change."""
        return self.number(ValueKey.CONFIDENCE)

    @property
    def since(self) -> int | None:
        """The position of the first run of that change among the earlier runs."""
        return self._whole(ValueKey.SINCE)

    @property
    def is_summary(self) -> bool:
        """Whether the result repeats the results of steps."""
        return bool(self.values.get(ValueKey.SUMMARY))

    @property
    def is_seen_from_outside(self) -> bool:
        """Whether the node runner's observation replaces a report of the process."""
        return bool(self.values.get(ValueKey.SEEN_FROM_OUTSIDE))

    @property
    def code(self) -> str:
        """The `ReasonCode` of a failure; '' without one."""
        return self._text(ValueKey.CODE)

    @property
    def quarantine(self) -> int | None:
        """The number of the quarantine that covers the failure."""
        return self._whole(ValueKey.QUARANTINE)

    @property
    def signature(self) -> str | None:
        """The failure's signature, as set by the quarantine."""
        known = self.values.get(ValueKey.SIGNATURE)
        return known if isinstance(known, str) else None

    def number(self, key: str) -> float | None:
        """Return a value that is a number."""
        entry = self.values.get(key)
        return float(entry) if isinstance(entry, int | float) and not isinstance(entry, bool) else None

    def _whole(self, key: str) -> int | None:
        entry = self.values.get(key)
        return entry if isinstance(entry, int) and not isinstance(entry, bool) else None

    def _text(self, key: str) -> str:
        entry = self.values.get(key)
        return entry if isinstance(entry, str) else ""
