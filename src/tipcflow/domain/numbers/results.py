"""Names of results: numbers that a leg prints for an input, other than the scores of its classes."""

import re

_RESULT = re.compile(r": result [1-9][0-9]*\Z")


def result_name(source: str, number: int) -> str:
    """Return the name of the n-th result (from 1 on) that was printed for an input."""
    return f"{source}: result {number}"


def is_result(name: str) -> bool:
    """Whether the name of a prediction is that of a result, not of an image with class scores."""
    return _RESULT.search(name) is not None
