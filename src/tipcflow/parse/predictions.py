"""Predictions in the form that TIPC's golden results have: image name, a tab, JSON.

0001.png<TAB>{"class_id": 3, "scores": [0.01, 0.02, 0.05, 0.9, 0.02]}
"""

import json
import math

from tipcflow.parse.text import lines_of, strip_ansi


def parse_predictions(text: str | bytes) -> dict[str, tuple[float, ...]]:
    """Image name -> class scores. A name that comes again (warm-up, repeats) counts with its last line.

    Lines that are no predictions are skipped. A score that is not a number is nan, so that a check can say so.
    """
    found: dict[str, tuple[float, ...]] = {}
    for _, raw in lines_of(text):
        name, tab, rest = strip_ansi(raw).partition("\t")
        if not tab or not name.strip() or not rest.lstrip().startswith("{"):
            continue
        try:
            answer = json.loads(rest)
        except (ValueError, RecursionError):
            continue
        scores = answer.get("scores") if isinstance(answer, dict) else None
        if isinstance(scores, list) and scores:
            found[name.strip()] = tuple(_number(score) for score in scores)
    return found


def _number(score: object) -> float:
    if isinstance(score, bool) or not isinstance(score, int | float):
        return math.nan
    try:
        return float(score)
    except OverflowError:
        return math.inf
