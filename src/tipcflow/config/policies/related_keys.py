"""Keys of a policy that must fit each other: with others, no run would be compared, and no check would tell."""

from collections.abc import Collection, Mapping

from tipcflow.domain.errors import InvalidKeyError
from tipcflow.domain.numbers.metrics import METRICS, by_iteration, metric


def require_enough_runs(*, history: int, min_history: int, seeds: int | None, given: Collection[str]) -> None:
    """Require that a comparison may have as many earlier runs as it needs.

    Args:
        history: maximum number of earlier runs.
        min_history, seeds: required numbers; `seeds` None: not set.
        given: the keys of the file, one of which the error names.

    Raises:
        InvalidKeyError: no run could ever be compared.
    """
    if seeds is not None and seeds > history and "comparison" in given:
        raise _too_many("comparison", "seeds", needed=seeds, history=history)
    for name, needed in (("min_history", min_history), ("comparison.seeds", seeds or 0)):
        if needed > history and "history" in given:
            expected = f"at least {name}, which is {needed}"
            raise InvalidKeyError(
                "is too short for any comparison", "history", found=str(history), expected=expected
            )
    if min_history > history:
        raise _too_many("min_history", needed=min_history, history=history)


def _too_many(*key: str, needed: int, history: int) -> InvalidKeyError:
    """Return the error about a key that requires more earlier runs than any comparison has."""
    expected = f"at most history, which is {history}"
    return InvalidKeyError("is more than any comparison has", *key, found=str(needed), expected=expected)


def require_wholes(parts: Mapping[str, str]) -> None:
    """Require that metrics are part of other metrics: a change is negligible if it is one for the whole.

    Args:
        parts: metric -> its `part_of`, '' for none.

    Raises:
        InvalidKeyError: `part_of` is the metric itself, unknown, or measures something else.
    """
    for name, whole in parts.items():
        if not whole or _may_contain(whole, name):
            continue
        message = "is not a metric that can contain it"
        if whole == name:
            message = "is the metric itself"
        elif metric(whole).better == "none":
            message = "is an unknown metric"
        known = [other for other in METRICS if _may_contain(other, name)]
        expected = f"one of {', '.join(known)}" if known else "no part_of"
        raise InvalidKeyError(message, "metrics", name, "part_of", found=whole, expected=expected)


def _may_contain(whole: str, part: str) -> bool:
    """Whether the values of two metrics can be compared: both of an iteration, or of a step, in the same unit."""
    outer, inner = metric(whole), metric(part)
    return (
        whole != part
        and outer.better != "none"
        and (outer.unit, outer.better, outer.family) == (inner.unit, inner.better, inner.family)
        and by_iteration(whole) == by_iteration(part)
    )
