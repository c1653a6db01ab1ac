"""Parser of predictions in the form of TIPC's golden results: image name, tab, JSON.

0001.png<TAB>{"class_id": 3, "scores": [0.01, 0.02, 0.05, 0.9, 0.02]}
"""

import json
import math
from collections.abc import Iterable

from tipcflow.parse.text import lines_of, strip_ansi


def parse_predictions(text: str | bytes) -> dict[str, tuple[float, ...]]:
    """Return image name -> class scores; the last line of a name is used (warm-up, repeats).

    Lines that are not predictions are skipped. A score that is not a number becomes nan, so that a check can
    report it.
    """
    return read_predictions(lines_of(text))


def read_predictions(lines: Iterable[tuple[int, str]]) -> dict[str, tuple[float, ...]]:
    """`parse_predictions` for a log that arrives line by line, with byte offsets."""
    predictions: dict[str, tuple[float, ...]] = {}
    for _, raw in lines:
        predictions |= _prediction(raw)
    return predictions


def _prediction(raw: str) -> dict[str, tuple[float, ...]]:
    name, tab, rest = strip_ansi(raw).partition("\t") if "\t" in raw else ("", "", "")
    if not tab or not name.strip() or not rest.lstrip().startswith("{"):
        return {}
    try:
        answer = json.loads(rest)
    except (ValueError, RecursionError):
        return {}
    scores = answer.get("scores") if isinstance(answer, dict) else None
    if not isinstance(scores, list) or not scores:
        return {}
    return {name.strip(): tuple(_number(score) for score in scores)}


def _number(score: object) -> float:
    if isinstance(score, bool) or not isinstance(score, int | float):
        return math.nan
    try:
        return float(score)
    except OverflowError:
        return math.inf
