"""Parser of the results that a suite stores for its compare_results.py: image name, tab, result.

test_tipc/results/python_ppocr_det_mobile_results_fp32.txt:

img_10.jpg<TAB>[[[39.0, 88.0], [258.0, 79.0], [259.0, 98.0], [40.0, 107.0]]]
img_11.jpg<TAB>39 88 258 79
0001.png<TAB>{"class_id": 3, "scores": [0.01, 0.02, 0.05, 0.9, 0.02]}

As in that script, the folder of an image does not count, and the name of the file names the precision.
"""

import json
import posixpath
from collections.abc import Iterator

from tipcflow.domain.keys import PredictionKey
from tipcflow.parse.reports.predictions import parse_predictions

RESULT_PRECISIONS = ("fp32", "fp16", "bf16", "int8")


def precision_of_results(name: str) -> str:
    """The precision in the name of a file of results; '' if it has none, or several."""
    words = [word for word in RESULT_PRECISIONS if word in name]
    return words[0] if len(words) == 1 else ""


def parse_stored_results(text: str) -> dict[PredictionKey, tuple[float, ...]]:
    """Return the results by image; an image in which nothing was found has no numbers.

    Raises:
        ValueError: a line has another form, or an image occurs twice; the message names the line.
    """
    results: dict[PredictionKey, tuple[float, ...]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        key, values = _result(number, line)
        if key in results:
            raise ValueError(f"line {number}: image {key.source} occurs twice")
        results[key] = values
    return results


def _result(number: int, line: str) -> tuple[PredictionKey, tuple[float, ...]]:
    name, tab, result = line.partition("\t")
    image = posixpath.basename(name.strip())
    if not tab or not image:
        raise ValueError(f"line {number}: expected an image, a tab and a result")
    if scores := parse_predictions(f"{image}\t{result}"):
        return next(iter(scores.items()))
    try:
        values = tuple(_numbers(json.loads(result)))
    except (ValueError, RecursionError):
        try:
            values = tuple(float(int(word)) for word in result.split())
        except ValueError:
            raise ValueError(
                f"line {number}: the result of {image} is neither JSON lists of numbers nor integers"
            ) from None
    return PredictionKey(image, 1), values


def _numbers(content: object) -> Iterator[float]:
    """The numbers of nested lists, in order."""
    if isinstance(content, list):
        for part in content:
            yield from _numbers(part)
    elif isinstance(content, bool) or not isinstance(content, int | float):
        raise ValueError(f"{content!r} is not a number")
    else:
        yield float(content)
