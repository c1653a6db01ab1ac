"""Predictions in the form that TIPC's golden results have: image name, a tab, JSON.

0001.png<TAB>{"class_id": 3, "scores": [0.01, 0.02, 0.05, 0.9, 0.02]}
"""

import json
import math
from collections.abc import Iterable

from tipcflow.parse.text import lines_of, strip_ansi


def parse_predictions(text: str | bytes) -> dict[str, tuple[float, ...]]:
    """Image name -> class scores. A name that comes again (warm-up, repeats) counts with its last line.

    Lines that are no predictions are skipped. A score that is not a number is nan, so that a check can say so.
    """
    return read_predictions(lines_of(text))


def read_predictions(lines: Iterable[tuple[int, str]]) -> dict[str, tuple[float, ...]]:
    """`parse_predictions` of a log that comes line by line, with byte offsets."""
    found: dict[str, tuple[float, ...]] = {}
    for _, raw in lines:
        found |= _prediction(raw)
    return found


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
