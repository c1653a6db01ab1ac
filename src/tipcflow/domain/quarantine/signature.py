"""The signature of a check's failure, its size, and which failures may be quarantined (ADR 25)."""

import math
from enum import StrEnum

from tipcflow.domain.check import CheckFamily, CheckResult, family_of
from tipcflow.domain.status import Status

# Keys of `CheckResult.values`: the `ReasonCode` that a check sets, and what a quarantine sets.
CODE, NUMBER, SIGNATURE = "code", "quarantine", "quarantine_signature"
RED = (Status.FAILED, Status.REGRESSION, Status.UNCONFIRMED)
_HISTORY = "accuracy.history"
# Checks of a measured value -> the key of `values` that shows that the value was measured, and the keys of the
# reason code's parameters. All other checks prove that the declared work was done, or that a node was at fault.
_MEASURED: dict[str, tuple[str, tuple[str, ...]]] = {
    "loss.falling": ("last", ()),
    "loss.reproducible": ("first_divergent", ()),
    "accuracy.final": ("value", ()),
    "accuracy.evaluation": ("value", ()),
    _HISTORY: ("value", ()),
    "parity.onednn": ("max_abs", ("compared_with",)),
    "parity.chain": ("max_abs", ("compared_with",)),
    "golden.results": ("max_abs", ("golden_leg",)),
    "baseline.pinned": ("value", ()),
}
_FAMILIES = (CheckFamily.SPEED, CheckFamily.MEMORY, CheckFamily.BASELINE)


class ReasonCode(StrEnum):
    """Why a measured value fails its check; stored, and never renamed: signatures of quarantines contain it."""

    CONSTANT_LOSS = "constant_loss"
    NO_FALL = "no_fall"
    OTHER_LOSSES = "other_losses"
    OTHER_LENGTH = "other_length"
    BEYOND_TARGET = "beyond_target"
    AMBIGUOUS_UNIT = "ambiguous_unit"
    FAR_WORSE = "far_worse"
    OTHER_CLASS = "other_class"
    OTHER_SCORES = "other_scores"
    WORSE = "worse"


# What earlier versions stored instead of a code.
_OLD = {"worse than earlier runs": ReasonCode.WORSE.value}


def may_be_quarantined(check: str) -> bool:
    """Whether failures of this check may be quarantined: it compares a measured value with a limit."""
    return check in _MEASURED or family_of(check) in _FAMILIES


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
    if size is not None and not math.isfinite(size):
        return "the value is not finite"
    return "" if signature_of(result) else "the result has no reason code: an earlier version evaluated the run"


def signature_of(result: CheckResult) -> str:
    """Return what equal failures of a check have in common: the reason code with its parameters.

    All changes for the worse against earlier runs have one signature, whether and how they were confirmed; their
    size is limited (`size_of`). '' for a result without a code: it has no failure that a later one could equal.
    """
    known = result.values.get(SIGNATURE)
    if isinstance(known, str):
        return current_signature(known)
    from_earlier = family_of(result.check) in _FAMILIES or result.check == _HISTORY
    if result.status in (Status.REGRESSION, Status.UNCONFIRMED) and from_earlier:
        return ReasonCode.WORSE.value
    code = result.values.get(CODE)
    if not isinstance(code, str):
        return ""
    _, parameters = _MEASURED.get(result.check, ("", ()))
    given = [f"{name}={result.values[name]}" for name in parameters if result.values.get(name)]
    return " ".join([str(code), *given])


def current_signature(stored: str) -> str:
    """Return a stored signature as this version writes it."""
    return _OLD.get(stored, stored)


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
    key, _ = _MEASURED.get(result.check, ("value", ()))
    return key in result.values
