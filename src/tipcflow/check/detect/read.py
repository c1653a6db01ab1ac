"""Parser of JSON Lines: one series per line; errors name the location."""

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from pydantic_core import from_json

from tipcflow.check.detect.noise import middle_of
from tipcflow.check.detect.series import Point, Series
from tipcflow.domain import ConfigError

_FORM = (
    '{"id", "unit", "direction": "higher|lower", "points": [{"run", "node", "samples": […], "confirm": […]}, …]}'
)
_NUMBERS = frozenset({int, float})
_SHOWN = 80
_MISSING = object()


def read_series(lines: Iterable[str], *, file: str) -> Iterator[Series]:
    """The series of a text, in order; empty lines are skipped and unknown keys are ignored.

    A point without samples is a gap. Only medians are kept: what one run's samples scatter is not what runs do.

    Args:
        file: names the text in errors.

    Raises:
        ConfigError: at the first line that is not a series: file, line, key, what was found and what was expected.
    """
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _Line(file, number).series(line)


class _Line:
    """A line and its position."""

    def __init__(self, file: str, number: int) -> None:
        self.file, self.number = file, number

    def series(self, text: str) -> Series:
        """Return the series of one line of the file."""
        document = self._json(text)
        if not isinstance(document, dict):
            self._wrong("", "is not a JSON object", document, _FORM)
        direction = self._text(document, "direction", "")
        if direction not in ("higher", "lower"):
            self._wrong("direction", "unknown", direction, "higher or lower")
        points = self._get(document, "points", "")
        if not isinstance(points, list):
            self._wrong("points", "is not a JSON array", points, "a list of points")
        return Series(
            id=self._text(document, "id", ""),
            unit=self._text(document, "unit", ""),
            higher_is_better=direction == "higher",
            points=tuple([self._point(point, at) for at, point in enumerate(points)]),
        )

    def _json(self, text: str) -> Any:
        try:
            return from_json(text)
        except ValueError:
            # Three times as slow: reports errors in terms of the line, and reads what the other parser rejects.
            try:
                return json.loads(text)
            except (ValueError, RecursionError) as error:
                raise self._error("", f"is not JSON: {error}", text.strip()[:_SHOWN], _FORM) from error

    def _point(self, point: Any, at: int) -> Point:
        key = f"points[{at}]"
        if not isinstance(point, dict):
            self._wrong(key, "is not a JSON object", point, '{"run", "node", "samples": […]}')
        samples = self._get(point, "samples", key)
        return Point(
            run=self._text(point, "run", key),
            node=self._text(point, "node", key),
            value=self._median(samples, f"{key}.samples"),
            confirm=None if point.get("confirm") is None else self._median(point["confirm"], f"{key}.confirm"),
        )

    def _median(self, samples: Any, key: str) -> float | None:
        if not isinstance(samples, list):
            self._wrong(key, "is not a JSON array", samples, "a list of numbers")
        if not samples:
            return None
        if not _NUMBERS.issuperset(map(type, samples)):
            at = next(at for at, sample in enumerate(samples) if type(sample) not in _NUMBERS)
            self._wrong(f"{key}[{at}]", "is not a JSON number", samples[at], "a finite number")
        try:
            ordered = sorted(map(float, samples))
        except OverflowError:
            ordered = [math.inf]
        if not math.isfinite(sum(ordered)):
            at = next((at for at, sample in enumerate(samples) if not _finite(sample)), -1)
            if at >= 0:
                self._wrong(f"{key}[{at}]", "is not finite", samples[at], "a finite number")
        return middle_of(ordered)

    def _text(self, holder: dict[str, Any], name: str, key: str) -> str:
        value = self._get(holder, name, key)
        if not isinstance(value, str):
            self._wrong(f"{key}.{name}" if key else name, "is not a JSON string", value, "a string")
        return value

    def _get(self, holder: dict[str, Any], name: str, key: str) -> Any:
        try:
            return holder[name]
        except KeyError:
            self._wrong(f"{key}.{name}" if key else name, "is missing", _MISSING, _FORM)

    def _wrong(self, key: str, message: str, value: Any, expected: str) -> NoReturn:
        shown = "" if value is _MISSING else value if isinstance(value, str) else _shown(value)
        raise self._error(key, message, shown, expected)

    def _error(self, key: str, message: str, shown: str, expected: str) -> ConfigError:
        return ConfigError(message, file=self.file, line=self.number, key=key, found=shown, expected=expected)


def _finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _shown(value: Any) -> str:
    if type(value) is int and abs(value) > 10**_SHOWN:
        return "an integer of more than 80 digits"
    return json.dumps(value, ensure_ascii=False)[:_SHOWN]
