"""Parser of predictions in the form of TIPC's golden results: image name, tab, JSON.

0001.png<TAB>{"class_id": 3, "scores": [0.01, 0.02, 0.05, 0.9, 0.02]}

Lines of other forms are described by the suite's file (`predictions`). Some name the class but not all scores: the
scores of the other classes are 0, and the score of the class is 1 if the line does not have it. Others have the
numbers of a result, such as a box (`PredictionKey.result`).
"""

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from tipcflow.config.formats import LINE_LIMIT_S, PredictionRule, compiled, numbers_in
from tipcflow.domain.keys import PredictionKey
from tipcflow.domain.masking import mask
from tipcflow.parse.text import lines_of, strip_ansi

# Larger numbers are not classes of a network.
_MOST_CLASSES = 100_000
# After this number of timeouts, a pattern is not tried on further lines.
_TOO_SLOW = 10
# Results kept of a log, and numbers of one result.
_MOST_RESULTS, _MOST_NUMBERS = 2_000, 10_000
# Input of results whose lines name none.
_OUTPUT = "output"


def parse_predictions(
    text: str | bytes, rules: Sequence[PredictionRule] = ()
) -> dict[PredictionKey, tuple[float, ...]]:
    """Return the class scores and results; of several lines with one key the last is used (warm-up, repeats).

    Lines that are not predictions are skipped. A score that is not a number becomes nan, so that a check can
    report it.
    """
    return read_predictions(lines_of(text), rules)


def read_predictions(
    lines: Iterable[tuple[int, str]], rules: Sequence[PredictionRule] = ()
) -> dict[PredictionKey, tuple[float, ...]]:
    """`parse_predictions` for a log that arrives line by line, with byte offsets."""
    predictions: dict[PredictionKey, tuple[float, ...]] = {}
    readers, results = [_Printed(rule) for rule in rules], _Results()
    for _, raw in lines:
        predictions |= _prediction(raw)
        for reader in readers:
            match = reader.match(raw)
            if match is not None:
                predictions |= _class(match) if "class" in match.groupdict() else results.read(match)
    # The name of an input may be an address with a login.
    return {PredictionKey(mask(key.source), key.result): numbers for key, numbers in predictions.items()}


class _Printed:
    """One kind of line of a suite."""

    def __init__(self, rule: PredictionRule) -> None:
        self._pattern = compiled(rule.pattern)
        self._slow = 0

    def match(self, raw: str) -> Any:
        """The match in the line; None if the pattern does not match or exceeds its time limit."""
        if self._slow >= _TOO_SLOW:
            return None
        try:
            return self._pattern.search(strip_ansi(raw), timeout=LINE_LIMIT_S)
        except TimeoutError:
            self._slow += 1
            return None


class _Results:
    """The results of a log, numbered by the input to which they belong."""

    def __init__(self) -> None:
        self._input = _OUTPUT
        self._counts: dict[str, int] = {}

    def read(self, match: Any) -> dict[PredictionKey, tuple[float, ...]]:
        """Return the result of a line; empty if the line only names an input, or has no number."""
        groups = match.groupdict()
        name = (groups.get("image") or "").strip()
        if "value" not in groups:
            self._input = name or _OUTPUT
            return {}
        numbers = numbers_in(match.captures("value"))[:_MOST_NUMBERS]
        if not numbers or sum(self._counts.values()) >= _MOST_RESULTS:
            return {}
        name = name or self._input
        self._counts[name] = self._counts.get(name, 0) + 1
        return {PredictionKey(name, self._counts[name]): numbers}


def _class(match: Any) -> dict[PredictionKey, tuple[float, ...]]:
    text = match["class"] or ""
    if not (text.isascii() and text.isdigit()):
        return {}
    if len(text) > len(str(_MOST_CLASSES)) or int(text) >= _MOST_CLASSES or not match["image"].strip():
        return {}
    return {
        PredictionKey(match["image"].strip()): (*[0.0] * int(text), _printed_score(match.groupdict().get("score")))
    }


def _printed_score(text: str | None) -> float:
    """Return the score, or 1 if there is none above 0: the class must remain the one with the highest score."""
    try:
        score = float(text or "")
    except ValueError:
        return 1.0
    return 1.0 if score <= 0 else score


def _prediction(raw: str) -> dict[PredictionKey, tuple[float, ...]]:
    name, tab, rest = strip_ansi(raw).partition("\t") if "\t" in raw else ("", "", "")
    if not tab or not name.strip() or not rest.lstrip().startswith("{"):
        return {}
    try:
        content = json.loads(rest)
    except (ValueError, RecursionError):
        return {}
    scores = content.get("scores") if isinstance(content, dict) else None
    if not isinstance(scores, list) or not scores:
        return {}
    return {PredictionKey(name.strip()): tuple(_number(score) for score in scores)}


def _number(score: object) -> float:
    if isinstance(score, bool) or not isinstance(score, int | float):
        return math.nan
    try:
        return float(score)
    except OverflowError:
        return math.inf
