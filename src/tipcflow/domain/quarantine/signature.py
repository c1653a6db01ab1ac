"""The signature of a check's failure, its size, and which failures may be quarantined (ADR 25)."""

import math
from enum import StrEnum

from tipcflow.domain.check import CheckFamily, CheckResult, family_of
from tipcflow.domain.numbers.measured import ValueKey
from tipcflow.domain.status import Status

RED = (Status.FAILED, Status.REGRESSION, Status.UNCONFIRMED)
_HISTORY = "accuracy.history"
# Checks of a measured value -> the key of `values` that shows that the value was measured, and the keys of the
# reason code's parameters. All other checks prove that the declared work was done, or that a node was at fault.
_MEASURED: dict[str, tuple[ValueKey, tuple[ValueKey, ...]]] = {
    "loss.falling": (ValueKey.LAST, ()),
    "loss.reproducible": (ValueKey.FIRST_DIVERGENT, ()),
    "accuracy.final": (ValueKey.VALUE, ()),
    "accuracy.evaluation": (ValueKey.VALUE, ()),
    _HISTORY: (ValueKey.VALUE, ()),
    "parity.onednn": (ValueKey.MAX_ABS, (ValueKey.COMPARED_WITH,)),
    "parity.chain": (ValueKey.MAX_ABS, (ValueKey.COMPARED_WITH,)),
    "golden.results": (ValueKey.MAX_ABS, (ValueKey.GOLDEN_LEG,)),
    "baseline.pinned": (ValueKey.VALUE, ()),
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
    if not result.gating and result.measured.quarantine is None:
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
    known = result.measured.signature
    if known is not None:
        return current_signature(known)
    from_earlier = family_of(result.check) in _FAMILIES or result.check == _HISTORY
    if result.status in (Status.REGRESSION, Status.UNCONFIRMED) and from_earlier:
        return ReasonCode.WORSE.value
    code = result.measured.code
    if not code:
        return ""
    _, parameters = _MEASURED.get(result.check, (ValueKey.VALUE, ()))
    given = [f"{name}={result.values[name]}" for name in parameters if result.values.get(name)]
    return " ".join([code, *given])


def current_signature(stored: str) -> str:
    """Return a stored signature as this version writes it."""
    return _OLD.get(stored, stored)


def size_of(result: CheckResult) -> float | None:
    """Return how far a value is beyond what it is compared with; None if the result has no such number.

    A relative change is its natural logarithm (twice as slow: 0.69), others are absolute differences.
    """
    measured = result.measured
    value, pinned = measured.value, measured.number(ValueKey.PINNED)
    if measured.ratio is not None:
        return _log(measured.ratio)
    if value is not None and pinned:
        return _log(value / pinned)
    difference = measured.number(ValueKey.MAX_ABS)
    if difference is not None:
        return abs(difference)
    for reference in (measured.target, measured.number(ValueKey.WORST)):
        if reference is not None and value is not None:
            return abs(value - reference)
    return None


def _log(ratio: float) -> float:
    return abs(math.log(ratio)) if ratio > 0 else math.inf


def _is_measured(result: CheckResult) -> bool:
    key, _ = _MEASURED.get(result.check, (ValueKey.VALUE, ()))
    return key in result.values
