"""Distances between two sets of class scores, image by image."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tipcflow.check.evidence.predictors import is_class_only
from tipcflow.config.policy import Tolerance
from tipcflow.domain.keys import PredictionKey
from tipcflow.domain.numbers.measured import ValueKey
from tipcflow.domain.quarantine.signature import ReasonCode

Scores = Mapping[PredictionKey, tuple[float, ...]]


@dataclass(frozen=True)
class Distance:
    """One image's scores compared with the expected ones.

    Attributes:
        absolute, relative: largest difference of a score; relative only of scores above the absolute tolerance.
        excess: by how much the worst score is beyond what is allowed; inf where no number could be compared.
        problem: what is wrong, '' when nothing is; `code` is its kind.
    """

    picture: str
    absolute: float
    relative: float
    excess: float
    problem: str = ""
    code: ReasonCode | None = None


def compare(scores: Scores, expected: Scores, allowed: Tolerance) -> Distance:
    """Return the image with the largest deviation; both sides must have the same images. Images with another class
    do not count if their share is allowed.

    Raises:
        ValueError: there is no image, or a side lacks one.
    """
    if not expected or set(scores) != set(expected):
        raise ValueError("both sides need predictions for the same images")
    distances = [distance(key, scores[key], expected[key], allowed) for key in sorted(expected)]
    others = [deviation for deviation in distances if deviation.code is ReasonCode.OTHER_CLASS]
    if others and len(others) <= allowed.other_class * len(distances):
        distances = [deviation for deviation in distances if deviation.code is not ReasonCode.OTHER_CLASS]
    worst = max(distances, key=lambda deviation: deviation.excess)
    return Distance(
        picture=worst.picture,
        absolute=max(deviation.absolute for deviation in distances),
        relative=max(deviation.relative for deviation in distances),
        excess=worst.excess,
        problem=worst.problem,
        code=worst.code,
    )


def distance(
    key: PredictionKey, scores: tuple[float, ...], expected: tuple[float, ...], allowed: Tolerance
) -> Distance:
    """One image: every score within atol + rtol * |expected|, and the same class; of a result, every number."""
    picture, what = str(key), "values" if key.is_result else "scores"
    if what == "scores" and is_class_only(scores) and is_class_only(expected) and len(scores) != len(expected):
        problem = f"class {top_class(scores)} against class {top_class(expected)}"
        return Distance(picture, math.inf, math.inf, math.inf, problem)
    if len(scores) != len(expected) or not scores:
        return Distance(picture, math.inf, math.inf, math.inf, f"{len(scores)} {what} against {len(expected)}")
    if not all(math.isfinite(score) for score in (*scores, *expected)):
        return Distance(picture, math.inf, math.inf, math.inf, f"{what} are not finite")
    absolute = [abs(a - b) for a, b in zip(scores, expected, strict=True)]
    # Of scores as small as the tolerance the last bits are noise: their ratio would only frighten the reader.
    relative = [d / abs(b) for d, b in zip(absolute, expected, strict=True) if abs(b) > max(allowed.atol, 1e-30)]
    excess = max(d - allowed.atol - allowed.rtol * abs(b) for d, b in zip(absolute, expected, strict=True))
    problem, code = "", None
    if what == "scores" and top_class(scores) != top_class(expected):
        problem, excess = f"class {top_class(scores)} against class {top_class(expected)}", math.inf
        code = ReasonCode.OTHER_CLASS
    elif excess > 0:
        problem = f"{what} differ by {max(absolute):.3g}, allowed {allowed.atol:g} + {allowed.rtol:g} relative"
        code = ReasonCode.OTHER_SCORES
    return Distance(picture, max(absolute), max(relative, default=0.0), excess, problem, code)


def different_images(scores: Scores, expected: Scores) -> str:
    """Return a message if the two sides have different images; '' otherwise."""
    outliers = sorted(set(scores) ^ set(expected))
    return f"{len(outliers)} images have predictions on one side only, first {outliers[0]}" if outliers else ""


def class_count(scores: Scores) -> int:
    """Return the number of distinct predicted classes or results; a single one proves nothing."""
    return len({result if key.is_result else top_class(result) for key, result in scores.items()})


def too_alike(expected: Scores, classes: int) -> str:
    """Return why equal predictions are not meaningful: fewer than `classes` are distinct; '' if they are."""
    if class_count(expected) >= classes:
        return ""
    same = "results are equal" if any(key.is_result for key in expected) else "images have the same class"
    return f"all {len(expected)} {same}: parity is not meaningful"


def top_class(scores: tuple[float, ...]) -> int:
    """The class with the highest score, -1 without any."""
    return max(range(len(scores)), key=scores.__getitem__, default=-1)


def comparison_values(worst: Distance, expected: Scores) -> dict[str, Any]:
    """Return the values of a comparison, for the page and the certificate."""
    return {
        "images": len(expected),
        ValueKey.MAX_ABS: worst.absolute,
        "max_rel": worst.relative,
        "classes": class_count(expected),
        **({ValueKey.CODE: worst.code} if worst.code else {}),
    }


def passed_message(worst: Distance, expected: Scores) -> str:
    """Return the message for a passed comparison."""
    difference = f"largest difference {worst.absolute:.2g} (relative {worst.relative:.2g})"
    if any(key.is_result for key in expected):
        return f"{len(expected)} results: {difference}"
    return f"{len(expected)} images, {class_count(expected)} classes: same class everywhere, {difference}"
