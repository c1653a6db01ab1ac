"""The signature of a check's failure, its size, and which failures may be quarantined (ADR 25)."""

import math
import re

from tipcflow.domain.check import CheckResult
from tipcflow.domain.status import Status

# Keys of `CheckResult.values` that a quarantine sets.
NUMBER, SIGNATURE = "quarantine", "quarantine_signature"
RED = (Status.FAILED, Status.REGRESSION, Status.UNCONFIRMED)
# Checks of a measured value -> the keys of `values`, of which one shows that the value was measured. All other
# checks prove that the declared work was done, or that a node was at fault.
_MEASURED = {
    "loss.falling": ("last",),
    "loss.reproducible": ("first_divergent",),
    "accuracy.final": ("value",),
    "accuracy.evaluation": ("value",),
    "accuracy.history": ("value",),
    "parity.onednn": ("max_abs",),
    "parity.chain": ("max_abs",),
    "golden.results": ("max_abs",),
    "baseline.pinned": ("value",),
}
_FAMILIES = ("speed.", "memory.", "baseline.")
_WORSE = "worse than earlier runs"
_LONGEST = 200
_MASKS = (
    (re.compile(r"\b\d{8}t\d{6}-[a-z0-9_.-]*[a-z0-9]"), "RUN"),
    (re.compile(r"[\w./-]*\w\.(?:jpe?g|png|bmp|gif|webp|tiff?|npy|npz|wav|txt|json)\b", re.IGNORECASE), "FILE"),
    (re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])", re.IGNORECASE), "N"),
    # Hashes; one of digits alone is a number.
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b"), "N"),
)


def may_be_quarantined(check: str) -> bool:
    """Whether failures of this check may be quarantined: it compares a measured value with a limit."""
    return check in _MEASURED or check.startswith(_FAMILIES)


def refusal(result: CheckResult) -> str:
    """Return why a check result cannot be quarantined; '' if it can.

    A quarantine never covers missing evidence, work that was not done, or a value that is not finite.
    """
    if result.status not in RED:
        return f"the result is {result.status.value}"
    if not may_be_quarantined(result.check):
        return "the check proves that the declared work was done"
    if not result.gating and NUMBER not in result.values:
        return "the result does not affect the run's status"
    if not _is_measured(result):
        return "the run did not measure the value, and missing evidence is never accepted"
    size = size_of(result)
    return "" if size is None or math.isfinite(size) else "the value is not finite"


def signature_of(result: CheckResult) -> str:
    """Return what equal failures of a check have in common: the reason without its numbers, files and run IDs.

    The reason for a change against earlier runs tells whether and how it was confirmed, so all such changes for
    the worse have one signature; their size is limited (`size_of`).
    """
    known = result.values.get(SIGNATURE)
    if isinstance(known, str):
        return known
    if result.status in (Status.REGRESSION, Status.UNCONFIRMED) and result.check.startswith(
        (*_FAMILIES, "accuracy.history")
    ):
        return _WORSE
    text = " ".join(result.reason.split())
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return text[:_LONGEST]


def size_of(result: CheckResult) -> float | None:
    """Return how far a value is beyond what it is compared with; None if the result has no such number.

    A relative change is its natural logarithm (twice as slow: 0.69), others are absolute differences.
    """
    values = {
        key: float(number)
        for key, number in result.values.items()
        if isinstance(number, int | float) and not isinstance(number, bool)
    }
    if "ratio" in values:
        return _log(values["ratio"])
    if "pinned" in values and "value" in values and values["pinned"]:
        return _log(values["value"] / values["pinned"])
    if "max_abs" in values:
        return abs(values["max_abs"])
    for reference in ("target", "worst"):
        if reference in values and "value" in values:
            return abs(values["value"] - values[reference])
    return None


def _log(ratio: float) -> float:
    return abs(math.log(ratio)) if ratio > 0 else math.inf


def _is_measured(result: CheckResult) -> bool:
    keys = _MEASURED.get(result.check, ("value",))
    return any(key in result.values for key in keys)
